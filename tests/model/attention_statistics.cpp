// The statistics of attention rows that an evaluation reports.

#include <cmath>

#include "build.h"
#include "catch.h"
#include "core/element.h"
#include "normalizers/registry.h"
#include "ops/reference/reference.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kTokens = 70;

ModelConfig normalizer_config(const NormalizerChoice& n) {
  ModelConfig c = small_config();
  c.attention.prior = prior("bam");
  c.attention.normalizer = n;
  c.attention.document_mask = true;
  return c;
}

/// The index of a head's statistic in Model::evaluate's output for one sequence.
size_t index_of(const ModelConfig& c, int64_t layer, AttentionStatistic number, int64_t head) {
  return static_cast<size_t>(
      (layer * kAttentionStatistics + static_cast<int64_t>(number)) * c.heads + head);
}

/// A model for batches of B sequences, with the weights of a Run.
struct Evaluated {
  std::unique_ptr<Backend> backend;
  Model model;
  Arena arena;
  Tensor master_weights;

  Evaluated(const ModelConfig& c, Dtype activations, int64_t B, bool attention_statistics = true)
      : backend(activations == Dtype::f64 ? make_reference_backend() : make_cpu_backend()),
        model(c, kTokens, *backend, activations) {
    arena.add("masters", &master_weights, backend->parameter_dtype(),
              {model.parameters().elements()});
    model.plan(arena, B, kTokens, ModelUse::evaluation, Recompute::none, attention_statistics);
    arena.commit();
    model.set_master_weights(master_weights);
    const Run weights(c, Dtype::f32, 1, kTokens);
    for (int64_t i = 0; i < master_weights.size(); ++i) {
      put(master_weights, i, get(weights.master_weights(), i));
    }
    model.refresh();
  }

  /// The sums of `count` sequences of the batch, starting with sequence `first`.
  std::vector<double> sums(const Batch& b, int64_t first, int64_t count) {
    const ModelConfig& c = model.config();
    std::vector<double> out(static_cast<size_t>(count * c.layers * kAttentionStatistics * c.heads));
    std::vector<double> losses(static_cast<size_t>(count * kTokens));
    model.evaluate(b.tokens.data() + first * kTokens, b.targets.data() + first * kTokens, count,
                   kTokens, b.document_start, losses.data(), out.data());
    return out;
  }
};

TEST_CASE("sums over attention's rows are those of the reference, sequence by sequence") {
  for (const NormalizerInfo& info : all_normalizers()) {
    NormalizerChoice n = normalizer(info.name);
    if (info.name == "topk") n = normalizer("topk", {{"k", 4.0}});
    INFO(n.name());
    const ModelConfig c = normalizer_config(n);
    const Batch batch = random_batch(3, kTokens, c.vocab);
    Evaluated truth(c, Dtype::f64, 3), cpu(c, Dtype::f32, 3);
    const std::vector<double> sums = truth.sums(batch, 0, 3), found = cpu.sums(batch, 0, 3);
    size_t wrong = 0;
    for (size_t i = 0; i < sums.size(); ++i)
      wrong += !(std::abs(found[i] - sums[i]) < 2e-3 * kTokens);
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
  ModelConfig c = normalizer_config(normalizer("topk", {{"k", 4.0}}));
  c.attention.document_mask = false;
  const Batch batch = random_batch(1, kTokens, c.vocab);
  const double kept = 1 + 2 + 3 + 4 * (kTokens - 3);
  const std::vector<double> sums = Evaluated(c, Dtype::f32, 1).sums(batch, 0, 1);
  for (int64_t l = 0; l < c.layers; ++l) {
    for (int64_t h = 0; h < c.heads; ++h) {
      CHECK(sums[index_of(c, l, AttentionStatistic::nonzero_keys, h)] == kept);
    }
  }
}

TEST_CASE("tiles of a model that are live are those that its normalizer leaves weight in") {
  // The last group of 70 rows sees two tiles. All logits are 0, so alibi's slopes determine the
  // weights.
  const auto tiles_of = [](ModelConfig c, int64_t T) {
    const auto backend = make_cpu_backend();
    Model model(c, T, *backend, Dtype::f32);
    Arena arena;
    Tensor master_weights;
    arena.add("masters", &master_weights, Dtype::f32, {model.parameters().elements()});
    model.plan(arena, 1, T, ModelUse::evaluation, Recompute::none, true);
    arena.commit();
    model.set_master_weights(master_weights);  // zero: logits are the bias only
    model.refresh();
    const std::vector<int32_t> tokens(static_cast<size_t>(T), 1);
    std::vector<double> losses(static_cast<size_t>(T));
    std::vector<double> out(static_cast<size_t>(c.layers * kAttentionStatistics * c.heads));
    model.evaluate(tokens.data(), tokens.data(), 1, T, std::nullopt, losses.data(), out.data());
    std::vector<std::pair<double, double>> of_heads;
    for (int64_t h = 0; h < c.heads; ++h) {
      of_heads.emplace_back(out[index_of(c, 1, AttentionStatistic::nonzero_blocks, h)],
                            out[index_of(c, 1, AttentionStatistic::visible_blocks, h)]);
    }
    return of_heads;
  };
  ModelConfig c = normalizer_config(normalizer("softmax"));
  c.attention.prior = prior("alibi");
  c.attention.document_mask = false;
  // 20 groups of 16 rows: 4 groups for each number of tiles from 1 to 5.
  for (const auto& [live, visible] : tiles_of(c, 320)) {
    CHECK(visible == 4 * (1 + 2 + 3 + 4 + 5));
    CHECK(live == visible);
  }
  // With a slope, topk of one key keeps the row's own key: one tile per group.
  c.attention.normalizer = normalizer("topk", {{"k", 1.0}});
  for (const auto& [live, visible] : tiles_of(c, 320)) {
    CHECK(visible == 60);
    CHECK(live == 20);
  }
  // With 16 keys, a group's first row reaches 15 keys back. If the group begins a tile, these are
  // in the tile before.
  c.attention.normalizer = normalizer("topk", {{"k", 16.0}});
  for (const auto& [live, visible] : tiles_of(c, 330)) {
    CHECK(visible == 60 + 6);
    CHECK(live == 21 + 5);
  }
}

TEST_CASE("memory for attention's rows is planned where they are asked for") {
  const ModelConfig c = normalizer_config(normalizer("softmax"));
  const Evaluated with(c, Dtype::f32, 2), without(c, Dtype::f32, 2, false);
  CHECK(with.arena.total_bytes() >= without.arena.total_bytes() + 2 * 4 * 2 * c.heads * kTokens);
}

}  // namespace
}  // namespace bamtrain::testing
