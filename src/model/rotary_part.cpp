// Priors of family rotary: cosines and sines by position.

#include <algorithm>
#include <cmath>

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class RotaryPart final : public MechanismPart {
 public:
  RotaryPart(const PartSource& from, LayersOfFamily layers)
      : from_(from), layers_(std::move(layers)) {
    for (int64_t l = 0; l < from.config.layers; ++l) {
      const PriorChoice& p = prior(l);
      const auto* const family = p.info().as<RotaryFamily>();
      known_.push_back(family ? family->randomized_positions(p.options, from.training_length) : 0);
    }
  }

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const int64_t known = randomized_positions();
    if (known > 0 && T > known) {
      throw Error(ExitCode::config, "model.attention.prior.randomized_length",
                  "at most " + std::to_string(known) + " positions, those that training draws from",
                  std::to_string(T), "evaluate at shorter lengths, or train with more positions");
    }
    const int64_t rows = use == ModelUse::training && known > 0 ? known : T;
    const int64_t half = from_.config.head_dim() / 2;
    for (auto [name, t] : {std::pair{"mechanisms.cosine", &cosine_}, {"mechanisms.sine", &sine_}}) {
      arena.add(name, t, from_.backend.parameter_dtype(), {layers_.parts(), rows, half});
    }
  }

  void upload_constants() override {
    for (int64_t l = 0; l < from_.config.layers; ++l) {
      if (!layers_.has(l) || !layers_.owns(l)) continue;
      const PriorChoice& p = prior(l);
      const auto& family = *p.info().as<RotaryFamily>();
      const std::vector<double> frequency =
          family.inverse_frequencies(p.options, from_.config.head_dim(), from_.training_length);
      const double amplitude = family.amplitude(p.options);
      const auto angle = [&](int64_t t, int64_t c) {
        return static_cast<double>(t) * frequency[static_cast<size_t>(c)];
      };
      const Rotation r = rotation(l);
      upload_table(from_.backend, r.cosine,
                   [&](int64_t t, int64_t c) { return amplitude * std::cos(angle(t, c)); });
      upload_table(from_.backend, r.sine,
                   [&](int64_t t, int64_t c) { return amplitude * std::sin(angle(t, c)); });
    }
  }

  int64_t randomized_positions() const override {
    return *std::max_element(known_.begin(), known_.end());
  }

  Rotation rotation(int64_t layer) const override {
    if (!layers_.has(layer)) return {};
    const auto own = [&](const Tensor& t) {
      return t.slice(0, layers_.part(layer), 1).reshaped({t.shape[1], t.shape[2]});
    };
    return {own(cosine_), own(sine_), known_[static_cast<size_t>(layer)] > 0};
  }

 private:
  const PriorChoice& prior(int64_t layer) const { return from_.config.attention.prior.of(layer); }

  PartSource from_;
  LayersOfFamily layers_;
  std::vector<int64_t> known_;  // by layer: RotaryFamily::randomized_positions
  Tensor cosine_, sine_;        // (parts, T, D/2) P; in training with random positions as many rows
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<RotaryFamily>(const PartSource& from) {
  LayersOfFamily layers(from, Family(RotaryFamily()).index());
  if (layers.parts() == 0) return nullptr;
  return std::make_unique<RotaryPart>(from, std::move(layers));
}

}  // namespace bamtrain
