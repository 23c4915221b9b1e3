// Priors of family contextual: attention reads E directly from the master weights.

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class ContextualPart final : public MechanismPart {
 public:
  ContextualPart(const PartSource& from, LayersOfFamily layers)
      : from_(from), layers_(std::move(layers)), parameters_(layers_.parameters(from)) {}

  int64_t largest_parameter() const override { return parameters_.largest(); }
  int64_t content_columns() const override { return largest_parameter() / from_.config.head_dim(); }
  void form(int64_t layer, AttentionForm& f) const override {
    if (layers_.has(layer)) f.bias = BiasForm::contextual;
  }

  void plan(Arena& arena, int64_t, int64_t, ModelUse use) override {
    if (use != ModelUse::training) return;
    arena.add("mechanisms.dpositions", &dpositions_, from_.backend.parameter_dtype(),
              {largest_parameter()});
  }

  void refresh(const Tensor& master_weights) override { master_weights_ = master_weights; }

  void attach(int64_t layer, Attention& a, const PartRows&) override {
    if (layers_.has(layer)) a.bias = ContextualBias{parameters_.theta(layer, master_weights_)[0]};
  }
  void attach_gradients(int64_t layer, AttentionGradients& g, int64_t, int64_t) const override {
    if (!layers_.has(layer)) return;
    const int64_t D = from_.config.head_dim(), n = positions(layer);
    g.bias = ContextualBiasGradients{dpositions_.slice(0, 0, D * n).reshaped({D, n})};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows&,
                const Tensor&, const Tensor& gradients) override {
    if (!layers_.has(layer)) return;
    from_.backend.add(parameters_.dtheta(layer, gradients)[0],
                      std::get<ContextualBiasGradients>(g.bias).dpositions);
  }

 private:
  int64_t positions(int64_t layer) const {
    const Options& options = from_.config.attention.prior.of(layer).options;
    return static_cast<int64_t>(options.number("positions"));
  }

  PartSource from_;
  LayersOfFamily layers_;
  LayerParameters parameters_;
  Tensor master_weights_;  // of the last refresh
  Tensor dpositions_;      // (D n), for the layer with the largest n, P
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<ContextualFamily>(const PartSource& from) {
  LayersOfFamily layers(from, Family(ContextualFamily()).index());
  if (layers.parts() == 0) return nullptr;
  return std::make_unique<ContextualPart>(from, std::move(layers));
}

}  // namespace bamtrain
