#pragma once
// The parameters of a model: names, shapes, places in one flat buffer, optimizer rules, initial
// values. Names are those of Hugging Face's Llama, for norms Gemma 2's where it has more norms.
// They are part of the checkpoint format.

#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "model/model_config.h"

namespace bamtrain {

/// Determines the optimizer rules of a parameter.
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
  double minimum = -INFINITY, maximum = INFINITY;  // enforced by the optimizer
  bool gate = false, marked_to_decay = false;      // MechanismParameter::gate, ::decays
  bool of_mix = false;                             // in group prior: of a mix of heads
  int64_t layer = 0;                               // for mechanisms: the first layer that has it
  int64_t features = 0;  // columns of its matrix that inputs use, the rest are 0; 0: all
  bool rounded = false;  // products read it, and the embedding: in the dtype of activations, A

  bool decays() const {
    return group == ParameterGroup::matrix || group == ParameterGroup::embedding || marked_to_decay;
  }
  /// The last part of the name: "theta_alpha".
  std::string leaf() const { return name.substr(name.rfind('.') + 1); }
};

/// Feature columns of max_retrieval's items and queries, padded with zeros to a width that products
/// of every backend support.
constexpr int64_t kFeatureColumns = 16;

/// Keeps rows of the q, k, v product aligned to 16 bytes in bf16.
constexpr int64_t kGateColumns = 8;

/// All parameters of a model in file order, laid out in one flat buffer: first all that are read in
/// P (norms, biases, mechanisms, tables of positions), then the matrices that products read in A.
/// Those that one product reads together (q, k, v, a mechanism's gates; gate, up) are adjacent
/// without a gap.
class ParameterLayout {
 public:
  /// `sequence_length` is T of training. Throws Error (ExitCode::config) if the mechanisms refuse
  /// the configuration.
  ParameterLayout(const ModelConfig& config, int64_t sequence_length);

  const std::vector<Parameter>& all() const { return parameters_; }
  int64_t elements() const { return elements_; }  // of the flat buffer, including gaps
  /// Elements before the first rounded parameter.
  int64_t exact_elements() const { return exact_; }
  /// Columns that mechanisms' gates add to the q, k, v product in every layer: as many as any layer
  /// needs, rounded up to kGateColumns. Rows past a layer's last gate, and all gate elements of the
  /// bias, belong to no parameter.
  int64_t gate_columns() const { return gate_columns_; }

  /// The parameter of that name, or null. Its address does not change.
  const Parameter* find(const std::string& name) const;
  /// The part of a flat buffer that holds `name`, in its own shape; an empty tensor if missing.
  Tensor view(const Tensor& flat, const std::string& name) const;

  /// Number of elements in these groups (gaps excluded).
  int64_t count(std::initializer_list<ParameterGroup> groups) const;

 private:
  enum class ReadIn { P, A };
  void add(const std::string& name, std::vector<int64_t> shape, ParameterGroup group, ReadIn read,
           bool trained = true, bool after_previous = false);
  void add_all(const ModelConfig& config, int64_t sequence_length);

  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, size_t> by_name_;  // indices in parameters_
  int64_t exact_ = 0, elements_ = 0;
  int64_t gate_columns_ = 0;
};

/// The part of a flat buffer that holds `p`, in its own shape; an empty tensor if null.
Tensor view_of(const Tensor& flat, const Parameter* p);
/// `rows` x `columns` (vectors: rows * columns elements) starting at `p`, across its neighbours.
Tensor fused_view_of(const Tensor& flat, const Parameter* p, int64_t rows, int64_t columns);

/// Fills `out` (shaped as p, P) with the initial value of `p` by the rules of InitKind and of the
/// mechanisms' registries. Biases start at 0 (torch: like their matrix), norms at 1. Element i is a
/// pure function of (seed, name, i), for truncated normals also of p.size.
void initialize(const Parameter& p, const ModelConfig& config, int64_t sequence_length,
                uint64_t seed, Tensor out);

/// "model.layers.N."
std::string layer_prefix(int64_t layer);

/// "model.layers.N.self_attn.KIND.NAME", or "model.KIND.NAME" if all layers share `p`. KIND is
/// "prior", "mix", "scale" or "normalizer".
std::string mechanism_parameter_name(const MechanismParameter& p, const char* kind, int64_t layer);

}  // namespace bamtrain
