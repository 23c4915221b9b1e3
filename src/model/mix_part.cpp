// The mixes of layers. Attention reads their networks from the master weights, and writes their
// gradients to buffers by layer.

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class MixPart final : public MechanismPart {
 public:
  explicit MixPart(const PartSource& from) : from_(from) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      parameters_.add(from, l, from.config.attention.prior.mix_parameters(l, from.shape()), "mix");
      const MixChoice& mix = from.config.attention.prior.mix_of(l);
      const bool biased = from.config.attention.prior.of(l).info().adds_bias();
      forms_.push_back(mix && biased ? mix.info().form(mix.options) : MixForm::add_residual);
    }
  }

  int64_t largest_parameter() const override { return parameters_.largest(); }
  void form(int64_t layer, AttentionForm& f) const override {
    const MixChoice& mix = from_.config.attention.prior.mix_of(layer);
    if (!mix) return;
    f.mix = forms_[static_cast<size_t>(layer)];
    f.mix_hidden = static_cast<int64_t>(mix.options.number("hidden"));
  }

  void plan(Arena& arena, int64_t, int64_t, ModelUse use) override {
    if (use != ModelUse::training) return;
    const Dtype P = from_.backend.parameter_dtype();
    gradients_.resize(static_cast<size_t>(from_.config.layers));
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      const MechanismParameters list =
          from_.config.attention.prior.mix_parameters(l, from_.shape());
      if (list.empty()) continue;
      HeadMixGradients& g = gradients_[static_cast<size_t>(l)];
      arena.add("mechanisms.dmix", &g.dw1, P, {list[0].shape[0], list[0].shape[1]});
      arena.add("mechanisms.dmix", &g.dc1, P, {list[1].shape[0]});
      arena.add("mechanisms.dmix", &g.dw2, P, {list[2].shape[0], list[2].shape[1]});
      arena.add("mechanisms.dmix", &g.dc2, P, {list[3].shape[0]});
    }
  }

  void refresh(const Tensor& master_weights) override { master_weights_ = master_weights; }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    if (!parameters_.any(layer)) return;
    const std::span<const Tensor> theta = parameters_.theta(layer, master_weights_);
    a.mix = {theta[0], theta[1], theta[2], theta[3], forms_[static_cast<size_t>(layer)]};
  }
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t, int64_t) const override {
    g.mix = gradients_[static_cast<size_t>(layer)];
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    if (!parameters_.any(layer)) return;
    const std::span<const Tensor> dtheta = parameters_.dtheta(layer, gradients);
    const Tensor* to = dtheta.data();
    for_tensors(g.mix, [&](const char*, const Tensor& own) { from_.backend.add(*to++, own); });
  }

 private:
  PartSource from_;
  LayerParameters parameters_;
  std::vector<MixForm> forms_;               // by layer
  Tensor master_weights_;                    // of the last refresh
  std::vector<HeadMixGradients> gradients_;  // by layer
};

}  // namespace

std::unique_ptr<MechanismPart> make_mix_part(const PartSource& from) {
  for (const MixChoice& mix : from.config.attention.prior.mixes) {
    if (mix) return std::make_unique<MixPart>(from);
  }
  return nullptr;
}

}  // namespace bamtrain
