// The normalizer: its form, and entmax's alphas if they are learned.

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class NormalizerPart final : public MechanismPart {
 public:
  explicit NormalizerPart(const PartSource& from) : from_(from) {
    const NormalizerChoice& choice = from.config.attention.normalizer;
    form_ = choice.info().form_of(choice.options);
    for (int64_t l = 0; l < from.config.layers; ++l) {
      parameters_.add(from, l, choice.parameters(from.shape()), "normalizer");
    }
  }

  void form(int64_t, AttentionForm& f) const override { f.normalizer = form_; }

  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use) override {
    if (!form_.learned) return;
    const Dtype P = from_.backend.parameter_dtype();
    const int64_t H = from_.config.heads;
    arena.add("mechanisms.alphas", &alphas_, P, {from_.config.layers, H});
    if (use == ModelUse::training) arena.add("mechanisms.dalpha", &dalpha_, P, {B, H, T});
  }

  void refresh(const Tensor& master_weights) override {
    master_weights_ = master_weights;
    for (int64_t l = 0; form_.learned && l < from_.config.layers; ++l) {
      from_.backend.run(AlphaForward{alphas(l), parameters_.theta(l, master_weights)[0]});
    }
  }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    if (form_.learned) a.alphas = alphas(layer);
  }
  void attach_gradients(int64_t, AttentionGradients& g, int64_t B, int64_t T) const override {
    g.dalpha = rows_of(dalpha_, B, from_.config.heads, T);
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    if (!g.dalpha) return;
    from_.backend.run(AlphaBackward{parameters_.dtheta(layer, gradients)[0], g.dalpha,
                                    parameters_.theta(layer, master_weights_)[0]});
  }

 private:
  Tensor alphas(int64_t layer) const {
    return alphas_.slice(0, layer, 1).reshaped({from_.config.heads});
  }

  PartSource from_;
  NormalizerForm form_;
  LayerParameters parameters_;
  Tensor master_weights_;  // of the last refresh
  Tensor alphas_;          // (layers, H) P
  Tensor dalpha_;          // (B, H, T) P
};

}  // namespace

std::unique_ptr<MechanismPart> make_normalizer_part(const PartSource& from) {
  if (!from.config.attention.normalizer) return nullptr;
  return std::make_unique<NormalizerPart>(from);
}

}  // namespace bamtrain
