// The parts of a backward pass, after which some gradients are final.

#include <algorithm>
#include <set>
#include <vector>

#include "build.h"
#include "catch.h"
#include "ops/compare.h"

namespace bamtrain::testing {
namespace {

/// After each part the gradients of its ranges are those of the whole pass, to the bit, and
/// together the ranges are the buffer.
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
  std::vector<FlatRange> all;
  CHECK(model.backward_parts() == 1 + std::min<int64_t>(c.layers, 4));
  for (int part = 0; part < model.backward_parts(); ++part) {
    model.forward_backward_part(part, 1.0 / static_cast<double>(2 * T), run.gradients(),
                                Tensor(&sum, Dtype::f64, {1}));
    const std::vector<double> now = read(run.gradients(), Role::parameter).x;
    for (const FlatRange& r : model.final_after(part)) {
      INFO("part " << part << ", elements " << r.begin << " to " << r.end);
      CHECK(r.begin % 16 == 0);  // additions on GPUs ask for it
      CHECK(std::equal(now.begin() + r.begin, now.begin() + r.end, whole.begin() + r.begin));
      all.push_back(r);
    }
    // Parts differ: the first blocks' gradients come last.
    const Parameter& first = *model.parameters().find("model.layers.0.mlp.down_proj.weight");
    const bool is_last = part + 1 == model.backward_parts();
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

TEST_CASE("gradients are final after the parts of the backward pass that say so") {
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
  const uintptr_t first = 0x7f0000000000;
  size_t count = 0;
  for (const uintptr_t address : {first, first + 256, first + 512, uintptr_t{256}}) {
    for (const int64_t T : {int64_t{1}, int64_t{512}, (int64_t{1} << 22) - 1}) {
      for (int part = kWholePass; part < 6; ++part, ++count) {
        keys.insert(graph_key(reinterpret_cast<const void*>(address), T, part));
      }
    }
  }
  CHECK(keys.size() == count);
  CHECK_THROWS_AS(graph_key(nullptr, int64_t{1} << 22), Error);
}

}  // namespace
}  // namespace bamtrain::testing
