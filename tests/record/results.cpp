// results.json: results read back as written, and other files are not taken for one.

#include "record/results.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Names = std::vector<std::string>;

ordered_json config(int64_t width = 64) {
  return {{"name", "run"},
          {"model", {{"width", width}, {"heads", 4}}},
          {"data", {{"sequence_length", 64}}},
          {"optimizer", {{"lr", 0.1}}}};
}

/// As a run writes it.
void write_results(const std::string& path) {
  Results r(path);
  r.set_run("run", config());
  r.set("validation", {{"loss", 0.1}, {"loss_error", nullptr}, {"step", 8}});
  r.set("n/a@64", {{"loss", 1.0 / 3},
                   {"loss_error", 1e-300},
                   {"accuracy", 1},
                   {"text", "no number"},
                   {"of", {{"seed", 3}, {"task", "copy"}}}});
  r.write();
}

std::string results_refusal(const std::string& path) {
  return error_of(ExitCode::io, [&] { Results unused(path); });
}

}  // namespace

TEST_CASE("results come back as they were set, with names and errors of metrics") {
  const Workplace w;
  const std::string path = w.path("results.json");
  const Results none(path);
  CHECK(none.config().is_null());
  CHECK(none.metrics().empty());
  CHECK_FALSE(std::filesystem::exists(path));
  write_results(path);
  const Results r(path);
  CHECK(r.path() == path);
  CHECK(r.config() == config());
  CHECK(r.metrics() ==
        Names{"validation/loss", "validation/step", "n/a@64/loss", "n/a@64/accuracy"});
  REQUIRE(r.metric("validation/loss"));
  CHECK(r.metric("validation/loss")->value == 0.1);
  CHECK_FALSE(r.metric("validation/loss")->error);
  REQUIRE(r.metric("n/a@64/loss"));
  CHECK(r.metric("n/a@64/loss")->value == 1.0 / 3);
  CHECK(r.metric("n/a@64/loss")->error == 1e-300);
  CHECK(r.metric("n/a@64/accuracy")->value == 1);
  for (const char* name :
       {"", "loss", "/", "validation", "validation/", "validation/exact_match",
        "validation/loss_error", "n/a@64/text", "n/a@64/of", "n/loss", "other/loss"}) {
    INFO(name);
    CHECK_FALSE(r.metric(name));
  }
  // Another program's format.
  const json file = json::parse(read_text(path));
  CHECK(file["format"] == 2);
  CHECK(file["name"] == "run");
  CHECK(file["results"]["n/a@64"]["of"]["task"] == "copy");
  const std::string text = read_text(path);
  r.write();
  CHECK(read_text(path) == text);
}

TEST_CASE("a result takes the place of one of its name, others follow in the order of setting") {
  const Workplace w;
  const std::string path = w.path("results.json");
  write_results(path);
  Results r(path);
  r.set_run("run", config());
  r.set("b@2", {{"loss", 2}});
  r.set("a@10", {{"loss", 3}});
  r.set("validation", {{"loss", 4}});
  r.write();
  const Results again(path);
  CHECK(again.metrics() ==
        Names{"validation/loss", "n/a@64/loss", "n/a@64/accuracy", "b@2/loss", "a@10/loss"});
  CHECK(again.metric("validation/loss")->value == 4);
  Results fewer(path);
  fewer.arrange({"a@10", "other", "b@2"});
  CHECK(fewer.metrics() == Names{"a@10/loss", "b@2/loss"});
}

TEST_CASE("a result is known by what it was measured with, in whatever order that is written") {
  const Workplace w;
  const std::string path = w.path("results.json");
  write_results(path);
  const Results r(path);
  CHECK(r.has("n/a@64", {{"task", "copy"}, {"seed", 3}}));
  CHECK_FALSE(r.has("n/a@64", {{"task", "copy"}, {"seed", 4}}));
  CHECK_FALSE(r.has("n/a@64", {{"task", "copy"}}));
  CHECK_FALSE(r.has("n/a@64", nullptr));
  CHECK_FALSE(r.has("n/a@65", {{"task", "copy"}, {"seed", 3}}));
  CHECK_FALSE(r.has("validation", {{"task", "copy"}, {"seed", 3}}));
}

TEST_CASE("results of another model are dropped, those of another rate are not") {
  const Workplace w;
  const std::string path = w.path("results.json");
  write_results(path);
  const auto left = [&](const ordered_json& c) {
    Results r(path);
    r.set_run("new", c);
    return r.metrics().size();
  };
  ordered_json same = config();
  same["optimizer"]["lr"] = 0.2;
  same["data"]["train"] = "elsewhere";
  CHECK(left(same) == 4);
  // Sorted, as after another program has rewritten resolved_json.
  CHECK(left(ordered_json(json(config()))) == 4);
  CHECK(left(config(32)) == 0);
  ordered_json longer = config();
  longer["data"]["sequence_length"] = 65;
  CHECK(left(longer) == 0);
}

TEST_CASE("what is not finite is written as null, and is no metric before and after") {
  const Workplace w;
  const std::string path = w.path("results.json");
  Results r(path);
  r.set_run("run", config());
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = INFINITY;
  r.set("copy@9", {{"loss", nan}, {"loss_error", nan}, {"accuracy", 0.5}, {"accuracy_error", inf}});
  r.write();
  CHECK(json::parse(read_text(path))["results"]["copy@9"]["loss"].is_null());
  for (const Results& read : {r, Results(path)}) {
    CHECK(read.metrics() == Names{"copy@9/accuracy"});
    CHECK_FALSE(read.metric("copy@9/loss"));
    REQUIRE(read.metric("copy@9/accuracy"));
    CHECK_FALSE(read.metric("copy@9/accuracy")->error);
  }
}

TEST_CASE("what is no results.json is an error that names the file and what to do") {
  const Workplace w;
  const std::string path = w.path("results.json");
  const auto refused = [&](const std::string& text, const std::string& part) {
    INFO(text);
    std::ofstream(path) << text;
    const std::string message = results_refusal(path);
    INFO(message);
    CHECK(message.starts_with(path));
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.find("remove the file") != std::string::npos);
    CHECK(read_text(path) == text);
  };
  refused("", "");
  refused("{", "");
  refused("{\"format\": 1, \"format\": 1}", "");
  refused("[]", "expected a JSON object");
  refused("{}", "the members name, complete, config and results");
  refused(R"({"format": 2, "config": {}, "results": {}})", "digest: missing (a string)");
  refused(R"({"format": "1", "config": {}, "results": {}})", "format: expected an integer");
  const json good = {{"format", 1},
                     {"complete", true},
                     {"name", ""},
                     {"config", json::object()},
                     {"results", json::object()}};
  for (const char* member : {"complete", "name", "config", "results"}) {
    json file = good;
    file.erase(member);
    refused(file.dump(), "the members name, complete, config and results");
    file[member] = 3;
    refused(file.dump(), "the members name, complete, config and results");
  }
  json number = good;
  number["results"]["a@1"] = 3;
  refused(number.dump(), "an object as a@1");
  // Invalid numbers would silently be missing from a table.
  for (const char* name : {"loss", "loss_error"}) {
    json text = good;
    text["results"]["a@1"] = {{"loss", 1.5}, {"loss_error", nullptr}};
    text["results"]["a@1"][name] = "1.5";
    refused(text.dump(), std::string("results.json: a@1: ") + name +
                             ": expected a number, or null, found \"1.5\"");
  }
  // Cut at any byte.
  std::filesystem::remove(path);
  write_results(path);
  const std::string whole = read_text(path);
  for (size_t size = 0; size + 2 < whole.size(); size += 7) refused(whole.substr(0, size), "");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(results_refusal(path).find("regular file") != std::string::npos);
}

TEST_CASE("a flipped digit of results.json is refused, and a file of format 1 is read") {
  const Workplace w;
  const std::string path = w.path("results.json");
  write_results(path);
  std::string text = read_text(path);
  const std::string loss = "\"loss\": 0.1";
  text.replace(text.find(loss), loss.size(), "\"loss\": 0.3");
  std::ofstream(path) << text;
  CHECK(results_refusal(path).starts_with(path + ": digest: mismatch: recorded "));
  json earlier = json::parse(text);
  earlier["format"] = 1;
  earlier.erase("digest");
  std::ofstream(path) << earlier.dump();
  CHECK(Results(path).metric("validation/loss")->value == 0.3);
}
