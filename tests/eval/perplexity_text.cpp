// Text modes of perplexity against length. Which targets count was worked out by hand; losses are
// computed from Model::logits, one window at a time.

#include "eval/perplexity_text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "eval/perplexity_fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using Tokens = std::vector<int32_t>;

/// Documents of 40, 20 and 70 tokens in two shards; the second shard begins inside the first
/// document.
struct TextFixture : PerplexityFixture {
  TextFixture() {
    std::filesystem::remove(w.path("val/0.bin"));
    const auto write = [&](const char* name, size_t begin, size_t end) {
      ShardWriter shard(w.path(name), 2);
      shard.append(std::span(ids).subspan(begin, end - begin));
      shard.finish();
    };
    write("val/0.bin", 0, 27);
    write("val/1.bin", 27, ids.size());
  }

  Tokens all() const { return {ids.begin(), ids.end()}; }

  /// -log softmax(logits)[target] for every target of these tokens.
  std::vector<double> losses_of(const Tokens& tokens) {
    const auto T = static_cast<int64_t>(tokens.size()) - 1;
    Model model(config, 8, *backend, Dtype::f64);
    Arena own;
    Tensor logits;
    model.plan(own, 1, T, ModelUse::evaluation);
    own.add("logits", &logits, Dtype::f64, {T, kVocab});
    own.commit();
    model.set_master_weights(master_weights);
    model.refresh();
    model.logits(tokens.data(), 1, T, std::nullopt, logits);
    std::vector<double> out;
    for (int64_t i = 0; i < T; ++i) {
      const double* const row = logits.ptr<double>() + i * kVocab;
      double sum = 0;
      for (int64_t v = 0; v < kVocab; ++v) sum += std::exp(row[v]);
      out.push_back(std::log(sum) - row[tokens[static_cast<size_t>(i + 1)]]);
    }
    return out;
  }

  /// The losses of windows of `length` inputs that begin at these places of `text`.
  std::vector<std::vector<double>> windows(const Tokens& text, const std::vector<int64_t>& begins,
                                           int64_t length) {
    std::vector<std::vector<double>> out;
    for (const int64_t begin : begins) {
      out.push_back(losses_of({text.begin() + begin, text.begin() + begin + length + 1}));
    }
    return out;
  }
};

std::vector<int64_t> every(int64_t step, int64_t count) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(i * step);
  return out;
}

/// The losses of the last K targets of each window.
std::vector<double> joined(const std::vector<std::vector<double>>& windows, int64_t K = 1 << 20) {
  std::vector<double> out;
  for (const std::vector<double>& w : windows) {
    const int64_t n = std::min(K, std::ssize(w));
    out.insert(out.end(), w.end() - n, w.end());
  }
  return out;
}

void check_row(const nlohmann::ordered_json& row, const std::vector<double>& losses) {
  INFO(row.dump());
  CHECK(row["tokens"] == losses.size());
  CHECK(row["loss"].get<double>() == Approx(mean(losses)).epsilon(1e-12));
  CHECK(row["perplexity"].get<double>() == Approx(std::exp(mean(losses))).epsilon(1e-12));
}

PerplexityRequest packed() {
  PerplexityRequest r = request();
  r.text = PerplexityText::packed;
  return r;
}

/// The message of the Error that the check of the request throws; "" if it throws none.
std::string request_refusal(TextFixture& f, const PerplexityRequest& r, ExitCode code) {
  return error_or_none(
      code, [&] { check_perplexity_request(ShardSet::open(f.w.path("val"), kVocab), r); });
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("packed text is all tokens in a row, in whole windows of each length") {
  TextFixture f;
  const auto result = f.evaluate(packed());
  CHECK(result["text"] == "packed");
  CHECK(result["tokens"] == 130);
  CHECK_FALSE(result.contains("documents"));
  // 129 targets: 16 windows of 8, 4 of 32. No window has the last target.
  const auto of_8 = f.windows(f.all(), every(8, 16), 8);
  const auto of_32 = f.windows(f.all(), every(32, 4), 32);
  check_row(result["windows"][0], joined(of_8));
  check_row(result["windows"][1], joined(of_32));
  // K is 256, or the length if that is smaller.
  check_row(result["last"][0], joined(of_8));
  check_row(result["last"][1], joined(of_32));
  REQUIRE(result["bins"].size() == 1);
  check_row(result["bins"][0], joined(of_32));
  // Standard errors are over segments of the longest length, with 32 targets each.
  for (const size_t n : {0, 1}) {
    const std::vector<double> all = joined(n == 0 ? of_8 : of_32);
    double squares = 0;
    for (int64_t stretch = 0; stretch < 4; ++stretch) {
      const std::vector<double> part(all.begin() + 32 * stretch, all.begin() + 32 * (stretch + 1));
      squares += std::pow(32 * (mean(part) - mean(all)), 2);
    }
    CHECK(result["windows"][n]["stretches"] == 4);
    CHECK_FALSE(result["windows"][n].contains("documents"));
    CHECK(result["windows"][n]["loss_error"].get<double>() ==
          Approx(std::sqrt(4.0 / 3 * squares) / 128).epsilon(1e-9));
  }
}

TEST_CASE("of packed windows the last K targets count, and the first so many windows") {
  TextFixture f;
  PerplexityRequest r = packed();
  r.last_tokens = 5;
  r.counts = {3, 2};
  auto result = f.evaluate(r);
  CHECK(result["last_tokens"] == 5);
  check_row(result["windows"][0], joined(f.windows(f.all(), every(8, 3), 8)));
  check_row(result["windows"][1], joined(f.windows(f.all(), every(32, 2), 32)));
  check_row(result["last"][0], joined(f.windows(f.all(), every(8, 3), 8), 5));
  check_row(result["last"][1], joined(f.windows(f.all(), every(32, 2), 32), 5));
  r.counts = {2};
  check_row(f.evaluate(r)["windows"][0], joined(f.windows(f.all(), every(8, 2), 8)));
  // The limit on targets applies to each protocol: 2 windows of 8 have 16, 3 windows have 15 at
  // their ends.
  r.counts = {};
  r.max_tokens = 15;
  result = f.evaluate(r);
  check_row(result["windows"][0], joined(f.windows(f.all(), every(8, 2), 8)));
  check_row(result["last"][0], joined(f.windows(f.all(), every(8, 3), 8), 5));
}

TEST_CASE("packed text may be without ids, and its windows share no token") {
  TextFixture f;
  PerplexityRequest r = packed();
  r.dropped = {1, 7};
  Tokens text = f.all();
  std::erase_if(text, [](int32_t id) { return id == 1 || id == 7; });
  REQUIRE(text.size() < 127);  // id 7 occurs
  const auto n = std::ssize(text);
  auto result = f.evaluate(r);
  CHECK(result["tokens"] == n);
  check_row(result["windows"][0], joined(f.windows(text, every(8, (n - 1) / 8), 8)));
  check_row(result["windows"][1], joined(f.windows(text, every(32, (n - 1) / 32), 32)));
  r.dropped = {};
  r.apart = true;  // 130 tokens: 14 chunks of 9, 3 of 33
  result = f.evaluate(r);
  check_row(result["windows"][0], joined(f.windows(f.all(), every(9, 14), 8)));
  check_row(result["windows"][1], joined(f.windows(f.all(), every(33, 3), 32)));
  CHECK(result["windows"][1]["stretches"] == 3);
}

TEST_CASE("beginnings are the first windows of long documents") {
  PerplexityFixture whole;  // one shard, as a document ends with its shard
  TextFixture f;
  std::filesystem::copy(whole.w.path("val"), f.w.path("whole"));
  const auto evaluate = [&](const PerplexityRequest& r) {
    return perplexity_against_length(f.config, 8, *f.backend, Dtype::f64, f.master_weights,
                                     ShardSet::open(f.w.path("whole"), kVocab), r,
                                     [](const std::string&, int64_t, double) {});
  };
  PerplexityRequest r = request();
  r.text = PerplexityText::beginnings;
  r.bin = 12;
  auto result = evaluate(r);
  CHECK(result["text"] == "beginnings");
  CHECK(result["documents"] == 2);
  const auto of_8 = f.windows(f.all(), {0, 60}, 8), of_32 = f.windows(f.all(), {0, 60}, 32);
  check_row(result["windows"][0], joined(of_8));
  check_row(result["windows"][1], joined(of_32));
  REQUIRE(result["bins"].size() == 3);
  const int64_t ends[] = {0, 12, 24, 32};
  for (size_t bin = 0; bin < 3; ++bin) {
    std::vector<double> part;
    for (const auto& w : of_32) {
      part.insert(part.end(), w.begin() + ends[bin], w.begin() + ends[bin + 1]);
    }
    CHECK(result["bins"][bin]["from"] == ends[bin]);
    CHECK(result["bins"][bin]["to"] == ends[bin + 1]);
    check_row(result["bins"][bin], part);
  }
  r.counts = {1};
  result = evaluate(r);
  CHECK(result["documents"] == 1);
  check_row(result["windows"][1], joined(f.windows(f.all(), {0}, 32)));
  CHECK(result["windows"][1]["loss_error"].is_null());
}

TEST_CASE("short documents are read whole, each once, by how long they are") {
  TextFixture f;  // the first document ends with its shard, at 27 tokens
  PerplexityRequest r = request();
  r.text = PerplexityText::short_documents;
  r.lengths = {20, 30};
  const auto document = [&](int64_t begin, int64_t tokens) {
    return f.losses_of({f.ids.begin() + begin, f.ids.begin() + begin + tokens});
  };
  auto result = f.evaluate(r);
  CHECK(result["documents"] == 2);  // the third has 70 tokens, more than 30
  CHECK_FALSE(result.contains("windows"));
  CHECK_FALSE(result.contains("last_tokens"));
  REQUIRE(result["short"].size() == 2);
  CHECK(result["short"][0]["from"] == 2);
  CHECK(result["short"][0]["length"] == 20);
  CHECK(result["short"][1]["from"] == 21);
  check_row(result["short"][0], document(40, 20));
  check_row(result["short"][1], document(0, 27));
  r.lengths = {70};
  result = f.evaluate(r);
  CHECK(result["short"][0]["documents"] == 3);
  check_row(result["short"][0], joined({document(0, 27), document(40, 20), document(60, 70)}));
  r.counts = {2};
  check_row(f.evaluate(r)["short"][0], joined({document(0, 27), document(40, 20)}));
}

TEST_CASE("losses by position are means over the windows of the longest length") {
  TextFixture f;
  PerplexityRequest r = packed();
  r.positions = 20;
  r.protocols = {"last"};
  const auto result = f.evaluate(r);
  const auto of_32 = f.windows(f.all(), every(32, 4), 32);
  CHECK(result["positions"]["to"] == 20);
  CHECK(result["positions"]["step"] == 1);
  CHECK(result["positions"]["windows"] == 4);
  REQUIRE(result["positions"]["loss"].size() == 20);
  for (size_t i = 0; i < 20; ++i) {
    const double expected = (of_32[0][i] + of_32[1][i] + of_32[2][i] + of_32[3][i]) / 4;
    CHECK(result["positions"]["loss"][i].get<double>() == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("losses by position are thinned to means over neighbours") {
  PerplexityFixture f({4200});
  PerplexityRequest r = request();
  r.lengths = {4101};
  r.positions = 4099;
  r.protocols = {"bins"};
  const auto positions = f.evaluate(r)["positions"];
  const std::vector<double> losses = f.losses(0, 4101);
  CHECK(positions["step"] == 2);
  CHECK(positions["windows"] == 1);
  REQUIRE(positions["loss"].size() == 2050);
  CHECK(positions["loss"][7].get<double>() == Approx((losses[14] + losses[15]) / 2).epsilon(1e-12));
  CHECK(positions["loss"][2049].get<double>() == Approx(losses[4098]).epsilon(1e-12));
}

TEST_CASE("what a text has not is refused before anything is read") {
  TextFixture f;
  PerplexityRequest r = packed();
  r.lengths = {8, 130};
  has(request_refusal(f, r, ExitCode::data), "expected a stream of at least 131 tokens, found 130");
  r.lengths = {8, 129};
  CHECK(request_refusal(f, r, ExitCode::data).empty());
  r.counts = {17, 1};
  has(request_refusal(f, r, ExitCode::data), "expected 17 windows of length 8, found 16");
  r.counts = {16, 1, 1};
  has(request_refusal(f, r, ExitCode::usage),
      "--count: expected one number, or one for each of the 2 ");
  r.counts = {};
  r.last_tokens = 9;
  has(request_refusal(f, r, ExitCode::usage),
      "--last-tokens: expected at most the shortest length, 8");
  r.last_tokens = 0;
  r.positions = 130;
  has(request_refusal(f, r, ExitCode::usage),
      "--positions: expected at most the longest length, 129");

  r = request();
  r.counts = {2};
  has(request_refusal(f, r, ExitCode::data), "expected 2 documents of at least 33 tokens, found 1");
  r.counts = {1, 1};
  has(request_refusal(f, r, ExitCode::usage),
      "--count: expected one number: documents are the same at");
  r.counts = {};
  r.lengths = {8, 70};
  has(request_refusal(f, r, ExitCode::data),
      "expected a document of at least 71 tokens, found 3 documents, the longest of 70");

  r.text = PerplexityText::short_documents;
  r.lengths = {19, 70};
  has(request_refusal(f, r, ExitCode::data), "no document of 2 to 19 tokens");
  r.lengths = {70};
  r.counts = {4};
  has(request_refusal(f, r, ExitCode::data), "expected 4 documents of 2 to 70 tokens, found 3");
}

TEST_CASE("how many documents of how many are read, by the longest length and by the shortest") {
  TextFixture f;  // 40 tokens (27 up to the shard's end), 20 and 70
  const ShardSet shards = ShardSet::open(f.w.path("val"), kVocab);
  const auto check = [&](const std::vector<int64_t>& lengths, int64_t of_longest,
                         int64_t of_shortest) {
    PerplexityRequest r = request();
    r.lengths = lengths;
    const DocumentCounts counts = check_perplexity_request(shards, r);
    CHECK(counts.all == 3);
    CHECK(counts.of_longest == of_longest);
    CHECK(counts.of_shortest == of_shortest);
    const auto result = f.evaluate(r);
    CHECK(result["documents"] == of_longest);
    CHECK(result["all_documents"] == 3);
  };
  check({8}, 3, 3);
  check({8, 26}, 2, 3);
  check({8, 32}, 1, 3);
  check({19}, 3, 3);
  check({20, 69}, 1, 2);
}

TEST_CASE("lengths that the text has nothing of are left out with their counts") {
  TextFixture f;
  const ShardSet shards = ShardSet::open(f.w.path("val"), kVocab);
  const auto left = [&](PerplexityRequest r, const std::vector<int64_t>& lengths,
                        const std::vector<int64_t>& kept, const std::vector<int64_t>& counts = {}) {
    r.lengths = lengths;
    const std::string text = leave_out_lengths(shards, &r);
    CHECK(r.lengths == kept);
    CHECK(r.counts == counts);
    return text;
  };
  CHECK(left(request(), {8, 69}, {8, 69}).empty());
  CHECK(left(request(), {8, 70, 71}, {8}) ==
        "70, 71 left out: the longest document of " + shards.source() + " has 70 tokens");
  CHECK(left(request(), {70}, {}) != "");
  // Packed, the text has 130 tokens, or 127 without the three that begin documents.
  CHECK(left(packed(), {8, 129}, {8, 129}).empty());
  CHECK(left(packed(), {8, 130}, {8}) == "130 left out: " + shards.source() + " has 130 tokens");
  PerplexityRequest r = packed();
  r.dropped = {1};
  CHECK(left(r, {126, 127}, {126}) != "");
  r.counts = {1, 5, 7};
  CHECK(left(r, {8, 16, 127}, {8, 16}, {1, 5}) != "");
  r = request();
  r.text = PerplexityText::short_documents;
  CHECK(left(r, {20, 40, 70}, {20, 40, 70}).empty());
  CHECK(left(r, {20, 30, 40, 69}, {20, 30}).find("40, 69 left out: no document of ") == 0);
}
