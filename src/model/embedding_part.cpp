// Priors of family embedding without parameters: the table that is added to the embedding.

#include "model/mechanism_part.h"

namespace bamtrain {

namespace {

class EmbeddingPart final : public MechanismPart {
 public:
  explicit EmbeddingPart(const PartSource& from) : from_(from) {}

  void plan(Arena& arena, int64_t, int64_t T, ModelUse use) override {
    const Randomization r = from_.randomization(0);
    arena.add("mechanisms.positions", &table_, from_.backend.parameter_dtype(),
              {draws_in(r, use) ? r.range : T, from_.config.width});
  }
  void upload_constants() override {
    const PriorChoice& prior = from_.config.attention.prior.of(0);
    const auto& family = *prior.info().as<EmbeddingFamily>();
    upload_table(from_.backend, table_, [&](int64_t t, int64_t c) {
      return family.value(prior.options, t, c, from_.config.width);
    });
  }
  Tensor position_table() const override { return table_; }

 private:
  PartSource from_;
  Tensor table_;  // (T, C) P
};

}  // namespace

template <>
std::unique_ptr<MechanismPart> make_prior_part<EmbeddingFamily>(const PartSource& from) {
  const auto* const family = from.config.attention.prior.of(0).info().as<EmbeddingFamily>();
  return family && family->value ? std::make_unique<EmbeddingPart>(from) : nullptr;
}

}  // namespace bamtrain
