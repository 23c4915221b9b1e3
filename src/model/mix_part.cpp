// The mixes of layers. Attention reads their networks from the master weights, and writes their
// gradients to buffers by layer.

#include <initializer_list>

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class MixPart final : public MechanismPart {
 public:
  explicit MixPart(const PartSource& from) : from_(from) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      parameters_.add(from, l, from.config.attention.prior.mix_parameters(l, from.shape()), "mix");
    }
  }

  bool has(int64_t layer) const override { return parameters_.any(layer); }
  void form(int64_t layer, AttentionForm& f) const override {
    const MixChoice& mix = from_.config.attention.prior.mix_of(layer);
    const bool biased = from_.config.attention.prior.of(layer).info().adds_bias();
    f.mix = biased ? mix.info().form(mix.options) : MixForm::add_residual;
    f.mix_hidden = static_cast<int64_t>(mix.options.number("hidden"));
  }

  void plan(Arena& arena, int64_t, int64_t, ModelUse use) override {
    if (use != ModelUse::training) return;
    const Dtype P = from_.backend.parameter_dtype();
    gradients_.resize(static_cast<size_t>(from_.config.layers));
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (!has(l)) continue;
      AttentionForm f;
      form(l, f);
      gradients_[static_cast<size_t>(l)].plan(
          *f.mix, from_.config.heads, f.mix_hidden, P,
          [&arena](const char*, Tensor* t, Dtype dtype, std::initializer_list<int64_t> dims) {
            arena.add("mechanisms.dmix", t, dtype, dims);
          });
    }
  }

  void refresh(const Tensor& master_weights) override { master_weights_ = master_weights; }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    const std::span<const Tensor> theta = parameters_.theta(layer, master_weights_);
    a.mix = {{theta[0], theta[1], theta[2], theta[3]}};
  }
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t, int64_t) const override {
    g.mix = gradients_[static_cast<size_t>(layer)];
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    const std::span<const Tensor> dtheta = parameters_.dtheta(layer, gradients);
    const Tensor* to = dtheta.data();
    for_tensors(g.mix, [&](const char*, const Tensor& own) { from_.backend.add(*to++, own); });
  }

 private:
  PartSource from_;
  LayerParameters parameters_;
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
