// Priors of family contextual: attention reads E directly from the master weights.

#include "model/family_part.h"

namespace bamtrain {

namespace {

class ContextualPart final : public FamilyPart<ContextualFamily> {
 public:
  using FamilyPart::FamilyPart;

  void form(int64_t layer, AttentionForm& f) const override {
    f.bias = BiasForm::contextual;
    f.content_columns = positions(layer);
  }

  void plan(Arena& arena, int64_t, int64_t, ModelUse use) override {
    if (use != ModelUse::training) return;
    arena.add("mechanisms.dpositions", &dpositions_, from_.backend.parameter_dtype(),
              {parameters_.largest()});
  }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    a.bias = ContextualBias{theta(layer)[0]};
  }
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t, int64_t) const override {
    const int64_t D = from_.config.head_dim(), n = positions(layer);
    g.bias = ContextualBiasGradients{dpositions_.slice(0, 0, D * n).reshaped({D, n})};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    from_.backend.add(dtheta(layer, gradients)[0],
                      std::get<ContextualBiasGradients>(g.bias).dpositions);
  }

 private:
  int64_t positions(int64_t layer) const {
    return static_cast<int64_t>(prior(layer).options.number("positions"));
  }

  Tensor dpositions_;  // (D n), for the layer with the largest n, P
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<ContextualFamily>(const PartSource& from) {
  return make_family_part<ContextualPart>(from);
}

}  // namespace bamtrain
