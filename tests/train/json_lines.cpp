#include "train/metrics.h"

#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("metrics are cut back to the checkpoint's step, a half-written line included") {
  const Workplace w;
  {
    Metrics m(w.path("."), 0);
    for (int step = 1; step <= 5; ++step) m.write({{"step", step}, {"loss", 1.5}});
  }
  std::ofstream(w.path("metrics.jsonl"), std::ios::app) << "{\"step\": 6, \"lo";
  {
    Metrics m(w.path("."), 3);
    m.write({{"step", 4}, {"loss", 2.5}});
  }
  const auto lines = read_metrics(w.path("."));
  REQUIRE(lines.size() == 4);
  CHECK(lines[2]["step"] == 3);
  CHECK(lines[2]["loss"] == 1.5);
  CHECK(lines[3]["step"] == 4);
  CHECK(lines[3]["loss"] == 2.5);
}

TEST_CASE("a fresh run starts with empty metrics") {
  const Workplace w;
  { Metrics(w.path("."), 0).write({{"step", 1}}); }
  { Metrics m(w.path("."), 0); }
  CHECK(read_metrics(w.path(".")).empty());
}

TEST_CASE("metrics that cannot be opened are an error that names the file") {
  const Workplace w;
  REQUIRE_THROWS_AS(Metrics(w.path("absent"), 0), Error);
}
