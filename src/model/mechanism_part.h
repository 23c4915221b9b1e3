#pragma once
// The interface between a kind of mechanism and the model. A part is a family of priors, the mixes,
// the logit scale or the normalizer. It plans memory, computes what attention reads from the
// parameters, and accumulates their gradients. One object serves all layers that have the
// mechanism. A model has the parts that any of its layers needs.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace bamtrain {

/// What parts are made from. Everything in it outlives them.
struct PartSource {
  const ModelConfig& config;
  const ParameterLayout& layout;
  Backend& backend;
  int64_t training_length;  // T of training

  ModelShape shape() const { return config.shape(training_length); }
  /// The randomization of a layer's prior.
  Randomization randomization(int64_t layer) const {
    const PriorChoice& prior = config.attention.prior.of(layer);
    return prior.info().randomization(prior.options, training_length);
  }
};

/// The rotation of queries and keys, (T, D/2) P; empty: no rotation.
struct Rotation {
  Tensor cosine, sine;
  bool randomized = false;  // by random positions if the batch has them
};

/// Per-row operands of attention for the current batch.
struct PartRows {
  Tensor gates;      // (B, T, gates of the part) A
  Tensor positions;  // (B, T) i32: of queries in their documents
};

class MechanismPart {
 public:
  virtual ~MechanismPart() = default;
  /// Whether a layer has the mechanism. Hooks that take a layer are called only for such layers.
  virtual bool has(int64_t) const { return true; }
  /// Gate columns of this part in a layer.
  virtual int64_t gates(int64_t) const { return 0; }
  /// Elements of the largest parameter that its operations read as doubles (HostScratch).
  virtual int64_t largest_parameter() const { return 0; }
  /// Sets its part of a layer's form.
  virtual void form(int64_t, AttentionForm&) const {}
  /// Plans for B sequences of T tokens; in incremental decoding T is the maximum length.
  virtual void plan(Arena& arena, int64_t B, int64_t T, ModelUse use) = 0;
  /// Throws Error (ExitCode::config) if it does not support rows with as many keys as T tokens may
  /// see.
  virtual void check_length(int64_t) const {}
  /// Uploads what depends on no parameter, once. Allocates memory.
  virtual void upload_constants() {}
  /// Sets the random distances of the current batch: (layers, B, T), the same for all B sequences.
  /// Null: distances count. For priors that have them, in training and if evaluation draws too.
  virtual void draw(const int32_t*, int64_t /*B*/, int64_t /*T*/) {}
  /// Computes what depends on the master weights. Called after upload_constants().
  virtual void refresh(const Tensor&) {}

  /// Sets its tensors of `a` in a layer. The form, q, k (rotated), first_key and the tensors of
  /// earlier mechanisms are already set.
  virtual void attach(int64_t, Attention&, const PartRows&) {}
  /// Sets where the backward pass of attention writes for B sequences of T tokens.
  virtual void attach_gradients(int64_t, AttentionGradients&, int64_t, int64_t) const {}
  /// Adds the gradients of its parameters that follow from `g` to `gradients`, and writes `dgates`,
  /// shaped as gates.
  virtual void backward(int64_t, const AttentionGradients&, const Attention&, const PartRows&,
                        const Tensor& /*dgates*/, const Tensor& /*gradients*/) {}

  /// In incremental decoding: keeps `count` cached tokens of a layer, from `from` on, moves them to
  /// the front and drops the others.
  virtual void shift_cache(int64_t, int64_t /*from*/, int64_t /*count*/) {}

  /// For a layer whose prior rotates.
  virtual Rotation rotation(int64_t) const { return {}; }
  /// Fixed position embedding (T, C), if the prior has one without parameters.
  virtual Tensor position_table() const { return {}; }
};

/// A mechanism's parameters in every layer, except gates, which are rows of the q, k, v product.
class LayerParameters {
 public:
  /// `kind`: prior, mix, scale or normalizer.
  void add(const PartSource& from, int64_t layer, const MechanismParameters& list,
           const char* kind);
  bool any(int64_t layer) const { return !of_layer(layer).empty(); }
  int64_t largest() const;
  /// The parameters of a layer as views of the master weights, valid until the next call.
  std::span<const Tensor> theta(int64_t layer, const Tensor& master_weights);
  /// Likewise for the gradients. Those of untrained parameters are empty.
  std::span<const Tensor> dtheta(int64_t layer, const Tensor& gradients);

 private:
  const std::vector<const Parameter*>& of_layer(int64_t layer) const {
    return layers_.at(static_cast<size_t>(layer));
  }
  std::vector<std::vector<const Parameter*>> layers_;
  std::vector<Tensor> theta_, dtheta_;  // of the current operation
};

/// The part of a family of priors; null if no layer has it.
template <class F>
std::unique_ptr<MechanismPart> make_prior_part(const PartSource& from) = delete;
template <>
inline std::unique_ptr<MechanismPart> make_prior_part<std::monostate>(const PartSource&) {
  return nullptr;
}
template <>
std::unique_ptr<MechanismPart> make_prior_part<TableFamily>(const PartSource& from);
template <>
std::unique_ptr<MechanismPart> make_prior_part<SumsFamily>(const PartSource& from);
template <>
std::unique_ptr<MechanismPart> make_prior_part<FireFamily>(const PartSource& from);
template <>
std::unique_ptr<MechanismPart> make_prior_part<TransformerXlFamily>(const PartSource& from);
template <>
std::unique_ptr<MechanismPart> make_prior_part<ContextualFamily>(const PartSource& from);
template <>
std::unique_ptr<MechanismPart> make_prior_part<RotaryFamily>(const PartSource& from);
template <>
std::unique_ptr<MechanismPart> make_prior_part<EmbeddingFamily>(const PartSource& from);
/// Null: t = 1.
std::unique_ptr<MechanismPart> make_scale_part(const PartSource& from);
std::unique_ptr<MechanismPart> make_normalizer_part(const PartSource& from);
/// Null if no layer has a mix.
std::unique_ptr<MechanismPart> make_mix_part(const PartSource& from);

/// Whether a batch may have random positions or distances from `r`.
inline bool draws_in(const Randomization& r, ModelUse use) {
  return r && (use == ModelUse::training || (use == ModelUse::evaluation && r.in_evaluation));
}

/// Uploads dst (rows, columns) P = f(row, column).
void upload_table(Backend& backend, const Tensor& dst,
                  const std::function<double(int64_t, int64_t)>& f);
/// The part of a planned (B, H, T) that B sequences of T tokens use; empty if `planned` is.
Tensor rows_of(const Tensor& planned, int64_t B, int64_t H, int64_t T);

}  // namespace bamtrain
