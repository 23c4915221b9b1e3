// Chunked windows have the same losses as whole ones, in less memory.

#include "eval/window_reader.h"

#include "catch.h"
#include "core/error.h"
#include "eval/perplexity_fixture.h"
#include "model/incremental_decoder.h"
#include "normalizers/registry.h"
#include "ops/cpu/cpu.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

struct Reading {
  std::vector<double> losses;
  std::vector<int32_t> targets;
  bool in_order = true;
};

Reading read(WindowReader& reader, const std::vector<Window>& windows) {
  Reading out;
  size_t last = 0;
  int64_t next = 0;
  double share = 0;
  reader.read(
      windows,
      [&](double now) {
        out.in_order &= now >= share && now <= 1;
        share = now;
      },
      [&](size_t n, int64_t position, int32_t target, double loss) {
        if (n != last || out.losses.empty()) next = windows[n].from;
        out.in_order &= position == next++ && n >= last;
        last = n;
        out.losses.push_back(loss);
        out.targets.push_back(target);
      });
  CHECK(share == 1);
  return out;
}

/// Two windows of 700, which are three chunks each, and a shorter one.
const std::vector<Window> kWindows = {{0, 700}, {300, 700}, {40, 31}};

struct ReaderFixture : PerplexityFixture {
  ShardSet shards;
  TokenStream stream;
  explicit ReaderFixture(const std::string& prior)
      : PerplexityFixture({1100}),
        shards(ShardSet::open(w.path("val"), kVocab)),
        stream(shards, shards.documents(1)) {
    config = tiny_model(prior);
    layout = ParameterLayout(config, 8);
  }

  Tensor masters_of(Arena& of, Dtype dtype) {
    Tensor out;
    of.add("masters", &out, dtype, {layout.elements()});
    of.commit();
    for (const Parameter& p : layout.all()) {
      initialize(p, config, 8, 5, out.slice(0, p.offset, p.size));
    }
    return out;
  }
};

}  // namespace

TEST_CASE("pieces of a window have the losses of the whole") {
  for (const char* prior : {"alibi", "bam", "rope", "cable"}) {
    INFO(prior);
    ReaderFixture f(prior);
    // fp64: some rounding in sums of a thousand terms. fp32: the same, for losses of about 3.
    struct Case {
      std::unique_ptr<Backend> backend;
      Dtype dtype;
      double margin;
    } cases[] = {{make_reference_backend(), Dtype::f64, 1e-12},
                 {make_cpu_backend(), Dtype::f32, 1e-5}};
    for (const Case& c : cases) {
      Arena arena;
      const Tensor master_weights = f.masters_of(arena, c.dtype);
      const ScoredModel model = {f.config, 8, *c.backend, c.dtype, master_weights};
      WindowReader whole(model, f.stream, 700), pieces(model, f.stream, 700, ForwardMode::chunked);
      CHECK_FALSE(whole.is_chunked());
      REQUIRE(pieces.is_chunked());
      CHECK(pieces.planned_bytes() < whole.planned_bytes());
      const Reading a = read(whole, kWindows), b = read(pieces, kWindows);
      CHECK(a.in_order);
      CHECK(b.in_order);
      REQUIRE(a.losses.size() == 1431);
      REQUIRE(b.losses.size() == 1431);
      CHECK(a.targets == b.targets);
      double most = 0;
      for (size_t i = 0; i < a.losses.size(); ++i) {
        most = std::max(most, std::fabs(a.losses[i] - b.losses[i]));
      }
      CHECK(most < c.margin);
    }
  }
}

TEST_CASE("context alone changes no loss behind it") {
  ReaderFixture f("bam");
  // kWindows with 600, 699 and 0 positions of context, which leaves 100, 1 and 31 targets.
  std::vector<Window> windows = kWindows;
  windows[0].from = 600;
  windows[1].from = 699;
  struct Case {
    std::unique_ptr<Backend> backend;
    Dtype dtype;
    double margin;  // rounding of the head's product in another shape; fp64 adds in one order
  } cases[] = {{make_reference_backend(), Dtype::f64, 0}, {make_cpu_backend(), Dtype::f32, 1e-5}};
  for (const Case& c : cases) {
    Arena arena;
    const Tensor master_weights = f.masters_of(arena, c.dtype);
    const ScoredModel model = {f.config, 8, *c.backend, c.dtype, master_weights};
    for (const ForwardMode mode : {ForwardMode::full, ForwardMode::chunked}) {
      WindowReader reader(model, f.stream, 700, mode);
      const Reading all = read(reader, kWindows), some = read(reader, windows);
      CHECK(some.in_order);
      REQUIRE(some.losses.size() == 132);
      std::vector<size_t> of_all;  // their indices among all losses
      for (size_t i = 600; i < 700; ++i) of_all.push_back(i);
      for (size_t i = 1399; i < 1431; ++i) of_all.push_back(i);
      for (size_t i = 0; i < of_all.size(); ++i) {
        CHECK(some.targets[i] == all.targets[of_all[i]]);
        CHECK(std::fabs(some.losses[i] - all.losses[of_all[i]]) <= c.margin);
      }
    }
  }
}

TEST_CASE("long windows are read in pieces where that takes less memory") {
  ReaderFixture f("alibi");
  const auto backend = make_cpu_backend();
  Arena arena;
  const Tensor master_weights = f.masters_of(arena, Dtype::f32);
  const ScoredModel model = {f.config, 8, *backend, Dtype::f32, master_weights};
  constexpr int64_t kLong = kFullPassTokens + 1;
  CHECK_FALSE(WindowReader(model, f.stream, kLong - 1).is_chunked());
  const WindowReader chosen(model, f.stream, kLong);
  const WindowReader whole(model, f.stream, kLong, ForwardMode::full);
  CHECK(chosen.is_chunked());
  CHECK_FALSE(whole.is_chunked());
  // Keys and values of 2 layers are 32 floats per token; the full pass also has the activations.
  CHECK(chosen.planned_bytes() < whole.planned_bytes() / 2);
}

TEST_CASE("a model without incremental decoding is read whole") {
  ReaderFixture f("alibi");
  const NormalizerInfo* topk = find_normalizer("topk");
  REQUIRE(topk != nullptr);
  f.config.attention.normalizer = NormalizerChoice(*topk);
  f.config.attention.normalizer.options.set("k", 0.0);  // k = n/2
  f.config.attention.normalizer.options.set("of", std::string("sequence"));
  const auto backend = make_cpu_backend();
  Arena arena;
  const Tensor master_weights = f.masters_of(arena, Dtype::f32);
  const ScoredModel model = {f.config, 8, *backend, Dtype::f32, master_weights};
  CHECK_FALSE(WindowReader(model, f.stream, kFullPassTokens + 1).is_chunked());
  REQUIRE_THROWS_AS(WindowReader(model, f.stream, 100, ForwardMode::chunked), Error);
}

TEST_CASE("a model whose rows would go one by one is read whole") {
  const auto backend = make_cpu_backend();
  const auto is_chunked = [&](const char* prior, const char* normalizer) {
    ReaderFixture f(prior);
    const NormalizerInfo* of = find_normalizer(normalizer);
    if (of != nullptr) f.config.attention.normalizer = NormalizerChoice(*of);
    return prefers_chunked_prefill(f.config, *backend, kFullPassTokens + 1);
  };
  CHECK(is_chunked("alibi", ""));
  CHECK(is_chunked("cable", ""));
  CHECK_FALSE(is_chunked("alibi", "entmax"));
  CHECK_FALSE(is_chunked("cope", ""));
  CHECK_FALSE(is_chunked("transformer_xl", ""));
}
