// Passkey scores, compared with digits that the test finds in a model's logits, prompt by prompt.

#include "eval/passkey_scores.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "catch.h"
#include "core/element.h"
#include "core/error.h"
#include "data/tokenizers.h"
#include "eval/small_model.h"
#include "model/model.h"
#include "ops/cpu/cpu.h"

using namespace bamtrain;
using bamtrain::testing::SmallModel;

namespace {

const Tokenizer& digits() {
  static const Tokenizer t = Tokenizer::open(bamtrain::testing::golden_path("digits.json"));
  return t;
}

/// A model that knows only digits: one in ten is right by chance.
struct Guesser : SmallModel {
  explicit Guesser(const char* prior)
      : SmallModel(prior, false, make_cpu_backend(), Dtype::f32, digits().vocab()) {
    std::set<int32_t> known;
    for (char c = '0'; c <= '9'; ++c) known.insert(digits().encode(std::string(" ") + c)[1]);
    const Parameter& head = *layout->find("lm_head.weight");
    for (int64_t id = 0; id < config.vocab; ++id) {
      const bool digit = known.count(static_cast<int32_t>(id)) > 0;
      for (int64_t i = 0; i < config.width; ++i) {
        const int64_t at = head.offset + id * config.width + i;
        put(master_weights, at, digit ? 20 * get(master_weights, at) : 0);
      }
    }
  }

  /// The likeliest next id.
  int32_t next(const Symbols& ids) const {
    const auto T = std::ssize(ids);
    Arena memory;
    const Tensor all = logits(ids, std::nullopt, memory);
    int32_t best = 0;
    for (int32_t id = 1; id < config.vocab; ++id) {
      const int64_t last = (T - 1) * config.vocab;
      if (get(all, last + id) > get(all, last + best)) best = id;
    }
    return best;
  }

  nlohmann::ordered_json scores(const Passkey& passkey, const PasskeyRequest& request,
                                int64_t length) const {
    return score_passkey(passkey, request, length, model(), std::nullopt, TaskShare{},
                         [](double) {});
  }
};

}  // namespace

TEST_CASE("passkeys found are those whose digits the logits say, in a pass and in writing") {
  for (const bool generate : {false, true}) {
    const Guesser g("bam");
    const Passkey passkey(digits(), {2, 0});
    const PasskeyRequest request = {4, 6, 5, generate};
    const int64_t length = passkey.fixed() + 2 * passkey.filler() + 3;
    const std::vector<PasskeyPrompt> prompts = passkey_prompts(passkey, request, length);
    REQUIRE(prompts.size() == 24);
    std::vector<double> exact(4), share(4);
    double digits_right = 0;
    for (size_t n = 0; n < prompts.size(); ++n) {
      const PasskeyPrompt& p = prompts[n];
      CHECK(p.fillers == 2);
      CHECK(p.before == static_cast<int64_t>(n / 6) * 2 / 3);
      Symbols read = p.prompt;
      read.push_back(p.answer[0]);
      int right = 0;
      for (const size_t i : {size_t{1}, size_t{2}}) {
        const int32_t said = g.next(read);
        right += said == p.answer[i];
        read.push_back(generate ? said : p.answer[i]);
      }
      exact[n / 6] += right == 2 ? 1.0 / 6 : 0;
      share[n / 6] += right / 12.0;
      digits_right += right;
    }
    CHECK(digits_right > 0);
    const auto row = g.scores(passkey, request, length);
    CHECK(row["tokens"] == passkey.fixed() + 2 * passkey.filler());
    CHECK(row["prompts"] == 24);
    CHECK(row["accuracy"].get<double>() == Approx(digits_right / 48));
    for (size_t depth = 0; depth < 4; ++depth) {
      const auto& cell = row["cells"][depth];
      CHECK(cell["depth"].get<double>() == Approx(static_cast<double>(depth) / 3));
      CHECK(cell["exact_match"].get<double>() == Approx(exact[depth]).margin(1e-15));
      CHECK(cell["accuracy"].get<double>() == Approx(share[depth]).margin(1e-15));
    }
  }
}

TEST_CASE("digits that are given are read and not asked for") {
  const Guesser g("rope");
  const Passkey passkey(digits(), {3, 2, PasskeyQuestion::paper});
  const PasskeyRequest request = {2, 20, 1, false};
  double right = 0;
  for (const PasskeyPrompt& p : passkey_prompts(passkey, request, 0)) {
    Symbols read = p.prompt;
    read.insert(read.end(), p.answer.begin(), p.answer.begin() + 3);
    right += g.next(read) == p.answer[3];
  }
  const auto row = g.scores(passkey, request, 0);
  CHECK(right > 0);
  CHECK(row["exact_match"].get<double>() == Approx(right / 40));
  CHECK(row["accuracy"] == row["exact_match"]);
  CHECK(row["tokens"] == passkey.fixed());
  PasskeyRequest written = request;
  written.generate = true;  // with one digit, the same
  CHECK(g.scores(passkey, written, 0) == row);
}

TEST_CASE("keys are the seed's, fresh in each prompt, and of their length") {
  const Passkey passkey(digits(), {9, 0});
  std::set<std::string> keys;
  for (const uint64_t seed : {0, 1}) {
    for (const int64_t length : {int64_t{0}, passkey.fixed()}) {
      for (const PasskeyPrompt& p : passkey_prompts(passkey, {5, 2, seed}, length)) {
        keys.insert(p.key);
      }
    }
  }
  CHECK(keys.size() == 40);
  CHECK(passkey_prompts(passkey, {5, 2, 1}, 0)[3].key ==
        passkey_prompts(passkey, {5, 2, 1}, 0)[3].key);
  CHECK_THROWS_AS(passkey_prompts(passkey, {5, 2, 1}, 1), Error);
}

TEST_CASE("the longest text that is read has the key but its last digit") {
  const Guesser g("bam");
  const Passkey passkey(digits(), {5, 1});
  const int64_t length = passkey.fixed() + passkey.filler();
  CHECK(passkey_text(passkey, length) == length + 5);
  CHECK(passkey_text(passkey, 0) == passkey.fixed() + 5);
  for (const bool generate : {false, true}) {
    const auto bytes = [&](int64_t samples) {
      return passkey_scores_bytes(passkey, {2, samples, 0, generate}, length, g.model());
    };
    CHECK(bytes(1) > 0);
    CHECK(bytes(2) > bytes(1));
  }
}

TEST_CASE("losses that are no numbers end with their code, and name the length") {
  const Guesser g("bam");
  for (int64_t i = 0; i < g.layout->elements(); ++i) put(g.master_weights, i, 3e38);
  const Passkey passkey(digits(), {});
  try {
    g.scores(passkey, {2, 1, 0, false}, 0);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::nonfinite);
    CHECK(e.where() == "passkey at length 0");
  }
}
