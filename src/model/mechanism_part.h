#pragma once
// The seam between a kind of mechanism and the model: what a family of priors, the logit scale or
// the normalizer keeps in memory, forms from the parameters, and gives back to them. One object
// serves the layers that have the mechanism; a model has those that any of its layers needs.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "ops/ops.h"

namespace bamtrain {

/// What parts are made from. All outlive them.
struct PartSource {
  const ModelConfig& config;
  const ParameterLayout& layout;
  Backend& backend;
  int64_t training_length;  // T of training

  ModelShape shape() const { return config.shape(training_length); }
  /// Of the prior of a layer.
  Randomization randomization(int64_t layer) const {
    const PriorChoice& prior = config.attention.prior.of(layer);
    return prior.info().randomization(prior.options, training_length);
  }
};

/// What queries and keys are rotated by, (T, D/2) P; empty: they are not.
struct Rotation {
  Tensor cosine, sine;
  bool randomized = false;  // by random positions where the batch has them
};

/// Operands of attention's rows: of the batch at hand.
struct PartRows {
  Tensor gates;      // (B, T, gates of the part) A
  Tensor positions;  // (B, T) i32: of queries in their documents
};

class MechanismPart {
 public:
  virtual ~MechanismPart() = default;
  /// Columns of gates that it has in a layer.
  virtual int64_t gates(int64_t) const { return 0; }
  /// Elements of its largest parameter in a layer.
  virtual int64_t largest_parameter() const { return 0; }
  /// What attention asks of the backend's scratch for it.
  virtual void add_workspace(WorkspaceShape&) const {}
  /// For B sequences of T tokens; in incremental decoding T is the longest.
  virtual void plan(Arena& arena, int64_t B, int64_t T, ModelUse use) = 0;
  /// Error (ExitCode::config) where it knows no rows of as many keys as T tokens may see.
  virtual void check_length(int64_t) const {}
  /// Uploads what depends on no parameter, once. Takes memory.
  virtual void upload_constants() {}
  /// The random distances of the batch at hand: (layers, B, T), the same for all B sequences; null:
  /// distances count. For priors that have such, in training and where evaluation draws too.
  virtual void draw(const int32_t*, int64_t /*B*/, int64_t /*T*/) {}
  /// Forms what depends on the master weights, after that.
  virtual void refresh(const Tensor&) {}

  /// Its part of `a` in a layer, whose q, k (rotated) and first_key, and the parts of mechanisms
  /// before it, are there.
  virtual void attach(int64_t, Attention&, const PartRows&) {}
  /// Where the backward pass of attention writes for B sequences of T tokens.
  virtual void attach_gradients(int64_t, AttentionGradients&, int64_t, int64_t) const {}
  /// Adds what `g` gives to its parameters, and writes `dgates`, shaped as gates.
  virtual void backward(int64_t, const AttentionGradients&, const Attention&, const PartRows&,
                        const Tensor& /*dgates*/, const Tensor& /*gradients*/) {}

  /// In incremental decoding: of the tokens that a layer remembers the `count` from `from` on are
  /// the first from now on, and the only ones.
  virtual void shift_cache(int64_t, int64_t /*from*/, int64_t /*count*/) {}

  /// Of a layer whose prior rotates.
  virtual Rotation rotation(int64_t) const { return {}; }
  /// Fixed position embedding (T, C), where the prior has one without parameters.
  virtual Tensor position_table() const { return {}; }
};

/// A mechanism's parameters in every layer but their gates, which are rows of the product of q, k,
/// v.
class LayerParameters {
 public:
  /// `kind`: prior, mix, scale or normalizer.
  void add(const PartSource& from, int64_t layer, const MechanismParameters& list,
           const char* kind);
  bool any(int64_t layer) const { return !of_layer(layer).empty(); }
  int64_t largest() const;
  /// Those of a layer as parts of the master weights, good until the next call.
  std::span<const Tensor> theta(int64_t layer, const Tensor& master_weights);
  /// Likewise of the gradients; those of parameters that are not trained are empty.
  std::span<const Tensor> dtheta(int64_t layer, const Tensor& gradients);

 private:
  const std::vector<const Parameter*>& of_layer(int64_t layer) const {
    return layers_.at(static_cast<size_t>(layer));
  }
  std::vector<std::vector<const Parameter*>> layers_;
  std::vector<Tensor> theta_, dtheta_;  // of the operation at hand
};

/// The layers whose prior is of one family, by layer. Layers of one prior without parameters of
/// their own share what is formed from them.
class LayersOfFamily {
 public:
  /// `family`: PriorInfo::family.index().
  LayersOfFamily(const PartSource& from, size_t family);
  /// The parameters of their priors.
  LayerParameters parameters(const PartSource& from) const;
  bool has(int64_t layer) const { return places_[static_cast<size_t>(layer)].part >= 0; }
  /// The first of the layers that share.
  bool owns(int64_t layer) const { return places_[static_cast<size_t>(layer)].owner; }
  /// Number of what a layer shares, below parts().
  int64_t part(int64_t layer) const { return places_[static_cast<size_t>(layer)].part; }
  int64_t parts() const { return parts_; }

 private:
  struct Place {
    int64_t part = -1;
    bool owner = false;
  };
  std::vector<Place> places_;
  int64_t parts_ = 0;
};

/// The part of a family of priors; null where no layer has it.
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
/// Null: no layer mixes heads.
std::unique_ptr<MechanismPart> make_mix_part(const PartSource& from);

/// Whether a batch may have what is drawn by `r`.
inline bool draws_in(const Randomization& r, ModelUse use) {
  return r && (use == ModelUse::training || (use == ModelUse::evaluation && r.in_evaluation));
}

/// dst (rows, columns) P = f(row, column).
void upload_table(Backend& backend, const Tensor& dst,
                  const std::function<double(int64_t, int64_t)>& f);
/// The part of a planned (B, H, T) that B sequences of T tokens use; empty of an empty one.
Tensor rows_of(const Tensor& planned, int64_t B, int64_t H, int64_t T);

}  // namespace bamtrain
