// A run whose length changes when it is resumed.

#include <algorithm>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

Outcome train_longer(const Workplace& w, nlohmann::json c, const nlohmann::json& schedule,
                     int steps, const std::vector<std::string>& overrides = {},
                     const std::string& out = "out") {
  c["schedule"] = schedule;
  c["train"]["steps"] = steps;
  return run_config_into(w, c, out, overrides, 1, 2);
}

void check_length_refused(const Outcome& o, const std::vector<std::string>& parts) {
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::config));
  for (const std::string& part : parts) {
    INFO("must mention: " << part);
    CHECK(o.output.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE(
    "a constant run is extended at its end, a wsd run before its decay, to the longer run's bits") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  nlohmann::json schedule = {{"name", "constant"}, {"warmup_steps", 2}}, longer = schedule;
  int first = 4;
  SECTION("constant") {}
  SECTION("constant, begun under config_version 2") { c["config_version"] = 2; }
  SECTION("wsd") {
    schedule = {{"name", "wsd"}, {"decay_steps", 2}};
    longer = schedule;
    first = 6;  // stopped at 4, where its decay begins
  }
  SECTION("wsd with a longer decay") {
    schedule = {{"name", "wsd"}, {"decay_steps", 2}};
    longer = {{"name", "wsd"}, {"decay_steps", 4}};
    first = 6;
  }
  REQUIRE(train_longer(w, c, schedule, first, {"train.stop_at=4"}).code == 0);
  c["config_version"] = 3;
  const Outcome o = train_longer(w, c, longer, 8);
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("train.steps 8 (before: " + std::to_string(first) + ")") !=
        std::string::npos);
  CHECK(o.output.find("resuming from") != std::string::npos);
  REQUIRE(train_longer(w, c, longer, 8, {}, "straight").code == 0);
  const std::string last = "/checkpoint-00000008";
  CHECK(digest(w.path("out") + last) == digest(w.path("straight") + last));
  const std::vector<nlohmann::json> lines = read_metrics(w.path("out"));
  REQUIRE(lines.size() == 8);
  for (size_t i = 0; i < 8; ++i) CHECK(lines[i]["step"] == static_cast<int>(i) + 1);
}

TEST_CASE("where the past depends on the length, another one is refused with what it would mean") {
  const Workplace w;
  const nlohmann::json c = small_run(w);
  SECTION("cosine") {
    const nlohmann::json cosine = {{"name", "cosine"}, {"min_ratio", 0.1}};
    REQUIRE(train_longer(w, c, cosine, 8, {"train.stop_at=4"}).code == 0);
    // 3e-3 times 0.1 + 0.9 (1 + cos(pi / 4)) / 2, and the same with pi / 2.
    check_length_refused(train_longer(w, c, cosine, 16),
                         {"train.steps: expected the length", "checkpoint-00000004", "(8 steps",
                          "from step 2 on", "found 16 steps", "checkpoint.allow_change",
                          "learning rate of step 5 is then 0.002605 instead of 0.00165"});
    const Outcome allowed = train_longer(
        w, c, cosine, 16, {"checkpoint.allow_change=[\"train.steps\"]", "train.stop_at=5"});
    INFO(allowed.output);
    CHECK(allowed.code == 0);
    CHECK(read_metrics(w.path("out")).back()["lr"].get<double>() == Approx(0.002605).epsilon(1e-3));
  }
  SECTION("wsd in its decay") {
    const nlohmann::json wsd = {{"name", "wsd"}, {"decay_steps", 5}};
    REQUIRE(train_longer(w, c, wsd, 8, {"train.stop_at=5"}).code == 0);
    check_length_refused(train_longer(w, c, wsd, 16),
                         {"train.steps", "5 of decay", "from step 4 on"});
  }
  SECTION("with another key") {
    const nlohmann::json constant = {{"name", "constant"}};
    REQUIRE(train_longer(w, c, constant, 8, {"train.stop_at=4"}).code == 0);
    check_length_refused(train_longer(w, c, constant, 16, {"seed=8"}),
                         {"seed, train.steps: expected the same values as in ",
                          "found changes (seed: 7 -> 8, train.steps: 8 -> 16); set them back"});
  }
  SECTION("below the steps that are done") {
    const nlohmann::json constant = {{"name", "constant"}};
    REQUIRE(train_longer(w, c, constant, 8, {"train.stop_at=4"}).code == 0);
    const std::string expected = "train.steps: expected at least the 4 steps";
    check_length_refused(train_longer(w, c, constant, 3), {expected});
    check_length_refused(
        train_longer(w, c, constant, 3, {"checkpoint.allow_change=[\"train.steps\"]"}),
        {expected, "found 3"});
  }
}

TEST_CASE("a refused resume shows the first keys as they were and as they are") {
  const Workplace w;
  const nlohmann::json c = small_run(w), constant = {{"name", "constant"}};
  REQUIRE(train_longer(w, c, constant, 8, {"train.stop_at=1"}).code == 0);
  check_length_refused(train_longer(w, c, constant, 8, {"model.attention.prior.init=laplace"}),
                       {"model.attention.prior.init: expected the same values as in ",
                        "(model.attention.prior.init: \"uniform\" -> \"laplace\")"});
  check_length_refused(train_longer(w, c, constant, 8, {"model.attention.prior=rope"}),
                       {"(model.attention.prior.name: \"bam\" -> \"rope\", ",
                        "model.attention.prior.decay: false -> unset, ",
                        "model.attention.prior.factor: unset -> 1.0", " more)"});
}

TEST_CASE("a run that has no step left to do says so") {
  const Workplace w;
  const nlohmann::json c = small_run(w), constant = {{"name", "constant"}};
  const Outcome first = train_longer(w, c, constant, 8);
  REQUIRE(first.code == 0);
  CHECK(first.output.find("already at step") == std::string::npos);
  const std::string saved = digest(w.path("out/checkpoint-00000008"));
  const Outcome done = train_longer(w, c, constant, 8);
  CHECK(done.code == 0);
  CHECK(done.output.find("already at step 8 of 8\n") != std::string::npos);
  const Outcome stopped = train_longer(w, c, constant, 8, {"train.stop_at=4"});
  CHECK(stopped.code == 0);
  CHECK(stopped.output.find("already at step 8 of 4 (train.stop_at)\n") != std::string::npos);
  CHECK(digest(w.path("out/checkpoint-00000008")) == saved);
}
