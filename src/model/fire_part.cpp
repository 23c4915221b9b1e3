// Priors of family fire: a piecewise linear function per part, recomputed when parameters change.

#include "model/family_part.h"
#include "priors/fire.h"

namespace bamtrain {

namespace {

class FirePart final : public FamilyPart<FireFamily> {
 public:
  FirePart(const PartSource& from, LayersOfFamily layers) : FamilyPart(from, std::move(layers)) {
    thresholds_.resize(static_cast<size_t>(from.config.layers));
    slopes_.resize(thresholds_.size());
    for (int64_t l = 0; l < from.config.layers; ++l) {
      if (!has(l)) continue;
      const auto n = static_cast<size_t>(l);
      thresholds_[n] = family(l).threshold_length(prior(l).options, from.training_length);
      slopes_[n] = family(l).negative_slope(prior(l).options);
    }
  }

  int64_t largest_parameter() const override { return parameters_.largest(); }
  void form(int64_t, AttentionForm& f) const override { f.bias = BiasForm::fire; }

  void plan(Arena& arena, int64_t B, int64_t T, ModelUse use) override {
    const Dtype P = from_.backend.parameter_dtype();
    const int64_t n = layers_.parts(), H = from_.config.heads;
    for (Tensor* t : {&tables_.psi, &tables_.psi_dc, &tables_.inverse}) {
      arena.add("mechanisms.fire", t, P, {n, T});
    }
    arena.add("mechanisms.fire_ends", &tables_.ends, Dtype::i32, {n, T, kFireHidden});
    arena.add("mechanisms.fire", &tables_.slope, P, {n, H, kFireSegments});
    arena.add("mechanisms.fire", &tables_.offset, P, {n, H, kFireSegments});
    if (use != ModelUse::training) return;
    arena.add("mechanisms.dfire", &gradients_.dfire, Dtype::f64, {H, kFireSegments, 2});
    arena.add("mechanisms.dfire_u", &gradients_.dfire_u, P, {B, H, T});
    arena.add("mechanisms.dfire_psi", &gradients_.dfire_psi, P, {B, H, T});
  }

  void refresh(const Tensor& master_weights) override {
    FamilyPart::refresh(master_weights);
    for_owners([&](int64_t l) {
      from_.backend.run(FireForward{tables(l), theta(l), threshold(l), slope(l)});
    });
  }

  void attach(int64_t layer, Attention& a, const PartRows& rows) override {
    a.bias = FireBias{tables(layer), rows.positions};
  }
  void attach_gradients(int64_t, AttentionGradients& g, int64_t B, int64_t T) const override {
    const int64_t H = from_.config.heads;
    g.bias = FireBiasGradients{gradients_.dfire, rows_of(gradients_.dfire_u, B, H, T),
                               rows_of(gradients_.dfire_psi, B, H, T)};
  }
  void backward(int64_t layer, const AttentionGradients& g, const Attention&, const PartRows& rows,
                const Tensor&, const Tensor& gradients) override {
    from_.backend.run(FireBackward{dtheta(layer, gradients), std::get<FireBiasGradients>(g.bias),
                                   rows.positions, theta(layer), threshold(layer), slope(layer)});
  }

 private:
  double threshold(int64_t layer) const { return thresholds_[static_cast<size_t>(layer)]; }
  double slope(int64_t layer) const { return slopes_[static_cast<size_t>(layer)]; }
  FireTables tables(int64_t layer) const {
    const int64_t n = layers_.part(layer);
    FireTables own = tables_;
    for_tensors(own, [n](const char*, Tensor& t) {
      const Tensor part = t.slice(0, n, 1);
      t = t.rank == 2 ? part.reshaped({t.shape[1]}) : part.reshaped({t.shape[1], t.shape[2]});
    });
    return own;
  }

  std::vector<double> thresholds_;  // by layer: L0
  std::vector<double> slopes_;      // by layer: FireParameters::negative_slope
  FireTables tables_;               // (parts, ...) each
  FireBiasGradients gradients_;
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<FireFamily>(const PartSource& from) {
  return make_family_part<FirePart>(from);
}

}  // namespace bamtrain
