// Text generation, compared with a second model that reads the whole text for every token.

#include "eval/generate.h"

#include <algorithm>

#include "catch.h"
#include "core/element.h"
#include "core/error.h"
#include "core/utf8.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "tools/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// A model with random weights and more ids than the tokenizer, and that tokenizer.
struct TextModel {
  static constexpr int64_t kTrained = 8;

  TemporaryFolder folder;
  Tokenizer tokenizer = Tokenizer::open(small_tokenizer(folder));
  ModelConfig config;
  std::unique_ptr<Backend> backend = make_reference_backend();
  std::unique_ptr<ParameterLayout> layout;
  Arena arena;
  Tensor master_weights;

  TextModel() {
    config.vocab = tokenizer.vocab() + 12;
    config.width = 16;
    config.layers = 2;
    config.heads = config.kv_heads = 2;
    config.mlp.hidden = 16;
    config.init = InitKind::torch;
    config.attention.prior = PriorChoice(*find_prior("bam"));
    config.attention.scale = ScaleChoice(*find_scale("none"));
    config.attention.document_mask = true;
    layout = std::make_unique<ParameterLayout>(config, kTrained);
    arena.add("masters", &master_weights, Dtype::f64, {layout->elements()});
    arena.commit();
    for (const Parameter& p : layout->all()) {
      initialize(p, config, kTrained, 5, master_weights.slice(0, p.offset, p.size));
    }
  }

  int64_t start() const { return tokenizer.bos(); }
  Tensor head() const { return layout->view(master_weights, "lm_head.weight"); }

  /// The text that generate() writes after `text`.
  std::string written(const std::string& text, const GenerationLimits& limits,
                      std::vector<std::string>* pieces = nullptr) {
    const Prompt prompt(tokenizer, start(), text, "prompt");
    IncrementalDecoder model(config, kTrained, *backend, Dtype::f64, start(),
                             prompt.longest(limits));
    model.commit(master_weights);
    std::string out;
    generate(model, tokenizer, start(), prompt, limits, Rng(3, "test"),
             [&](const std::string& piece) {
               CHECK_FALSE(piece.empty());
               CHECK(first_invalid_utf8(piece) == std::string_view::npos);
               if (pieces) pieces->push_back(piece);
               out += piece;
             });
    return out;
  }

  /// The ids drawn by a model that reads the whole text each time, up to an end.
  std::vector<int32_t> ids(const std::string& text, const GenerationLimits& limits) {
    std::vector<int32_t> all = {static_cast<int32_t>(start())};
    for (int32_t id : tokenizer.encode(text)) all.push_back(id);
    const size_t prompt = all.size();
    Sampler sampler(limits.sampling, Rng(3, "test"));
    for (int64_t n = 0; n < limits.max_tokens; ++n) {
      const auto T = static_cast<int64_t>(all.size());
      const std::unique_ptr<Backend> own = make_reference_backend();
      Arena memory;
      Model model(config, kTrained, *own, Dtype::f64);
      Tensor logits;
      memory.add("logits", &logits, Dtype::f64, {T, config.vocab});
      model.plan(memory, 1, T, ModelUse::evaluation);
      memory.commit();
      model.set_master_weights(master_weights);
      model.refresh();
      model.logits(all.data(), 1, T, start(), logits);
      const double* last = logits.ptr<double>() + (T - 1) * config.vocab;
      const int32_t id =
          sampler.draw({last, static_cast<size_t>(tokenizer.vocab())}, static_cast<uint64_t>(n));
      if (id == tokenizer.bos() || id == tokenizer.eos()) break;
      all.push_back(id);
    }
    return {all.begin() + static_cast<std::ptrdiff_t>(prompt), all.end()};
  }

  std::string text_of(const std::vector<int32_t>& ids, bool first) const {
    std::string bytes;
    for (size_t i = 0; i < ids.size(); ++i) bytes += tokenizer.bytes(ids[i], first && i == 0);
    return replace_invalid_utf8(bytes);
  }
};

GenerationLimits limits_of(double temperature, int64_t max_tokens = 30) {
  GenerationLimits limits;
  limits.max_tokens = max_tokens;
  limits.sampling.temperature = temperature;
  return limits;
}

}  // namespace

TEST_CASE("what is written is what a model draws that reads the whole text each time") {
  TextModel f;
  for (const double temperature : {0.0, 1.0, 3.0}) {
    for (const char* prompt : {"", "The old sailor", "\xE6\x97\xA5"}) {
      const GenerationLimits limits = limits_of(temperature);
      const std::vector<int32_t> ids = f.ids(prompt, limits);
      INFO(prompt << " at temperature " << temperature);
      REQUIRE(ids.size() > 3);
      CHECK(f.written(prompt, limits) == f.text_of(ids, *prompt == '\0'));
    }
  }
}

TEST_CASE("a stop string ends what is written") {
  TextModel f;
  const std::string whole = f.written("Her brother", limits_of(1));
  REQUIRE(whole.size() > 20);
  size_t begin = whole.size() / 2;
  while ((whole[begin] & 0xC0) == 0x80) ++begin;
  size_t end = begin + 6;
  while (end < whole.size() && (whole[end] & 0xC0) == 0x80) ++end;
  GenerationLimits limits = limits_of(1);
  limits.stops = {whole.substr(begin, end - begin)};
  CHECK(f.written("Her brother", limits) == whole.substr(0, whole.find(limits.stops[0])));
}

TEST_CASE("a document's end ends what is written, and ids past the tokenizer's are not drawn") {
  TextModel f;
  const std::string whole = f.written("Her brother", limits_of(0));
  const std::vector<int32_t> ids = f.ids("Her brother", limits_of(0));
  REQUIRE(ids.size() == 30);
  // Wherever an id has the largest logit, and it is positive, a row slightly larger than that id's
  // row of the head wins.
  const auto overtake = [&](TextModel& g, int64_t row) {
    const int64_t C = f.config.width;
    for (int64_t c = 0; c < C; ++c) {
      put(g.head(), row * C + c, (1 + 1e-9) * get(f.head(), ids[4] * C + c));
    }
  };
  for (const int32_t end : {f.tokenizer.eos(), f.tokenizer.bos()}) {
    TextModel g;
    overtake(g, end);
    const std::vector<int32_t> before(ids.begin(), std::find(ids.begin(), ids.end(), ids[4]));
    CHECK(g.written("Her brother", limits_of(0)) == g.text_of(before, false));
  }
  overtake(f, f.config.vocab - 1);
  CHECK(f.written("Her brother", limits_of(0)) == whole);
}

TEST_CASE("as many tokens are written as asked for") {
  TextModel f;
  for (const int64_t n : {1, 2, 7}) {
    const GenerationLimits limits = limits_of(0, n);
    CHECK(f.written("Her", limits) == f.text_of(f.ids("Her", limits), false));
  }
}

TEST_CASE("a model of weights that are no numbers is an error that says so") {
  TextModel f;
  put(f.head(), 7, std::nan(""));
  try {
    f.written("Her", limits_of(1));
    FAIL("an Error was expected");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::nonfinite);
    CHECK(contains(e.what(), "diverged"));
  }
}

TEST_CASE("a prompt is the document's first id and its text; neither is an error") {
  TextModel f;
  CHECK(Prompt(f.tokenizer, 1, "", "p").ids == std::vector<int32_t>{1});
  CHECK(Prompt(f.tokenizer, {}, "Her", "p").ids == f.tokenizer.encode("Her"));
  CHECK(contains(error_of(ExitCode::data, [&] { Prompt(f.tokenizer, {}, "", "p"); }), "p: "));
  CHECK(
      contains(error_of(ExitCode::data, [&] { Prompt(f.tokenizer, 1, "a\xFFz", "p"); }), "UTF-8"));
}
