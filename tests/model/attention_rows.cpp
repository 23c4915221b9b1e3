// What an evaluation says of attention's rows.

#include <cmath>

#include "build.h"
#include "catch.h"
#include "core/element.h"
#include "normalizers/registry.h"
#include "ops/reference/reference.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kT = 70;

ModelConfig config_of(const NormalizerChoice& n) {
  ModelConfig c = small_config();
  c.attention.prior = prior("bam");
  c.attention.normalizer = n;
  c.attention.document_mask = true;
  return c;
}

/// A model for batches of B sequences, with the weights of a Run.
struct Evaluated {
  std::unique_ptr<Backend> backend;
  Model model;
  Arena arena;
  Tensor masters;

  Evaluated(const ModelConfig& c, Dtype activations, int64_t B, bool attention_rows = true)
      : backend(activations == Dtype::f64 ? make_reference_backend() : make_cpu_backend()),
        model(c, kT, *backend, activations) {
    arena.add("masters", &masters, backend->parameter_dtype(), {model.parameters().elements()});
    model.plan(arena, B, kT, ModelUse::evaluation, Recompute::none, attention_rows);
    arena.commit();
    model.set_masters(masters);
    const Run weights(c, Dtype::f32, 1, kT);
    for (int64_t i = 0; i < masters.size(); ++i) put(masters, i, get(weights.masters(), i));
    model.refresh();
  }

  /// The sums of `count` sequences of the batch from number `first` on.
  std::vector<double> sums(const Batch& b, int64_t first, int64_t count) {
    const ModelConfig& c = model.config();
    std::vector<double> out(static_cast<size_t>(count * c.layers * 2 * c.heads));
    std::vector<double> losses(static_cast<size_t>(count * kT));
    model.evaluate(b.tokens.data() + first * kT, b.targets.data() + first * kT, count, kT,
                   b.document_start, losses.data(), out.data());
    return out;
  }
};

TEST_CASE("sums over attention's rows are those of the reference, sequence by sequence") {
  for (const NormalizerInfo& info : all_normalizers()) {
    NormalizerChoice n = normalizer(info.name);
    if (info.name == "topk") n = normalizer("topk", {{"k", 4.0}});
    INFO(n.name());
    const ModelConfig c = config_of(n);
    const Batch batch = random_batch(3, kT, c.vocab);
    Evaluated truth(c, Dtype::f64, 3), cpu(c, Dtype::f32, 3);
    const std::vector<double> sums = truth.sums(batch, 0, 3), found = cpu.sums(batch, 0, 3);
    size_t wrong = 0;
    for (size_t i = 0; i < sums.size(); ++i) wrong += !(std::abs(found[i] - sums[i]) < 2e-3 * kT);
    CHECK(wrong == 0);
    std::vector<double> one_by_one;
    for (int64_t b = 0; b < 3; ++b) {
      const std::vector<double> one = cpu.sums(batch, b, 1);
      one_by_one.insert(one_by_one.end(), one.begin(), one.end());
    }
    check_equal(one_by_one, found);
  }
}

TEST_CASE("supports of a model are how many keys its rows see, or keep") {
  ModelConfig c = config_of(normalizer("topk", {{"k", 4.0}}));
  c.attention.document_mask = false;
  const Batch batch = random_batch(1, kT, c.vocab);
  const double kept = 1 + 2 + 3 + 4 * (kT - 3);
  const std::vector<double> sums = Evaluated(c, Dtype::f32, 1).sums(batch, 0, 1);
  for (int64_t l = 0; l < c.layers; ++l) {
    for (int64_t h = 0; h < c.heads; ++h) {
      CHECK(sums[static_cast<size_t>((2 * l + 1) * c.heads + h)] == kept);
    }
  }
}

TEST_CASE("memory for attention's rows is planned where they are asked for") {
  const ModelConfig c = config_of(normalizer("softmax"));
  const Evaluated with(c, Dtype::f32, 2), without(c, Dtype::f32, 2, false);
  CHECK(with.arena.total_bytes() >= without.arena.total_bytes() + 2 * 4 * 2 * c.heads * kT);
}

}  // namespace
}  // namespace bamtrain::testing
