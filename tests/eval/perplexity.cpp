// The protocols of perplexity against length, checked against losses that a second model computes
// one window at a time, and against the protocols' definitions.

#include "eval/perplexity.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "catch.h"
#include "eval/perplexity_fixture.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("protocol (a): windows of each length cover the same targets") {
  PerplexityFixture f;
  const auto result = f.evaluate(request());
  CHECK(result["documents"] == 2);
  // The longest segments begin at 0 (first document) and at 60 and 92 (third document).
  for (const auto& row : result["windows"]) {
    const int64_t length = row["length"];
    CHECK(row["tokens"] == 3 * 32);
    std::vector<double> all;
    for (int64_t stretch : {0, 60, 92}) {
      for (int64_t begin = 0; begin < 32; begin += length) {
        for (double x : f.losses(stretch + begin, length)) all.push_back(x);
      }
    }
    CHECK(row["loss"].get<double>() == Approx(mean(all)).epsilon(1e-12));
    CHECK(row["perplexity"].get<double>() == Approx(std::exp(mean(all))).epsilon(1e-12));
  }
}

TEST_CASE("protocol (b): the last K tokens, the same targets at every length") {
  PerplexityFixture f;
  PerplexityRequest r = request();
  r.last_tokens = 4;
  const auto result = f.evaluate(r);
  CHECK(result["last_tokens"] == 4);
  for (const auto& row : result["last"]) {
    const int64_t length = row["length"];
    std::vector<double> all;
    for (int64_t stretch : {0, 60, 92}) {
      const auto x = f.losses(stretch + 32 - length, length);
      all.insert(all.end(), x.end() - 4, x.end());
    }
    CHECK(row["tokens"] == 12);
    CHECK(row["loss"].get<double>() == Approx(mean(all)).epsilon(1e-12));
  }
}

TEST_CASE("protocol (b): K is 256 or the shortest length, whatever the training's was") {
  PerplexityFixture f({40, 401});
  PerplexityRequest r = request();
  r.protocols = {"last"};
  const auto tokens = [&](const std::vector<int64_t>& lengths) {
    r.lengths = lengths;
    const auto result = f.evaluate(r);
    for (const auto& row : result["last"]) CHECK(row["tokens"] == result["last"][0]["tokens"]);
    CHECK(result["last"][0]["tokens"] == result["last_tokens"]);  // one window
    return result["last_tokens"].get<int64_t>();
  };
  CHECK(tokens({16, 300}) == 16);
  CHECK(tokens({256, 400}) == 256);
  CHECK(tokens({300, 400}) == 256);
}

TEST_CASE("protocol (c): one pass at the longest length, by position") {
  PerplexityFixture f;
  const auto result = f.evaluate(request());
  REQUIRE(result["bins"].size() == 1);
  CHECK(result["bins"][0]["from"] == 0);
  CHECK(result["bins"][0]["to"] == 32);
  CHECK(result["bins"][0]["loss"].get<double>() ==
        Approx(result["windows"][1]["loss"].get<double>()).epsilon(1e-12));
}

TEST_CASE("protocol (c): each position of a long pass is in its bin") {
  // With 2100, the last bin is not full. With 2048, no bin follows the second one.
  for (const int64_t length : {2100, 2048}) {
    PerplexityFixture f({2110});
    PerplexityRequest r = request();
    r.lengths = {length};
    r.protocols = {"bins"};
    const auto result = f.evaluate(r);
    const std::vector<double> losses = f.losses(0, length);
    const int64_t ends[] = {0, 1024, 2048, 2100};
    REQUIRE(result["bins"].size() == (length == 2100 ? 3 : 2));
    for (size_t bin = 0; bin < result["bins"].size(); ++bin) {
      const auto& row = result["bins"][bin];
      const int64_t from = ends[bin], to = ends[bin + 1];
      CHECK(row["from"] == from);
      CHECK(row["to"] == to);
      CHECK(row["tokens"] == to - from);
      const std::vector<double> part(losses.begin() + from, losses.begin() + to);
      CHECK(row["loss"].get<double>() == Approx(mean(part)).epsilon(1e-12));
    }
  }
}

TEST_CASE("bits per byte are the losses of all targets over the bytes that these are") {
  PerplexityFixture f;
  PerplexityRequest r = request();
  r.last_tokens = 4;
  CHECK_FALSE(f.evaluate(r)["windows"][0].contains("bits_per_byte"));
  // The id that begins a document has no text. The tokenizer lacks the last id.
  for (int64_t id = 0; id < kVocab - 1; ++id) r.token_bytes.push_back(id == 1 ? 0 : 1 + id % 3);
  const auto bytes_of = [&](int64_t target) {
    const uint32_t id = f.ids[static_cast<size_t>(target)];
    return id < r.token_bytes.size() ? r.token_bytes[id] : 0;
  };
  const auto result = f.evaluate(r);
  int64_t all = 0, last = 0;
  for (int64_t stretch : {0, 60, 92}) {
    for (int64_t i = 1; i <= 32; ++i) all += bytes_of(stretch + i);
    for (int64_t i = 29; i <= 32; ++i) last += bytes_of(stretch + i);
  }
  for (const auto& [protocol, bytes] :
       {std::pair("windows", all), std::pair("last", last), std::pair("bins", all)}) {
    for (const auto& row : result[protocol]) {
      CHECK(row["bytes"] == bytes);
      const double nats = row["loss"].get<double>() * row["tokens"].get<double>();
      CHECK(row["bits_per_byte"].get<double>() ==
            Approx(nats / std::log(2.0) / static_cast<double>(bytes)).epsilon(1e-12));
    }
  }
}

TEST_CASE("bins cost no pass of their own where windows are evaluated") {
  PerplexityFixture f;
  std::set<std::string> passes;
  const auto evaluate = [&](const std::vector<std::string>& protocols) {
    PerplexityRequest r = request();
    r.protocols = protocols;
    passes.clear();
    return perplexity_against_length(
        f.config, 8, *f.backend, Dtype::f64, f.master_weights,
        ShardSet::open(f.w.path("val"), kVocab), r,
        [&](const std::string& protocol, int64_t, double) { passes.insert(protocol); });
  };
  const auto both = evaluate({"windows", "bins"});
  CHECK(passes == std::set<std::string>{"windows"});
  const auto alone = evaluate({"bins"});
  CHECK(passes == std::set<std::string>{"bins"});
  CHECK(both["bins"] == alone["bins"]);
  CHECK_FALSE(alone.contains("windows"));
}

TEST_CASE("errors are those of the two documents that gave the losses") {
  PerplexityFixture f;
  PerplexityRequest r = request();
  r.last_tokens = 4;
  const auto result = f.evaluate(r);
  // The standard error over two clusters is 2 n1 n2 |m1 - m2| / N^2.
  const auto check = [](const nlohmann::ordered_json& row, const std::vector<double>& first,
                        const std::vector<double>& second) {
    const auto n1 = static_cast<double>(first.size()), n2 = static_cast<double>(second.size());
    const double loss = (n1 * mean(first) + n2 * mean(second)) / (n1 + n2);
    const double error =
        2 * n1 * n2 * std::fabs(mean(first) - mean(second)) / ((n1 + n2) * (n1 + n2));
    REQUIRE(error > 1e-6);
    CHECK(row["documents"] == 2);
    CHECK(row["loss_error"].get<double>() == Approx(error).epsilon(1e-9));
    CHECK(row["perplexity_error"].get<double>() == Approx(std::exp(loss) * error).epsilon(1e-9));
  };
  for (size_t i = 0; i < 2; ++i) {
    const int64_t length = r.lengths[i];
    const auto windows_from = [&](std::vector<int64_t> stretches) {
      std::vector<double> out;
      for (int64_t stretch : stretches) {
        for (int64_t begin = 0; begin < 32; begin += length) {
          for (double x : f.losses(stretch + begin, length)) out.push_back(x);
        }
      }
      return out;
    };
    const auto last_from = [&](std::vector<int64_t> stretches) {
      std::vector<double> out;
      for (int64_t stretch : stretches) {
        const auto x = f.losses(stretch + 32 - length, length);
        out.insert(out.end(), x.end() - 4, x.end());
      }
      return out;
    };
    check(result["windows"][i], windows_from({0}), windows_from({60, 92}));
    check(result["last"][i], last_from({0}), last_from({60, 92}));
  }
  CHECK(result["bins"][0]["loss_error"].get<double>() ==
        Approx(result["windows"][1]["loss_error"].get<double>()).epsilon(1e-9));

  // Only the first document's window.
  r.max_tokens = 1;
  const auto one = f.evaluate(r);
  for (const char* protocol : {"windows", "last", "bins"}) {
    for (const auto& row : one[protocol]) {
      CHECK(row["documents"] == 1);
      CHECK(row["loss_error"].is_null());
      CHECK(row["perplexity_error"].is_null());
    }
  }
}

TEST_CASE("bins have errors of their own, by document") {
  PerplexityFixture f({1300, 20, 1200});
  PerplexityRequest r = request();
  r.lengths = {1100};
  const auto result = f.evaluate(r);
  REQUIRE(result["bins"].size() == 2);
  const std::vector<double> first = f.losses(0, 1100), second = f.losses(1320, 1100);
  const auto expected = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::fabs(mean(a) - mean(b)) / 2;  // for two clusters of the same size
  };
  const auto part = [](const std::vector<double>& x, int64_t from, int64_t to) {
    return std::vector<double>(x.begin() + from, x.begin() + to);
  };
  CHECK(result["bins"][0]["loss_error"].get<double>() ==
        Approx(expected(part(first, 0, 1024), part(second, 0, 1024))).epsilon(1e-9));
  CHECK(result["bins"][1]["loss_error"].get<double>() ==
        Approx(expected(part(first, 1024, 1100), part(second, 1024, 1100))).epsilon(1e-9));
}

TEST_CASE("lengths that do not divide the longest still cover the same targets") {
  PerplexityFixture f;
  PerplexityRequest r = request();
  r.lengths = {12, 32};
  r.protocols = {"windows"};
  const auto result = f.evaluate(r);
  std::vector<double> all;
  for (int64_t stretch : {0, 60, 92}) {
    for (int64_t begin : {0, 12}) {
      for (double x : f.losses(stretch + begin, 12)) all.push_back(x);
    }
    const auto tail = f.losses(stretch + 20, 12);
    all.insert(all.end(), tail.begin() + 4, tail.end());
  }
  CHECK(result["windows"][0]["tokens"] == 96);
  CHECK(result["windows"][0]["loss"].get<double>() == Approx(mean(all)).epsilon(1e-12));
  CHECK_FALSE(result.contains("last"));
}

TEST_CASE("a limit on tokens and documents that are too short") {
  PerplexityFixture f;
  PerplexityRequest r = request();
  r.max_tokens = 32;
  CHECK(f.evaluate(r)["windows"][0]["tokens"] == 32);
  r.max_tokens = 0;
  r.lengths = {8, 100};
  REQUIRE_THROWS_AS(f.evaluate(r), Error);
  r.lengths = {8, 32};
  r.last_tokens = 9;
  REQUIRE_THROWS_AS(f.evaluate(r), Error);
}

TEST_CASE("a learned position table refuses lengths past its end") {
  PerplexityFixture f;
  f.config = tiny_model("learned");
  f.layout = ParameterLayout(f.config, 8);
  Arena arena;
  arena.add("masters", &f.master_weights, Dtype::f64, {f.layout.elements()});
  arena.commit();
  REQUIRE_THROWS_AS(f.evaluate(request()), Error);
}
