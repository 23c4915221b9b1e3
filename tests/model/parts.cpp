// The parts of a pass: before which weights must be there, and after which gradients are final.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "build.h"
#include "catch.h"
#include "ops/compare.h"

namespace bamtrain::testing {
namespace {

/// Weights are not-a-number before the part that reads them first. After each part that goes back,
/// the gradients of its ranges are those of the whole pass, to the bit. Together the ranges are the
/// buffer.
void check_parts(const ModelConfig& c) {
  const Threads one(1);
  constexpr int64_t T = 13;
  INFO(describe(c));
  const Batch batch = random_batch(2, T, c.vocab);
  Run run(c, Dtype::f32, 2, T);
  run.differentiate(batch);
  const std::vector<double> whole = read(run.gradients(), Role::parameter).x;
  std::fill_n(run.gradients().ptr<float>(), run.gradients().size(), 0.0f);
  Model& model = run.model();
  double sum = 0;
  const std::vector<int32_t> lengths = batch.lengths_or_all();
  model.load(batch.tokens.data(), batch.targets.data(), T, batch.document_start, nullptr,
             lengths.data());
  const int parts = model.parts(), middle = parts / 2;
  CHECK(parts == 1 + 2 * std::min<int64_t>(c.layers, 4));
  auto* const weights = run.master_weights().ptr<float>();
  const std::vector<float> values(weights, weights + run.master_weights().size());
  std::fill_n(weights, values.size(), std::nanf(""));
  std::vector<FlatRange> all;
  for (int part = 0; part < parts; ++part) {
    if (part <= middle) {
      for (const FlatRange& r : model.ranges_of(part)) {
        std::copy(values.begin() + r.begin, values.begin() + r.end, weights + r.begin);
      }
    }
    if (part == 0) model.refresh_mechanisms();
    model.forward_backward_part(part, 1.0 / static_cast<double>(2 * T), run.gradients(),
                                Tensor(&sum, Dtype::f64, {1}));
    const std::vector<double> now = read(run.gradients(), Role::parameter).x;
    if (part < middle) continue;
    for (const FlatRange& r : model.ranges_of(parts - 1 - part)) {
      INFO("part " << part << ", elements " << r.begin << " to " << r.end);
      CHECK(r.begin % 16 == 0);  // additions on GPUs ask for it
      CHECK(std::equal(now.begin() + r.begin, now.begin() + r.end, whole.begin() + r.begin));
      all.push_back(r);
    }
    // Parts differ: the first blocks' gradients come last.
    const Parameter& first = *model.parameters().find("model.layers.0.mlp.down_proj.weight");
    const bool is_last = part + 1 == parts;
    const auto zero = [](double x) { return x == 0; };
    CHECK(std::all_of(now.begin() + first.offset, now.begin() + first.offset + first.size, zero) !=
          is_last);
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  int64_t end = 0;
  for (const FlatRange& r : all) {
    CHECK(r.begin == end);
    end = r.end;
  }
  CHECK(end == model.parameters().elements());
}

TEST_CASE("parts of a pass read the weights, and leave the gradients, that they say") {
  for (const PriorConfig& p : every_prior()) {
    ModelConfig c = small_config();
    c.layers = 6;
    c.attention.prior = p;
    c.attention.document_mask = true;
    check_parts(c);
  }
}

TEST_CASE("so they are in models of other blocks, with shared mechanisms and few layers") {
  for (const int64_t layers : {1, 2, 5}) {
    for (const NormPosition position :
         {NormPosition::pre, NormPosition::post, NormPosition::both}) {
      ModelConfig c = small_config();
      c.layers = layers;
      c.norm_position = position;
      c.attention.prior = prior("bam", {{"share", true}});
      c.attention.scale = scale("ssmax");
      c.attention.normalizer = normalizer("entmax", {{"learned", true}});
      c.mlp.kind = MlpKind::gelu;
      c.norm.kind = NormKind::layernorm;
      c.bias = true;
      c.tied = layers != 2;
      check_parts(c);
    }
  }
  ModelConfig c = small_config();
  c.layers = 4;
  c.attention.prior = priors({"rope_local", "cable", "fire", "bam"});
  check_parts(c);
}

TEST_CASE("recordings of other buffers, lengths and parts have other keys") {
  std::set<int64_t> keys;
  size_t count = 0;
  for (const int64_t buffer : {0, 1, 64}) {
    for (const int64_t T : {int64_t{1}, int64_t{512}, int64_t{INT32_MAX}}) {
      for (int part = kWholePass; part < 9; ++part, ++count) {
        keys.insert(graph_key(buffer, T, part));
      }
    }
  }
  CHECK(keys.size() == count);
  CHECK_THROWS_AS(graph_key(0, int64_t{1} << 32), Error);
}

}  // namespace
}  // namespace bamtrain::testing
