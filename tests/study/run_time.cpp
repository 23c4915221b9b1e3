#include "study/run_time.h"

#include <fstream>

#include "catch.h"
#include "record/run_lines.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("a run's time is that of its last whole line") {
  const Workplace w;
  StudyRun run;
  run.folder = w.path("");
  const auto with = [&](const std::string& text) {
    std::ofstream(w.path("metrics.jsonl"), std::ios::binary) << text;
    return seconds_of(run);
  };
  CHECK_FALSE(seconds_of(run));
  CHECK_FALSE(with(""));
  CHECK_FALSE(with("{\"step\": 1"));
  CHECK(with("{\"step\": 1, \"seconds\": 2.5}\n") == 2.5);
  CHECK(with("{\"step\": 1, \"seconds\": 2.5}\n{\"step\": 2, \"seconds\": 4}\n{\"step\": 3") == 4);
  CHECK_FALSE(with("{\"step\": 1, \"seconds\": 2.5}\n{\"step\": 2}\n"));
  CHECK_FALSE(with("{\"step\": 1, \"seconds\": 2.5}\ndamaged\n"));
  // Lines longer than what is read at once.
  const std::string filler(200'000, 'x');
  const std::string line = "{\"step\": 1, \"text\": \"" + filler + "\", \"seconds\": 7}\n";
  CHECK(with(line) == 7);
  CHECK(with("{\"step\": 0}\n" + line + filler) == 7);
}

TEST_CASE("a run's time is read from lines with a checksum, and not if that does not match") {
  const Workplace w;
  StudyRun run;
  run.folder = w.path("");
  std::string line = run_line({{"step", 1}, {"seconds", 12.5}}) + "\n";
  std::ofstream(w.path("metrics.jsonl")) << line;
  CHECK(seconds_of(run) == 12.5);
  line[line.find("12.5")] = '3';
  std::ofstream(w.path("metrics.jsonl")) << line;
  CHECK_FALSE(seconds_of(run));
}
