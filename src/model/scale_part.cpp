// The logit scale: t of every row of the current layer.

#include <algorithm>

#include "model/mechanism_part.h"
#include "model/mechanisms.h"

namespace bamtrain {

namespace {

class ScalePart final : public MechanismPart {
 public:
  explicit ScalePart(const PartSource& from)
      : from_(from),
        info_(from.config.attention.scale.info()),
        constants_(info_.constants_of(from.config.attention.scale.options, from.shape())) {
    const ScaleChoice& scale = from.config.attention.scale;
    for (int64_t l = 0; l < from.config.layers; ++l) {
      parameters_.add(from, l, scale.parameters(from.shape()), "scale");
      const PriorInfo& prior = from.config.attention.prior.of(l).info();
      first_heads_.push_back(prior.first_scaled_head ? prior.first_scaled_head(from.config.heads)
                                                     : 0);
    }
  }

  /// Two gates per head.
  int64_t gates(int64_t) const override {
    return info_.is<AdaptiveKind>() ? 2 * from_.config.heads : 0;
  }
  int64_t largest_parameter() const override { return parameters_.largest(); }
  void form(int64_t layer, AttentionForm& f) const override {
    f.scale = true;
    f.scale_bias = scale_bias(from_.config, layer);
  }

  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use) override {
    const bool training = use == ModelUse::training;
    require(!training || !info_.evaluation_only, "a scale that trains");
    const Dtype P = from_.backend.parameter_dtype();
    arena.add("mechanisms.scale", &rows_, P, {B, from_.config.heads, T});
    if (training) arena.add("mechanisms.dscale", &drows_, P, {B, from_.config.heads, T});
  }

  void check_length(int64_t T) const override {
    const auto* const length = info_.as<LengthKind>();
    if (!length || !length->longest) return;
    const int64_t longest = length->longest(constants_);
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      const int64_t window = layer_window(from_.config, l, from_.training_length);
      const int64_t most = from_.config.attention.most_keys(T, window);
      if (most <= longest) continue;
      throw Error(
          ExitCode::config, "model.attention.scale.lengths",
          "at most " + std::to_string(longest) + " visible keys, the size of the learned table",
          std::to_string(most), "use shorter sequences, or train with a longer table");
    }
  }

  void refresh(const Tensor& master_weights) override { master_weights_ = master_weights; }

  void attach(int64_t layer, Attention& a, const PartRows& rows) override {
    const Tensor t = rows_of(rows_, a.first_key.shape[0], from_.config.heads, a.first_key.shape[1]);
    form(layer, t, a, rows.gates);
    a.scale = t;
  }
  void attach_gradients(int64_t, AttentionGradients& g, int64_t B, int64_t T) const override {
    g.dscale = rows_of(drows_, B, from_.config.heads, T);
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                const PartRows& rows, const Tensor& dgates, const Tensor& gradients) override {
    Backend& backend = from_.backend;
    const std::span<const Tensor> theta = parameters_.theta(layer, master_weights_);
    const std::span<const Tensor> dtheta = parameters_.dtheta(layer, gradients);
    if (info_.is<AdaptiveKind>()) {
      backend.run(GatedRowsBackward{dgates, dtheta, g.dscale, rows.gates, a.first_key, gated(layer),
                                    theta, a.last_key});
    } else {
      backend.run(ScaleBackward{dtheta, g.dscale, a.first_key, use(layer), theta, a.last_key});
    }
  }

 private:
  void form(int64_t layer, const Tensor& t, const Attention& a, const Tensor& gates) {
    Backend& backend = from_.backend;
    if (info_.is<LengthKind>()) {
      backend.run(ScaleForward{t, a.first_key, use(layer),
                               parameters_.theta(layer, master_weights_), a.last_key});
    } else if (info_.is<AdaptiveKind>()) {
      backend.run(GatedRowsForward{t, gates, a.first_key, gated(layer),
                                   parameters_.theta(layer, master_weights_), a.last_key});
    } else {
      backend.attention_entropy(t, a);
      backend.run(EntropyScale{t, t, use(layer).first_head});
    }
  }
  ScaleUse use(int64_t layer) const {
    return {info_, constants_, first_heads_[static_cast<size_t>(layer)]};
  }
  GatedUse gated(int64_t layer) const {
    return {GatedRule::adaptive, constants_, use(layer).first_head};
  }

  PartSource from_;
  const ScaleInfo& info_;
  FormulaConstants constants_;
  LayerParameters parameters_;
  std::vector<int64_t> first_heads_;  // by layer: t = 1 in earlier heads
  Tensor master_weights_;             // of the last refresh
  Tensor rows_, drows_;               // (B, H, T) P: t of the current layer, and its gradient
};

}  // namespace

std::unique_ptr<MechanismPart> make_scale_part(const PartSource& from) {
  if (from.config.attention.scale.info().is<std::monostate>()) return nullptr;
  return std::make_unique<ScalePart>(from);
}

}  // namespace bamtrain
