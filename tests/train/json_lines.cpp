#include "train/json_lines.h"

#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("lines are cut back to the checkpoint's step, a half-written line included") {
  const Workplace w;
  {
    JsonLines m(w.path("metrics.jsonl"), 0);
    for (int step = 1; step <= 5; ++step) m.write({{"step", step}, {"loss", 1.5}});
  }
  std::ofstream(w.path("metrics.jsonl"), std::ios::app) << "{\"step\": 6, \"lo";
  {
    JsonLines m(w.path("metrics.jsonl"), 3);
    m.write({{"step", 4}, {"loss", 2.5}});
  }
  const auto lines = read_metrics(w.path("."));
  REQUIRE(lines.size() == 4);
  CHECK(lines[2]["step"] == 3);
  CHECK(lines[2]["loss"] == 1.5);
  CHECK(lines[3]["step"] == 4);
  CHECK(lines[3]["loss"] == 2.5);
}

TEST_CASE("the last line kept is known, as far as the file was cut back") {
  const Workplace w;
  const std::string path = w.path("metrics.jsonl");
  {
    JsonLines m(path, 0);
    CHECK(m.last() == nlohmann::json::object());
    for (int step = 1; step <= 3; ++step) m.write({{"step", step}, {"seconds", 1.5 * step}});
  }
  CHECK(JsonLines(path, 3).last() == nlohmann::json{{"step", 3}, {"seconds", 4.5}});
  CHECK(JsonLines(path, 2).last() == nlohmann::json{{"step", 2}, {"seconds", 3.0}});
}

TEST_CASE("a fresh run starts with an empty file") {
  const Workplace w;
  { JsonLines(w.path("metrics.jsonl"), 0).write({{"step", 1}}); }
  { JsonLines m(w.path("metrics.jsonl"), 0); }
  CHECK(read_metrics(w.path(".")).empty());
}

TEST_CASE("a file of lines that cannot be opened is an error that names the file") {
  const Workplace w;
  REQUIRE_THROWS_AS(JsonLines(w.path("absent/metrics.jsonl"), 0), Error);
}
