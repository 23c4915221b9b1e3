// A text that grows: the logits after every token are those of the whole text at once.

#include <algorithm>
#include <span>

#include "build.h"
#include "catch.h"
#include "core/error.h"
#include "normalizers/registry.h"
#include "ops/check/check.h"
#include "ops/cpu/cpu.h"
#include "ops/reference/reference.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

using Sizes = std::vector<int64_t>;

/// Logits (T, V) after every token of a text that grows by pieces of these sizes, over and over.
std::vector<double> grown(Run& run, const Batch& text, const Sizes& sizes) {
  const int64_t V = run.model().config().vocab, T = text.T;
  const Memory out(run.masters().dtype, {T, V}, 0);
  int64_t at = 0;
  for (size_t piece = 0; at < T; ++piece) {
    const int64_t n = std::min(sizes[piece % sizes.size()], T - at);
    run.model().append(text.tokens.data() + at, n, text.document_start,
                       out.tensor().slice(0, at, n));
    at += n;
  }
  REQUIRE(run.model().appended() == T);
  return read(out.tensor(), Role::parameter).x;
}

/// T of training: shorter than the text where every mechanism knows longer ones.
int64_t trained_length(const ModelConfig& c, int64_t T) {
  for (const PriorChoice& p : c.attention.prior.pattern) {
    if (p.name() == "learned") return T;
  }
  return c.attention.scale.name() == "by_length" ? T : T / 3;
}

/// As in backends.cpp: what rounding makes of the logits of a whole text.
double tolerance(Dtype t) { return t == Dtype::f32 ? 100 * kF32 : 5 * kBf16; }

void check_grown(const ModelConfig& c, const Batch& text, const std::vector<Sizes>& all_sizes,
                 const std::vector<Dtype>& dtypes) {
  const int64_t trained = trained_length(c, text.T);
  for (const Dtype t : dtypes) {
    Run whole(c, Dtype::f64, 1, text.T, ModelUse::evaluation, trained);
    Run run(c, t, 1, text.T, ModelUse::generation, trained);
    if (t == Dtype::bf16) {
      round_weights(whole);
      round_weights(run);
    }
    const std::vector<double> truth = whole.logits(text);
    for (const Sizes& sizes : all_sizes) {
      run.model().forget();
      const std::vector<double> found = grown(run, text, sizes);
      INFO(describe(c) << " in " << name_of(t) << ", first piece " << sizes[0]);
      if (t == Dtype::f64) {
        for (size_t i = 0; i < truth.size(); ++i) {
          if (!(std::abs(found[i] - truth[i]) <= 1e-10)) {
            FAIL("logit " << i << ": " << found[i] << ", not " << truth[i]);
          }
        }
      } else {
        CHECK(distance(found, truth) <= tolerance(t) * norm(truth));
      }
    }
  }
}

const Sizes kOdd = {1, 7, 64, 3, 13, 1, 1, 37};

TEST_CASE("a growing text has the logits of the whole text, for every prior and scale") {
  const Threads one(1);  // many tiny passes
  for (const PriorConfig& p : every_prior()) {
    for (const ScaleInfo& s : all_scales()) {
      ModelConfig c = small_config();
      c.attention.prior = p;
      c.attention.scale = scale(s.name);
      check_grown(c, random_batch(1, 90, c.vocab), {{1}, kOdd}, {Dtype::f64, Dtype::f32});
      c.attention.document_mask = true;
      c.attention.window = 11;
      c.bias = true;
      check_grown(c, random_batch(1, 90, c.vocab), {kOdd},
                  with_products({Dtype::f64, Dtype::bf16}));
    }
  }
}

TEST_CASE("a growing text has the logits of the whole text, for every prior and normalizer") {
  const Threads one(1);  // many tiny passes
  for (const PriorConfig& p : every_prior()) {
    for (const NormalizerInfo& n : all_normalizers()) {
      ModelConfig c = small_config();
      c.attention.prior = p;
      c.attention.normalizer = normalizer(n.name);
      if (n.name == "topk") c.attention.normalizer = normalizer(n.name, {{"k", 4.0}});
      c.attention.document_mask = true;
      check_grown(c, random_batch(1, 90, c.vocab), {kOdd}, {Dtype::f64, Dtype::f32});
    }
  }
}

TEST_CASE("a growing text has the logits of the whole text, the bias scaled too") {
  const Threads one(1);  // many tiny passes
  for (const PriorConfig& p : every_prior()) {
    ModelConfig c = small_config();
    c.attention.prior = p;
    c.attention.scale = scale("ssmax", {{"scale_bias", "true"}});
    c.attention.document_mask = true;
    c.kv_heads = 1;
    check_grown(c, random_batch(1, 90, c.vocab), {kOdd}, {Dtype::f64, Dtype::f32});
  }
}

TEST_CASE("a growing text of layers of several priors has the logits of the whole text") {
  const Threads one(1);  // many tiny passes
  for (const std::vector<std::string>& list :
       {std::vector<std::string>{"fire", "cable", "t5", "kcable", "rope_local", "bam"},
        {"transformer_xl", "dape over kerple", "cope", "transformer_xl"}}) {
    for (const bool documents : {false, true}) {
      ModelConfig c = small_config();
      c.layers = static_cast<int64_t>(list.size());
      c.attention.prior = priors(list);
      c.attention.scale = scale("adaptive");
      c.attention.document_mask = documents;
      c.mlp.kind = MlpKind::gelu;
      c.norm.kind = NormKind::layernorm;
      c.bias = c.tied = true;
      check_grown(c, random_batch(1, 90, c.vocab), {{1}, kOdd, {90}},
                  with_products({Dtype::f64, Dtype::f32, Dtype::bf16}));
    }
  }
}

TEST_CASE("a growing text of any block has the logits of the whole text") {
  const Threads one(1);  // many tiny passes
  for (NormPosition position : {NormPosition::pre, NormPosition::post, NormPosition::both}) {
    for (const char* prior_name : {"rope", "cable", "learned"}) {
      ModelConfig c = small_config();
      c.norm_position = position;
      c.own_head_dim = 8;
      c.embed_scale = true;
      c.mlp.kind = prior_name == std::string("rope") ? MlpKind::gelu_erf : MlpKind::relu;
      c.attention.prior = prior(prior_name);
      c.attention.document_mask = true;
      check_grown(c, random_batch(1, 90, c.vocab), {{1}, kOdd},
                  with_products({Dtype::f64, Dtype::f32, Dtype::bf16}));
    }
  }
}

TEST_CASE("a growing text past the tiles of attention and the largest piece has its logits") {
  for (const char* name : {"bam", "cable", "fire", "rope", "transformer_xl"}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(name);
    c.attention.scale = scale("ssmax");
    check_grown(c, random_batch(1, 2 * kMostAppended + 41, c.vocab), {{kMostAppended}, {67, 1}},
                {Dtype::f32});
  }
}

TEST_CASE("a growing text is the same on a backend that compares two") {
  const Threads one(1);  // many tiny passes
  for (const auto& [prior_name, scale_name] : {std::pair{"cable", "entropy"},
                                               {"fire", "adaptive"},
                                               {"rope", "ssmax"},
                                               {"transformer_xl", "entropy"}}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(prior_name);
    c.attention.scale = scale(scale_name);
    c.attention.document_mask = true;
    const Batch text = random_batch(1, 40, c.vocab);
    Run plain(c, Dtype::f32, 1, 40, ModelUse::generation);
    Run checked(
        c, Dtype::f32, 1, 40,
        Device{make_check_backend(make_cpu_backend(), make_reference_backend()), &host_memory()},
        Recompute::none, ModelUse::generation);
    check_equal(grown(checked, text, kOdd), grown(plain, text, kOdd));
  }
}

void check_threads_of_growing(const ModelConfig& c) {
  const Batch text = random_batch(1, 90, c.vocab);
  std::vector<double> alone;
  for (const int threads : {1, 2, 4}) {
    const Threads limit(threads);
    Run run(c, Dtype::f32, 1, 90, ModelUse::generation);
    if (threads == 2) {
      Batch other = text;
      std::reverse(other.tokens.begin(), other.tokens.end());
      grown(run, other, {31});
      run.model().forget();
    }
    const std::vector<double> found = grown(run, text, kOdd);
    if (alone.empty()) alone = found;
    check_equal(found, alone);
  }
}

TEST_CASE("a growing text has the same bits on any number of threads, and after another text") {
  ModelConfig c = small_config();
  c.attention.scale = scale("ssmax");
  c.attention.document_mask = true;
  for (const std::vector<std::string>& list :
       {std::vector<std::string>{"cable", "bam"}, {"dape over kerple", "cope"}}) {
    c.attention.prior = priors(list);
    check_threads_of_growing(c);
  }
}

// Rows of logits and biases of all heads are more than the keys and values of one.
TEST_CASE("a short text of many heads, mixed, has the logits of the whole text") {
  ModelConfig c = small_config();
  c.width = 80;
  c.heads = 20;
  c.kv_heads = 1;
  c.own_head_dim = 4;
  c.attention.prior = priors({"dape over kerple"});
  check_grown(c, random_batch(1, 90, c.vocab), {{1}, kOdd}, {Dtype::f64, Dtype::f32});
}

TEST_CASE("tables refuse a text that would grow past their end, and leave it as it was") {
  ModelConfig c = small_config();
  c.attention.prior = prior("learned");
  const Batch text = random_batch(1, 20, c.vocab);
  Run run(c, Dtype::f32, 1, 20, ModelUse::generation, 19);
  CHECK_NOTHROW(run.model().check_length(19));
  CHECK_THROWS_AS(run.model().check_length(20), Error);
  run.model().append(text.tokens.data(), 19, {}, {});
  CHECK_THROWS_AS(run.model().append(text.tokens.data() + 19, 1, {}, {}), Error);
  CHECK(run.model().appended() == 19);

  c.attention.prior = prior("nope");
  c.attention.scale = scale("by_length");
  Run scaled(c, Dtype::f32, 1, 20, ModelUse::generation, 19);
  CHECK_THROWS_AS(scaled.model().check_length(20), Error);
  c.attention.window = 19;
  Run windowed(c, Dtype::f32, 1, 20, ModelUse::generation, 19);
  CHECK_NOTHROW(windowed.model().check_length(20));
}

}  // namespace
}  // namespace bamtrain::testing
