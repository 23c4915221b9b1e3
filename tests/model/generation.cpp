// Incremental decoding: the logits after every token equal those of one pass over the whole text.

#include <algorithm>
#include <cmath>
#include <vector>

#include "build.h"
#include "catch.h"
#include "core/error.h"
#include "core/ignore_index.h"
#include "normalizers/registry.h"
#include "ops/check/check.h"
#include "ops/cpu/cpu.h"
#include "ops/reference/reference.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

using Sizes = std::vector<int64_t>;

void begin_text(Run& run) { run.model().begin_decoding(std::vector<int64_t>{0}); }

/// Logits (T, V) after every token of incremental decoding, in chunks whose sizes repeat `sizes`.
std::vector<double> grown(Run& run, const Batch& text, const Sizes& sizes) {
  const int64_t V = run.model().config().vocab, T = text.T;
  const Memory out(run.master_weights().dtype, {T, V}, 0);
  begin_text(run);
  int64_t at = 0;
  for (size_t piece = 0; at < T; ++piece) {
    const int64_t n = std::min(sizes[piece % sizes.size()], T - at);
    run.model().append(text.tokens.data() + at, n, text.document_start,
                       out.tensor().slice(0, at, n));
    at += n;
  }
  REQUIRE(run.model().cached_tokens() == T);
  return read(out.tensor(), Role::parameter).x;
}

/// The training length: shorter than the text where every mechanism extrapolates.
int64_t trained_length(const ModelConfig& c, int64_t T) {
  for (const PriorChoice& p : c.attention.prior.pattern) {
    if (p.name() == "learned") return T;
  }
  return c.attention.scale.name() == "by_length" ? T : T / 3;
}

/// The rounding error of a whole text's logits, as in backends.cpp.
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

TEST_CASE("incremental decoding has the logits of the whole text, for every prior and scale") {
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

TEST_CASE("incremental decoding has the logits of the whole text, for every prior and normalizer") {
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

TEST_CASE("incremental decoding has the logits of the whole text, the bias scaled too") {
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

TEST_CASE("incremental decoding of layers of several priors has the logits of the whole text") {
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

TEST_CASE("incremental decoding of any block has the logits of the whole text") {
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

TEST_CASE("incremental decoding past the tiles of attention and the largest piece has its logits") {
  for (const char* name : {"bam", "cable", "fire", "rope", "transformer_xl"}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(name);
    c.attention.scale = scale("ssmax");
    check_grown(c, random_batch(1, 2 * kMaxPrefillChunk + 41, c.vocab),
                {{kMaxPrefillChunk}, {67, 1}}, {Dtype::f32});
  }
}

TEST_CASE("incremental decoding is the same on a backend that compares two") {
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
    }
    const std::vector<double> found = grown(run, text, kOdd);
    if (alone.empty()) alone = found;
    check_equal(found, alone);
  }
}

TEST_CASE(
    "incremental decoding has the same bits on any number of threads, and after another text") {
  ModelConfig c = small_config();
  c.attention.scale = scale("ssmax");
  c.attention.document_mask = true;
  for (const std::vector<std::string>& list :
       {std::vector<std::string>{"cable", "bam"}, {"dape over kerple", "cope"}}) {
    c.attention.prior = priors(list);
    check_threads_of_growing(c);
  }
}

// Rows of logits and biases of all heads are larger than the keys and values of one head.
TEST_CASE("a short text of many heads, mixed, has the logits of the whole text") {
  ModelConfig c = small_config();
  c.width = 80;
  c.heads = 20;
  c.kv_heads = 1;
  c.own_head_dim = 4;
  c.attention.prior = priors({"dape over kerple"});
  check_grown(c, random_batch(1, 90, c.vocab), {{1}, kOdd}, {Dtype::f64, Dtype::f32});
}

// --- windows ------------------------------------------------------------------------------------

TEST_CASE("incremental decoding whose rows see a window keeps no more, and has its logits") {
  for (const std::vector<std::string>& list : {std::vector<std::string>{"bam"},
                                               {"cable", "rope"},
                                               {"kcable", "rope_local"},
                                               {"fire", "t5"},
                                               {"transformer_xl"},
                                               {"cope"},
                                               {"dape over alibi"}}) {
    for (const int64_t window : {1, 70, 300}) {
      ModelConfig c = small_config();
      c.attention.prior = priors(list);
      c.attention.scale = scale("ssmax");
      c.attention.window = window;
      c.attention.document_mask = window == 300;
      const Batch text = random_batch(1, 3 * kMaxPrefillChunk + 41, c.vocab);
      const std::vector<Sizes> sizes = {{kMaxPrefillChunk}, {67, 1, 200}};
      check_grown(c, text, window == 70 ? sizes : std::vector<Sizes>{{67, 1, 200}}, {Dtype::f32});
    }
  }
}

TEST_CASE("a text whose rows see a window takes the memory of what they see") {
  ModelConfig c = small_config();
  c.attention.prior = priors({"bam", "cable"});
  const auto bytes = [&](int64_t window, int64_t length) {
    c.attention.window = window;
    return Run(c, Dtype::f32, 1, length, ModelUse::generation, 40).planned_bytes();
  };
  const int64_t keys = 2 * c.kv_heads * c.head_dim() * int64_t{sizeof(float)};
  const int64_t sums = c.heads * int64_t{sizeof(double)};
  for (const int64_t window : {1, 70, 300}) {
    const int64_t kept = window - 1 + kMaxPrefillChunk;
    // The arena's alignment.
    CHECK(std::abs(bytes(0, 4000) - bytes(window, 4000) - (4000 - kept) * (2 * keys + sums)) < 512);
  }
}

// --- batches ------------------------------------------------------------------------------------

/// Batched incremental decoding with this padding, in chunks whose sizes repeat `sizes`. Returns
/// for each text the logits (T - padding, V) after its own tokens. The padding sometimes begins
/// documents.
std::vector<std::vector<double>> grown_together(Run& run, const Batch& texts,
                                                const std::vector<int64_t>& padding,
                                                const Sizes& sizes) {
  const int64_t V = run.model().config().vocab, B = texts.B, T = texts.T;
  std::vector<std::vector<double>> logits(static_cast<size_t>(B));
  run.model().begin_decoding(padding);
  int64_t at = 0;
  for (size_t piece = 0; at < T; ++piece) {
    const int64_t n = std::min(sizes[piece % sizes.size()], T - at);
    std::vector<int32_t> tokens;
    for (int64_t b = 0; b < B; ++b) {
      const auto row = texts.tokens.begin() + b * T + at;
      tokens.insert(tokens.end(), row, row + n);
    }
    const Memory out(run.master_weights().dtype, {B * n, V}, 0);
    run.model().append(tokens.data(), n, texts.document_start, out.tensor());
    const std::vector<double> rows = read(out.tensor(), Role::parameter).x;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t first = std::clamp<int64_t>(padding[static_cast<size_t>(b)] - at, 0, n);
      std::vector<double>& to = logits[static_cast<size_t>(b)];
      to.insert(to.end(), rows.begin() + (b * n + first) * V, rows.begin() + (b + 1) * n * V);
    }
    at += n;
  }
  return logits;
}

void check_grown_together(const ModelConfig& c, const std::vector<int64_t>& padding, int64_t T,
                          const Sizes& sizes, const std::vector<Dtype>& dtypes) {
  const auto B = static_cast<int64_t>(padding.size());
  const Batch texts = random_batch(B, T, c.vocab);
  for (const Dtype t : dtypes) {
    Run run(c, t, B, T, ModelUse::generation, trained_length(c, T));
    if (t == Dtype::bf16) round_weights(run);
    const std::vector<std::vector<double>> found = grown_together(run, texts, padding, sizes);
    for (int64_t b = 0; b < B; ++b) {
      const int64_t own = T - padding[static_cast<size_t>(b)];
      const auto end = texts.tokens.begin() + (b + 1) * T;
      const Batch alone = {1, own, {end - own, end}, {}, texts.document_start};
      Run whole(c, Dtype::f64, 1, own, ModelUse::evaluation, trained_length(c, T));
      if (t == Dtype::bf16) round_weights(whole);
      const std::vector<double> truth = whole.logits(alone);
      const std::vector<double>& logits = found[static_cast<size_t>(b)];
      INFO(describe(c) << " in " << name_of(t) << ", text " << b << " of " << own << " tokens");
      REQUIRE(logits.size() == truth.size());
      const double allowed = t == Dtype::f64 ? 1e-12 : tolerance(t);
      CHECK(distance(logits, truth) <= allowed * norm(truth));
    }
  }
}

TEST_CASE("texts of several lengths that grow together have each its own logits") {
  const Threads one(1);  // many tiny passes
  for (const PriorConfig& p : every_prior()) {
    ModelConfig c = small_config();
    c.attention.prior = p;
    c.attention.scale = scale("ssmax");
    c.attention.document_mask = true;
    check_grown_together(c, {0, 29, 83}, 90, kOdd, with_products({Dtype::f64, Dtype::f32}));
    c.attention.document_mask = false;
    c.attention.window = 11;
    c.attention.scale = scale("adaptive");
    check_grown_together(c, {70, 1}, 90, {90}, with_products({Dtype::f64, Dtype::bf16}));
  }
}

TEST_CASE("texts of several lengths that grow past the largest piece have each its own logits") {
  for (const char* name : {"bam", "cable", "rope"}) {
    for (const int64_t window : {0, 70}) {
      ModelConfig c = small_config();
      c.attention.prior = prior(name);
      c.attention.window = window;
      check_grown_together(c, {0, kMaxPrefillChunk + 30}, 2 * kMaxPrefillChunk + 41,
                           {kMaxPrefillChunk, 3, 1}, {Dtype::f32});
    }
  }
}

TEST_CASE("the last logits of incremental decoding are the last of all logits") {
  ModelConfig c = small_config();
  c.attention.prior = prior("alibi");
  const Batch texts = random_batch(3, 20, c.vocab);
  for (const Dtype t : with_products({Dtype::f64, Dtype::f32, Dtype::bf16})) {
    Run run(c, t, 3, 20, ModelUse::generation);
    const Memory all(run.master_weights().dtype, {3 * 20, c.vocab}, 0);
    const Memory last(run.master_weights().dtype, {3, c.vocab}, 0);
    run.model().begin_decoding(std::vector<int64_t>(3));
    run.model().append(texts.tokens.data(), 20, {}, all.tensor());
    run.model().begin_decoding(std::vector<int64_t>(3));
    run.model().append(texts.tokens.data(), 20, {}, last.tensor());
    const std::vector<double> truth = read(all.tensor(), Role::parameter).x;
    const std::vector<double> found = read(last.tensor(), Role::parameter).x;
    for (int64_t b = 0; b < 3; ++b) {
      const auto row = [&](const std::vector<double>& of, int64_t n) {
        return std::vector<double>(of.begin() + n * c.vocab, of.begin() + (n + 1) * c.vocab);
      };
      // The same sums, which a skinny GEMM may add in another order.
      const double allowed = t == Dtype::f64 ? 1e-15 : 4 * kF32;
      CHECK(distance(row(found, b), row(truth, 20 * b + 19)) <=
            allowed * norm(row(truth, 20 * b + 19)));
    }
  }
}

// --- rollback -----------------------------------------------------------------------------------

TEST_CASE("texts that are rolled back go on as if nothing had followed, to the bit") {
  for (const char* name : {"bam", "cable", "fire"}) {
    for (const int64_t window : {0, 70}) {
      ModelConfig c = small_config();
      c.attention.prior = prior(name);
      c.attention.window = window;
      c.attention.document_mask = true;
      const int64_t kShared = 2 * kMaxPrefillChunk + 11, kEnding = 40,
                    T = kShared + kMaxPrefillChunk;
      const Batch texts = random_batch(1, T, c.vocab), endings = random_batch(1, T, c.vocab);
      Run run(c, Dtype::f32, 1, T, ModelUse::generation, 40);
      const auto read_shared = [&] {
        begin_text(run);
        for (int64_t at = 0; at < kShared;) {
          const int64_t n = std::min<int64_t>(100, kShared - at);
          run.model().append(texts.tokens.data() + at, n, texts.document_start, {});
          at += n;
        }
        return run.model().decode_state();
      };
      const auto ending = [&](int64_t n) {
        std::vector<double> logits;
        for (int64_t at = 0; at < kEnding; at += 8) {
          const Memory out(run.master_weights().dtype, {8, c.vocab}, 0);
          run.model().append(endings.tokens.data() + n * kEnding + at, 8, texts.document_start,
                             out.tensor());
          const std::vector<double> rows = read(out.tensor(), Role::parameter).x;
          logits.insert(logits.end(), rows.begin(), rows.end());
        }
        return logits;
      };
      std::vector<std::vector<double>> truth;
      for (int64_t n = 0; n < 3; ++n) {
        read_shared();
        truth.push_back(ending(n));
      }
      const DecodeState state = read_shared();
      for (int64_t n = 0; n < 3; ++n) {
        INFO(describe(c) << ", ending " << n);
        check_equal(ending(n), truth[static_cast<size_t>(n)]);
        run.model().rollback(state);
        CHECK(run.model().cached_tokens() == kShared);
      }
    }
  }
}

TEST_CASE("the losses of targets of a piece are those of the whole text") {
  ModelConfig c = small_config();
  c.attention.prior = prior("rope");
  Batch texts = random_batch(2, 50, c.vocab);
  for (size_t i = 0; i < texts.targets.size(); ++i) {
    if (i % 3 != 0) texts.targets[i] = kIgnoreIndex;
  }
  Run whole(c, Dtype::f32, 2, 50, ModelUse::evaluation, 40);
  std::vector<double> truth(100), found(100);
  std::vector<int32_t> likeliest(100), likeliest_found(100);
  whole.model().evaluate(texts.tokens.data(), texts.targets.data(), 2, 50, {}, truth.data(),
                         nullptr, likeliest.data());
  Run run(c, Dtype::f32, 2, 50, ModelUse::generation, 40);
  run.model().begin_decoding(std::vector<int64_t>(2));
  run.model().append(texts.tokens.data(), texts.targets.data(), 50, {}, found.data(),
                     likeliest_found.data());
  CHECK(distance(found, truth) <= tolerance(Dtype::f32) * norm(truth));
  CHECK(likeliest_found == likeliest);
  for (size_t i = 0; i < truth.size(); ++i) {
    if (texts.targets[i] != kIgnoreIndex) continue;
    CHECK((truth[i] == 0 && likeliest[i] == kIgnoreIndex));
  }
}

TEST_CASE("losses of a few targets are those that they have among all") {
  ModelConfig c = small_config();
  const Batch all = random_batch(2, 50, c.vocab);
  Batch few = all;
  for (size_t i = 0; i < few.targets.size(); ++i) {
    if (i % 7 != 2) few.targets[i] = kIgnoreIndex;
  }
  for (const Dtype t : with_products({Dtype::f64, Dtype::f32, Dtype::bf16})) {
    Run run(c, t, 2, 50, ModelUse::evaluation);
    std::vector<double> truth(100), found(100);
    run.model().evaluate(all.tokens.data(), all.targets.data(), 2, 50, {}, truth.data());
    run.model().evaluate(few.tokens.data(), few.targets.data(), 2, 50, {}, found.data());
    for (size_t i = 0; i < truth.size(); ++i) {
      const bool counts = few.targets[i] != kIgnoreIndex;
      CHECK(std::abs(found[i] - (counts ? truth[i] : 0)) <=
            (t == Dtype::f64 ? 1e-14 : 16 * kF32) * truth[i]);
    }
  }
}

TEST_CASE("tables refuse a text that would grow past their end, and leave it as it was") {
  ModelConfig c = small_config();
  c.attention.prior = prior("learned");
  const Batch text = random_batch(1, 20, c.vocab);
  Run run(c, Dtype::f32, 1, 20, ModelUse::generation, 19);
  CHECK_NOTHROW(run.model().check_length(19));
  CHECK_THROWS_AS(run.model().check_length(20), Error);
  begin_text(run);
  run.model().append(text.tokens.data(), 19, {}, {});
  CHECK_THROWS_AS(run.model().append(text.tokens.data() + 19, 1, {}, {}), Error);
  CHECK(run.model().cached_tokens() == 19);

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
