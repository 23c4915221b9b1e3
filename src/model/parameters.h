#pragma once
// The parameters of a model: names, shapes, places in one flat buffer, optimizer rules, initial
// values. Names are Hugging Face Llama's, those of norms Gemma 2's where it has more, and part of
// the checkpoint format.

#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "model/model_config.h"

namespace bamtrain {

/// Which rules of the optimizer apply to a parameter.
enum class ParameterGroup { matrix, embedding, norm, bias, prior, scale, normalizer };
constexpr bool is_mechanism(ParameterGroup g) {
  return g == ParameterGroup::prior || g == ParameterGroup::scale ||
         g == ParameterGroup::normalizer;
}

struct Parameter {
  std::string name;            // "model.layers.3.self_attn.q_proj.weight"
  std::vector<int64_t> shape;  // one or two dimensions
  ParameterGroup group = ParameterGroup::matrix;
  bool trained = true;
  int64_t offset = 0;  // in elements of the flat buffer
  int64_t size = 0;
  double minimum = -INFINITY, maximum = INFINITY;  // kept by the optimizer
  bool gate = false, marked_to_decay = false;      // MechanismParameter::gate, ::decays
  bool of_mix = false;                             // in group prior: of what mixes heads beside one
  int64_t layer = 0;                               // of a mechanism's, the first that has it
  int64_t features = 0;  // columns of its matrix that inputs fill, those behind are 0; 0: all

  bool decays() const {
    return group == ParameterGroup::matrix || group == ParameterGroup::embedding || marked_to_decay;
  }
  /// The last part of the name: "theta_alpha".
  std::string leaf() const { return name.substr(name.rfind('.') + 1); }
};

/// Columns of the features of max_retrieval's items and queries, filled up with zeros to what
/// products of every backend take.
constexpr int64_t kFeatureColumns = 16;

/// Rows of the product of q, k and v stay aligned to 16 bytes of bf16.
constexpr int64_t kGateColumns = 8;

/// All parameters of a model in file order, laid out in one flat buffer. Matrices that one product
/// reads together (q, k, v, a mechanism's gates; gate, up) are neighbours without a gap.
class ParameterLayout {
 public:
  /// `sequence_length` is T of training. Error (ExitCode::config) for what the mechanisms refuse.
  ParameterLayout(const ModelConfig& config, int64_t sequence_length);

  const std::vector<Parameter>& all() const { return parameters_; }
  int64_t elements() const { return elements_; }  // of the flat buffer, gaps included
  /// Columns that mechanisms' gates add to the product of q, k and v in every layer, as many as any
  /// layer needs: a multiple of kGateColumns. The rows past a layer's last gate, and all of their
  /// places in the bias, belong to no parameter.
  int64_t gate_columns() const { return gate_columns_; }

  /// The parameter of that name, or null; it keeps its address.
  const Parameter* find(const std::string& name) const;
  /// The part of a flat buffer that holds `name`, in its own shape; absent: an empty tensor.
  Tensor view(const Tensor& flat, const std::string& name) const;

  /// Number of elements in these groups (gaps excluded).
  int64_t count(std::initializer_list<ParameterGroup> groups) const;

 private:
  void add(const std::string& name, std::vector<int64_t> shape, ParameterGroup group,
           bool trained = true, bool after_previous = false);

  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, size_t> by_name_;  // places in parameters_
  int64_t elements_ = 0;
  int64_t gate_columns_ = 0;
};

/// The part of a flat buffer that holds `p`, in its own shape; null: an empty tensor.
Tensor view_of(const Tensor& flat, const Parameter* p);
/// `rows` x `columns` (vectors: rows * columns elements) that begin with `p`, across its
/// neighbours.
Tensor fused_view_of(const Tensor& flat, const Parameter* p, int64_t rows, int64_t columns);

/// Fills `out` (shaped as p, P) with the initial value of `p` by the rules of InitKind and of the
/// mechanisms' registries; biases start at 0 (torch: as the matrix they belong to), norms at 1.
/// Element i is a pure function of (seed, name, i), where it is cut off of p.size too.
void initialize(const Parameter& p, const ModelConfig& config, int64_t sequence_length,
                uint64_t seed, Tensor out);

/// "model.layers.N."
std::string layer_prefix(int64_t layer);

/// "model.layers.N.self_attn.KIND.NAME", or "model.KIND.NAME" where all layers share `p`. KIND is
/// "prior", "mix", "scale" or "normalizer".
std::string mechanism_parameter_name(const MechanismParameter& p, const char* kind, int64_t layer);

}  // namespace bamtrain
