#include "report/run.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

std::string json_line(int step, const std::string& more = "") {
  return "{\"step\":" + std::to_string(step) + ",\"tokens\":" + std::to_string(10 * step) +
         ",\"loss\":4.5,\"lr\":0.001,\"grad_norm\":2,\"tokens_per_second\":100" + more + "}\n";
}

/// The message of the Error thrown by reading the run.
std::string run_refusal(RunReader& reader) {
  return error_of(ExitCode::io, [&] { reader.update(); });
}

}  // namespace

TEST_CASE("a run's numbers are those of its files") {
  const Workplace w;
  append(w.path("metrics.jsonl"),
         json_line(1) +
             json_line(2,
                       ",\"validation_loss\":4.25,\"seconds\":1.5,"
                       "\"matrix_rate_share\":0.75,\"data_wait\":0.125,\"parameters\":"
                       "{\"p\":[0.5,-1],\"q\":[]},\"attention\":"
                       "{\"entropy\":[[0.5,1],[2,3]],\"support\":"
                       "[[4,5],[6,7.5]],\"live_tiles\":[[1,0.5],[0.25,1]],\"windows\":3}") +
             json_line(3));
  append(w.path("perplexity.json"),
         R"({"step": 2, "training_length": 64, "data_fingerprint": "f", "last_tokens": 32,
             "windows": [{"length": 64, "perplexity": 70.5}, {"length": 128, "perplexity": null}],
             "last": [{"length": 64, "perplexity": 71}],
             "bins": [{"from": 0, "to": 1024, "perplexity": 7},
                      {"from": 1024, "to": 2048, "perplexity": 6, "bits_per_byte": 0.75}]})");
  append(
      w.path("samples.jsonl"),
      "{\"step\":1,\"prompt\":\"a\",\"text\":\"b\"}\n{\"step\":2,\"prompt\":\"c\",\"text\":\"d\"}\n"
      "{\"step\":2,\"prompt\":\"e\",\"text\":\"f\"}\n");
  RunReader reader(w.path("."));
  const RunRecord& r = reader.update();
  REQUIRE(r.metrics.lines().size() == 3);
  CHECK(r.metrics.lines()[0].step == 1);
  CHECK(r.metrics.lines()[0].tokens == 10);
  CHECK(r.metrics.lines()[0].loss == 4.5);
  CHECK(r.metrics.lines()[0].lr == 0.001);
  CHECK(r.metrics.lines()[0].grad_norm == 2);
  CHECK(r.metrics.lines()[0].tokens_per_second == 100);
  CHECK(std::isnan(r.metrics.lines()[0].validation_loss));
  CHECK(std::isnan(r.metrics.lines()[0].seconds));
  CHECK(std::isnan(r.metrics.lines()[0].mfu));
  CHECK(r.metrics.lines()[1].validation_loss == 4.25);
  CHECK(r.metrics.lines()[1].seconds == 1.5);
  CHECK(r.metrics.lines()[1].mfu == 0.75);
  CHECK(std::isnan(r.metrics.lines()[0].data_wait));
  CHECK(r.metrics.lines()[1].data_wait == 0.125);
  CHECK(r.parameters_step == 2);
  CHECK((r.parameters == MechanismValues{{"p", {0.5, -1}}, {"q", {}}}));
  REQUIRE(r.attention.has_value());  // of step 2
  CHECK(r.attention->windows == 3);
  CHECK((r.attention->entropy == HeadMeans{{0.5, 1}, {2, 3}}));
  CHECK((r.attention->nonzero_keys == HeadMeans{{4, 5}, {6, 7.5}}));
  CHECK((r.attention->nonzero_blocks == HeadMeans{{1, 0.5}, {0.25, 1}}));
  REQUIRE(r.perplexity.has_value());
  CHECK(r.perplexity->training_length == 64);
  CHECK(r.perplexity->last_tokens == 32);
  REQUIRE(r.perplexity->windows.size() == 2);
  CHECK(r.perplexity->windows[0].perplexity == 70.5);
  CHECK(std::isinf(r.perplexity->windows[1].perplexity));
  CHECK(r.perplexity->last[0].perplexity == 71);
  CHECK(r.perplexity->bins[0].length == 1024);
  CHECK_FALSE(r.perplexity->bins[0].bits_per_byte.has_value());
  CHECK(r.perplexity->bins[1].from == 1024);
  CHECK(r.perplexity->bins[1].bits_per_byte.value() == 0.75);
  REQUIRE(r.samples.size() == 2);  // of the last step
  CHECK(r.samples[0].prompt == "c");
  CHECK(r.samples[1].text == "f");
}

TEST_CASE("losses by position and whole documents are read as ranges") {
  const Workplace w;
  append(w.path("metrics.jsonl"), json_line(1));
  append(w.path("perplexity.json"),
         R"({"step": 2, "training_length": 64, "data_fingerprint": "f", "text": "packed",
             "short": [{"from": 2, "length": 64, "perplexity": 9},
                       {"from": 65, "length": 128, "perplexity": 8}],
             "positions": {"to": 5, "step": 2, "windows": 3, "loss": [0, 2.5, null]}})");
  RunReader reader(w.path("."));
  const PerplexityResult& p = *reader.update().perplexity;
  CHECK(p.packed);
  REQUIRE(p.short_documents.size() == 2);
  CHECK(p.short_documents[1].from == 65);
  CHECK(p.short_documents[1].length == 128);
  CHECK(p.short_documents[1].perplexity == 8);
  REQUIRE(p.positions.size() == 3);
  CHECK(p.positions[0].perplexity == 1);
  CHECK(p.positions[1].from == 2);
  CHECK(p.positions[1].length == 4);
  CHECK(p.positions[1].perplexity == std::exp(2.5));
  CHECK(p.positions[2].length == 5);
  CHECK(std::isinf(p.positions[2].perplexity));
}

TEST_CASE("errors are read where the files have them") {
  const Workplace w;
  append(w.path("metrics.jsonl"),
         json_line(1, ",\"validation_loss\":4") +
             json_line(2, ",\"validation_loss\":4,\"validation_loss_error\":0.5") +
             json_line(3, ",\"validation_loss\":4,\"validation_loss_error\":null"));
  append(w.path("perplexity.json"),
         R"({"step": 2, "training_length": 64, "data_fingerprint": "f",
             "windows": [{"length": 64, "perplexity": 70},
                         {"length": 128, "perplexity": 71, "perplexity_error": 1.5},
                         {"length": 256, "perplexity": 72, "perplexity_error": null}]})");
  RunReader reader(w.path("."));
  const RunRecord& r = reader.update();
  CHECK_FALSE(r.metrics.lines()[0].validation_loss_error.has_value());
  CHECK(r.metrics.lines()[1].validation_loss_error.value() == 0.5);
  CHECK(std::isnan(r.metrics.lines()[2].validation_loss_error.value()));
  CHECK_FALSE(r.perplexity->windows[0].error.has_value());
  CHECK(r.perplexity->windows[1].error.value() == 1.5);
  CHECK(std::isnan(r.perplexity->windows[2].error.value()));
}

TEST_CASE("a run that goes on is read from where the last reading ended") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  append(path, "");
  RunReader reader(w.path("."));
  CHECK(reader.update().metrics.lines().empty());
  append(path, json_line(1) + "{\"step\": 2, \"lo");  // still being written
  CHECK(reader.update().metrics.lines().size() == 1);
  CHECK(reader.update().metrics.lines().size() == 1);
  // What was read is not read again. Otherwise this would be refused.
  std::filesystem::resize_file(path, 0);
  append(path, std::string(json_line(1).size() - 1, 'x') + "\n" + json_line(2) + json_line(3));
  const RunRecord& r = reader.update();
  REQUIRE(r.metrics.lines().size() == 3);
  CHECK(r.metrics.lines()[2].step == 3);
}

TEST_CASE("lines longer than what is read at once are whole") {
  const Workplace w;
  std::string values = "0";
  for (int i = 1; i < 700'000; ++i) values += "," + std::to_string(i);
  append(w.path("metrics.jsonl"),
         json_line(1) + json_line(2, ",\"parameters\":{\"p\":[" + values + "]}") + json_line(3));
  RunReader reader(w.path("."));
  const RunRecord& r = reader.update();
  CHECK(r.metrics.lines().size() == 3);
  REQUIRE(r.parameters.at("p").size() == 700'000);
  CHECK(r.parameters.at("p")[699'999] == 699'999);
}

TEST_CASE("a damaged line is named") {
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"{\"step\": 2, \n", ":2:12: invalid JSON"},
      {"\n", ":2:1: invalid JSON"},
      {"[1]\n", ":2: expected a JSON object"},
      {std::string("{\"step\0\": 2}\n", 14), ":2:7: NUL byte"},
      {std::string(1000, '[') + "\n", ":2:101: nested deeper than 100 levels"},
      {"{\"step\": 18446744073709551615}\n",
       ":2: step: expected an integer from 0 to 1099511627776, found 18446744073709551615"},
      {"{}\n", ":2: step: missing (an integer, 0 or more)"},
      {json_line(1), ":2: expected a step after 1, found 1"},
      {json_line(2, ",\"validation_loss\":\"x\""),
       ":2: validation_loss: expected a number, found \"x\""},
      {json_line(2, ",\"validation_loss_error\":-1"),
       ":2: validation_loss_error: expected 0 or more, found -1"},
      {json_line(2, ",\"parameters\":[]"), ":2: parameters: expected an object"},
      {json_line(2, ",\"parameters\":{\"p\":[null]}"),
       ":2: parameters: p: expected a list of numbers"},
      {json_line(2, ",\"attention\":3"), ":2: attention: expected an object"},
      {json_line(2, ",\"attention\":{\"windows\":1,\"entropy\":[3]}"),
       ":2: attention: entropy: expected a list of numbers, found 3"},
      {json_line(2, ",\"attention\":{\"windows\":1,\"entropy\":[[3]]}"),
       ":2: attention: support: missing (a list)"},
      {json_line(
           2,
           ",\"attention\":{\"windows\":1,\"entropy\":[[3]],\"support\":[[3]],\"live_tiles\":[[-5]"
           "]}"),
       ":2: attention: live_tiles: expected shares from 0 to 1, found -5"},
      {json_line(-2), ":2: step: expected an integer, 0 or more, found -2"},
  };
  for (const auto& [damage, part] : damages) {
    const Workplace w;
    append(w.path("metrics.jsonl"), json_line(1) + damage + json_line(3));
    RunReader reader(w.path("."));
    const std::string message = run_refusal(reader);
    INFO(message);
    CHECK(message.find(w.path(".") + "/metrics.jsonl" + part) != std::string::npos);
  }
  const Workplace w;
  append(w.path("metrics.jsonl"), json_line(1));
  append(w.path("samples.jsonl"), "{\"step\":1,\"prompt\":\"a\"}\n");
  RunReader reader(w.path("."));
  CHECK(run_refusal(reader).find("samples.jsonl:1: text: missing (a string)") != std::string::npos);
}

TEST_CASE("a damaged result is named") {
  const std::string head = R"({"step": 2, "training_length": 64, "data_fingerprint": "f")";
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"{\"step\": 2", "perplexity.json:1:"},
      {"[]", "perplexity.json: expected a JSON object"},
      {"{}", "perplexity.json: step: missing (an integer"},
      {head + R"(, "windows": 3})", "windows: expected a list"},
      {head + R"(, "windows": [{"length": 0, "perplexity": 1}]})", "ascending lengths from 1"},
      {head + R"(, "windows": [{"length": 8, "perplexity": 1}, {"length": 4, "perplexity": 1}]})",
       "ascending lengths from 1, found 4"},
      {head + R"(, "windows": [{"length": 8, "perplexity": 0}]})", "perplexities above 0"},
      {head + R"(, "windows": [{"length": 8, "perplexity": 2, "perplexity_error": "x"}]})",
       "perplexity_error: expected a number"},
      {head + R"(, "last": [{"length": 8, "perplexity": 2}]})", "last_tokens: missing (an integer"},
      {head + R"(, "positions": {"to": 5, "step": 2, "loss": [1, 1]}})", "found 2 losses"},
      {head + R"(, "positions": {"to": 2, "step": 0, "loss": [1, 1]}})", "found 2 losses"},
      {head + R"(, "positions": {"to": 4097, "step": 1, "loss": []}})", "found 0 losses"},
      {head + R"(, "positions": {"to": 1, "step": 1, "loss": ["x"]}})", "expected losses"},
      {head + R"(, "positions": {"to": 1, "step": 1, "loss": [-1e300]}})", "expected losses"},
      {head + R"(, "sets": {}})", "expected the result of one data set"},
  };
  for (const auto& [text, part] : damages) {
    const Workplace w;
    append(w.path("metrics.jsonl"), "");
    append(w.path("perplexity.json"), text);
    RunReader reader(w.path("."));
    const std::string message = run_refusal(reader);
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.ends_with("evaluate again with bamtrain eval --output"));
  }
}

TEST_CASE("a line that does not end is refused before all of it is read") {
  const Workplace w;
  append(w.path("metrics.jsonl"), json_line(1));
  append(w.path("metrics.jsonl"), std::string(70 << 20, '['));
  RunReader reader(w.path("."));
  CHECK(run_refusal(reader).find("metrics.jsonl:2: line longer than 67108864 bytes") !=
        std::string::npos);
}

TEST_CASE("what a run was started on is that of its last start") {
  const Workplace w;
  append(w.path("metrics.jsonl"), "");
  RunReader reader(w.path("."));
  CHECK_FALSE(reader.update().start.has_value());
  append(w.path("starts.json"),
         R"([{"version": "0.1.0", "processor": "old"},
             {"version": "0.2.0", "commit": "abc", "compiler": "GCC 12",
              "libraries": {"fmt": "9.1.0", "oneDNN": "2.6"}, "host": "h", "processor": "p",
              "gpu": null, "processes": 2, "threads": 4, "started": "2026-11-25T00:00:00Z",
              "precision": "bf16", "device": "cpu", "parameters": 123}])");
  const RunRecord& r = reader.update();
  REQUIRE(r.start.has_value());
  CHECK(r.start->version == "0.2.0");
  CHECK(r.start->commit == "abc");
  CHECK(r.start->compiler == "GCC 12");
  CHECK(r.start->libraries == "fmt 9.1.0, oneDNN 2.6");
  CHECK(r.start->host == "h");
  CHECK(r.start->processor == "p");
  CHECK(r.start->gpu.empty());
  CHECK(r.start->processes == 2);
  CHECK(r.start->threads == 4);
  CHECK(r.start->started == "2026-11-25T00:00:00Z");
  CHECK(r.start->precision == "bf16");
  CHECK(r.start->device == "cpu");
  CHECK(r.start->parameters == 123);
  std::ofstream(w.path("starts.json")) << "[{\"threads\": \"x\"}]";
  CHECK(run_refusal(reader).find(
            "starts.json: threads: expected an integer, 0 or more, found \"x\"") !=
        std::string::npos);
}

TEST_CASE("a folder of no run is refused") {
  const Workplace w;
  for (const auto& [folder, part] :
       std::map<std::string, std::string>{{w.path("none"), "no such folder"},
                                          {w.path("."), "not a run's folder: no metrics.jsonl"}}) {
    std::string message;
    try {
      RunReader reader(folder);
    } catch (const Error& e) {
      message = e.what();
    }
    INFO(message);
    CHECK(message.find(folder + ": " + part) == 0);
  }
}
