// Priors of family rotary: cosines and sines by position.

#include <cmath>

#include "model/family_part.h"

namespace bamtrain {

namespace {

class RotaryPart final : public FamilyPart<RotaryFamily> {
 public:
  RotaryPart(const PartSource& from, LayersOfFamily layers) : FamilyPart(from, std::move(layers)) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      const Randomization own = layers_.has(l) ? from.randomization(l) : Randomization();
      randomized_.push_back(own.range > 0);
      if (own) randomization_ = own;
    }
  }

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const int64_t rows = draws_in(randomization_, use) ? randomization_.range : T;
    const int64_t half = from_.config.head_dim() / 2;
    for (auto [name, t] : {std::pair{"mechanisms.cosine", &cosine_}, {"mechanisms.sine", &sine_}}) {
      arena.add(name, t, from_.backend.parameter_dtype(), {layers_.parts(), rows, half});
    }
  }

  void upload_constants() override {
    for_owners([&](int64_t l) {
      const Options& options = prior(l).options;
      const std::vector<double> frequency =
          family(l).inverse_frequencies(options, from_.config.head_dim(), from_.training_length);
      const double amplitude = family(l).amplitude(options);
      const auto angle = [&](int64_t t, int64_t c) {
        return static_cast<double>(t) * frequency[static_cast<size_t>(c)];
      };
      const Rotation r = rotation(l);
      upload_table(from_.backend, r.cosine,
                   [&](int64_t t, int64_t c) { return amplitude * std::cos(angle(t, c)); });
      upload_table(from_.backend, r.sine,
                   [&](int64_t t, int64_t c) { return amplitude * std::sin(angle(t, c)); });
    });
  }

  Rotation rotation(int64_t layer) const override {
    const auto own = [&](const Tensor& t) {
      return t.slice(0, layers_.part(layer), 1).reshaped({t.shape[1], t.shape[2]});
    };
    return {own(cosine_), own(sine_), randomized_[static_cast<size_t>(layer)]};
  }

 private:
  std::vector<bool> randomized_;  // by layer
  Randomization randomization_;   // of those
  Tensor cosine_, sine_;  // (parts, T, D/2) P; with random positions, as many rows as their range
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<RotaryFamily>(const PartSource& from) {
  return make_family_part<RotaryPart>(from);
}

}  // namespace bamtrain
