// `bamtrain eval` with texts, papers' protocols and several data sets, as a user calls it.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "train/changed_checkpoint.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A checkpoint of small_run after one step, with a zero head: every loss is log 211.
struct Evaluated {
  Workplace w;
  std::string checkpoint, output = w.path("result.json");
  std::vector<int64_t> ids;  // of the validation shard

  Evaluated() {
    Json config = small_run(w);
    config["train"]["stop_at"] = 1;
    const Outcome o = run(bamtrain_command(write_config(w, "run.json", config)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    checkpoint =
        with_constant(w.path("out/checkpoint-00000001"), w.path("zeros"), "lm_head.weight", 0);
    const std::string bytes = read_text(w.path("val/000.bin"));
    for (size_t i = 1024; i + 1 < bytes.size(); i += 2) {
      ids.push_back(static_cast<unsigned char>(bytes[i]) +
                    256 * static_cast<unsigned char>(bytes[i + 1]));
    }
  }

  Outcome eval(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {bamtrain_program(), "eval", "--checkpoint", checkpoint};
    all.insert(all.end(), more.begin(), more.end());
    return run(all, threads(1));
  }

  Json result(std::vector<std::string> more, std::string* printed = nullptr) const {
    more.insert(more.end(), {"--output", output});
    const Outcome o = eval(more);
    INFO(o.output);
    REQUIRE(o.code == 0);
    if (printed) *printed = o.output;
    return Json::parse(read_text(output));
  }

  /// Checks the exit code and that the output contains this message.
  void check_refused(const std::vector<std::string>& more, ExitCode code,
                     const std::string& text) const {
    const Outcome o = eval(more);
    INFO(o.output);
    INFO("expected in the message: " << text);
    CHECK(o.code == static_cast<int>(code));
    CHECK(o.output.find(text) != std::string::npos);
  }

  int64_t tokens_without(const std::vector<int64_t>& dropped) const {
    return std::count_if(ids.begin(), ids.end(), [&](int64_t id) {
      return std::find(dropped.begin(), dropped.end(), id) == dropped.end();
    });
  }
};

/// Checks a result row with `tokens` targets, from a zero head.
void check_row(const Json& row, int64_t tokens) {
  INFO(row.dump());
  CHECK(row["tokens"] == tokens);
  CHECK(row["loss"].get<double>() == Approx(std::log(211.0)).epsilon(1e-6));
}

}  // namespace

TEST_CASE("a paper's protocol sets what no option does, says so and stands in the result") {
  const Evaluated e;
  std::string printed;
  Json r = e.result({"--protocol", "bam", "--lengths", "48", "--bin", "16", "--document-end", "2"},
                    &printed);
  const int64_t tokens = e.tokens_without({1, 2});
  REQUIRE(tokens < std::ssize(e.ids));
  const int64_t chunks = tokens / 49;
  CHECK(r["text"] == "packed");
  CHECK(r["tokens"] == tokens);
  CHECK(r["dropped"] == Json({1, 2}));
  CHECK(r["protocol"] == Json({{"name", "bam"},
                               {"text", "packed"},
                               {"document_marks", "drop"},
                               {"apart", true},
                               {"protocols", {"bins"}}}));
  REQUIRE(r["bins"].size() == 3);
  for (const Json& row : r["bins"]) check_row(row, chunks * 16);
  CHECK_FALSE(r.contains("windows"));
  CHECK(printed.find("protocol bam: --text packed --document-marks drop --protocols bins, windows "
                     "that do not overlap\n") != std::string::npos);
  CHECK(printed.find("packed text of " + std::to_string(tokens) + " tokens\n") !=
        std::string::npos);

  const auto N = std::ssize(e.ids);
  r = e.result({"--protocol", "cable", "--lengths", "32,16"});
  CHECK_FALSE(r.contains("dropped"));
  check_row(r["windows"][0], (N - 1) / 16 * 16);
  check_row(r["windows"][1], (N - 1) / 32 * 32);

  r = e.result(
      {"--protocol", "dape", "--lengths", "32,64", "--count", "5,3", "--last-tokens", "10"},
      &printed);
  CHECK(r["protocol"] == Json({{"name", "dape"},
                               {"text", "packed"},
                               {"document_marks", "keep"},
                               {"apart", false},
                               {"protocols", {"last"}}}));
  check_row(r["last"][0], 50);
  check_row(r["last"][1], 30);
  CHECK(r["last_tokens"] == 10);

  r = e.result({"--protocol", "asentmax", "--lengths", "16,32", "--count", "4"});
  CHECK(r["text"] == "beginnings");
  CHECK(r["documents"] == 4);
  check_row(r["windows"][0], 4 * 16);
  check_row(r["windows"][1], 4 * 32);
}

TEST_CASE("eval reads short documents whole, and writes losses by position") {
  const Evaluated e;
  std::string printed;
  Json r = e.result({"--text", "short", "--lengths", "30,60"}, &printed);
  int64_t targets[2] = {0, 0}, documents[2] = {0, 0};
  for (size_t begin = 0; begin < e.ids.size();) {
    size_t end = begin + 1;
    while (end < e.ids.size() && e.ids[end] != 1) ++end;
    const auto length = static_cast<int64_t>(end - begin);
    if (e.ids[begin] == 1 && length >= 2 && length <= 60) {
      targets[length > 30] += length - 1;
      ++documents[length > 30];
    }
    begin = end;
  }
  REQUIRE(documents[0] > 0);
  for (size_t group : {0, 1}) {
    check_row(r["short"][group], targets[group]);
    CHECK(r["short"][group]["documents"] == documents[group]);
  }
  CHECK(printed.find("perplexity of whole documents, by their length\n") != std::string::npos);
  r = e.result({"--lengths", "16,48", "--positions", "40", "--protocols", "last"});
  CHECK(r["positions"]["to"] == 40);
  CHECK(r["positions"]["step"] == 1);
  REQUIRE(r["positions"]["loss"].size() == 40);
  CHECK(r["positions"]["loss"][39].get<double>() == Approx(std::log(211.0)).epsilon(1e-6));
  // The report reads this file.
  fs::copy_file(e.output, e.w.path("out/perplexity.json"));
  const Outcome o = run({bamtrain_program(), "report", e.w.path("out"), "--figure",
                         "perplexity-positions", "-o", e.w.path("p.svg")});
  INFO(o.output);
  CHECK(o.code == 0);
}

TEST_CASE("eval names the results of several data sets") {
  const Evaluated e;
  fs::create_directory(e.w.path("other"));
  write_shard(e.w.path("other/000.bin"), 3000, 211, 5);
  std::string printed;
  const std::vector<std::string> lengths = {"--lengths", "16,32", "--text", "packed"};
  const auto with = [&](const std::vector<std::string>& data) {
    std::vector<std::string> all = lengths;
    for (const std::string& d : data) all.insert(all.end(), {"--data", d});
    return all;
  };
  const std::string val = e.w.path("val"), other = e.w.path("other");
  const Json both = e.result(with({"val=" + val, "other=" + other}), &printed);
  CHECK_FALSE(both.contains("windows"));
  CHECK_FALSE(both.contains("data"));
  REQUIRE(both["sets"].size() == 2);
  for (const auto& [name, path] : {std::pair("val", val), std::pair("other", other)}) {
    const Json alone = e.result(with({path}));
    CHECK(both["sets"][name]["data"] == path);
    CHECK(both["sets"][name]["data_fingerprint"] == alone["data_fingerprint"]);
    CHECK(both["sets"][name]["windows"] == alone["windows"]);
    CHECK(both["sets"][name]["last"] == alone["last"]);
    CHECK(printed.find(std::string(name) + ": " + path + "\n") != std::string::npos);
    CHECK_FALSE(alone.contains("sets"));
  }
  CHECK(e.result(with({"val=" + val}))["sets"].size() == 1);
  const std::string rule = "--data: expected NAME=PATH with a unique name for each of several";
  e.check_refused(with({val, "other=" + other}), ExitCode::usage, rule + ", found " + val);
  e.check_refused(with({"a=" + val, "a=" + other}), ExitCode::usage, rule + ", found a=" + other);
  // All sets are opened before the first is read.
  const std::string missing = e.w.path("missing");
  e.check_refused(with({"a=" + val, "b=" + missing}), ExitCode::data, missing);
  // A report takes the result of one set only.
  e.result(with({"val=" + val, "other=" + other}));
  fs::copy_file(e.output, e.w.path("out/perplexity.json"));
  const Outcome o = run({bamtrain_program(), "report", e.w.path("out"), "-o", e.w.path("r.html")});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  CHECK(o.output.find("expected the result of one data set, found those of several") !=
        std::string::npos);
}

TEST_CASE("eval refuses what a text or a protocol does not take") {
  const Evaluated e;
  e.check_refused({"--protocol", "dpae"}, ExitCode::usage,
                  "--protocol: unknown value 'dpae' (known: bam, cable, dape, asentmax); did you "
                  "mean dape?");
  e.check_refused({"--text", "pakced", "--lengths", "16"}, ExitCode::usage, "did you mean packed?");
  e.check_refused({"--protocol", "dape", "--lengths", "48"}, ExitCode::usage,
                  "--protocol dape: expected the lengths that the paper gives a number of windows "
                  "for: 128, 256, ..., 8192, found 48; change --lengths, or give the number with");
  e.check_refused({"--protocol", "bam", "--lengths", "48"}, ExitCode::usage,
                  "--document-end: expected the EOS id that ends a document, to drop it, found "
                  "neither this option nor a manifest next to");
  e.check_refused({"--protocol", "bam", "--lengths", "48", "--document-end", "211"},
                  ExitCode::usage,
                  "--document-end: expected an id of the model's vocabulary, from 0 to 210, found "
                  "211");
  e.check_refused({"--protocol", "cable", "--lengths", "32", "--document-end", "2"},
                  ExitCode::usage, "or add --document-marks drop");
  e.check_refused({"--lengths", "32", "--document-marks", "drop"}, ExitCode::usage,
                  "--document-marks: applies to packed text, not to --text documents");
  e.check_refused({"--text", "short", "--lengths", "60", "--protocols", "last"}, ExitCode::usage,
                  "--protocols: applies to text that is cut into windows, not to --text short");
  e.check_refused({"--protocol", "cable"}, ExitCode::data, "expected a stream of at least 16385");
  e.check_refused({"--protocol", "asentmax"}, ExitCode::data,
                  "expected a document of at least 16385 tokens");
  e.check_refused({"--lengths", "16", "--positions", "8"}, ExitCode::usage, "--output");
  e.check_refused({"--lengths", "16", "--positions", "17", "--output", e.output}, ExitCode::usage,
                  "--positions: expected at most the longest length, 16, found 17");
}
