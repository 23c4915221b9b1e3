// state.json of a checkpoint: what a run accepts, and what it refuses.

#include <filesystem>

#include "catch.h"
#include "config/fixture.h"
#include "data/files.h"
#include "record/run_files.h"
#include "train/support.h"
#include "train/train_config.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::json;

namespace {

json good_state() {
  return json::parse(R"({
    "format": 1, "step": 4, "config": {"seed": 7}, "tokens": 4096,
    "data": {"fingerprint": "0123", "tokenizer_sha256": null, "windows": 64}
  })");
}

/// The message with which a state is refused; empty if it is accepted.
std::string state_refusal(const json& state, int64_t step = 4) {
  return error_or_none(ExitCode::checkpoint, [&] {
    check_run_state({"out/checkpoint-00000004", step, state});
  });
}

}  // namespace

TEST_CASE("a state as a run writes it is taken, and one that holds more") {
  CHECK(state_refusal(good_state()).empty());
  json state = good_state();
  state["started_from"] = "elsewhere/checkpoint-00000002";
  state["data"]["tokenizer_sha256"] = "4567";
  state["later"] = {{"members", {1, 2}}};
  CHECK(state_refusal(state).empty());
}

TEST_CASE("a member that is missing is named with its file") {
  for (const char* path : {"/config", "/tokens", "/data", "/data/fingerprint",
                           "/data/tokenizer_sha256", "/data/windows"}) {
    const json::json_pointer member(path);
    json state = good_state();
    state[member.parent_pointer()].erase(member.back());
    std::string name = std::string(path).substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    check_mentions(state_refusal(state),
                   {"out/checkpoint-00000004/state.json: " + name + ": missing (", "; "});
  }
}

TEST_CASE("a member of a wrong type or range is named with what it holds") {
  struct Bad {
    const char *path, *name, *expected;
    std::vector<json> values;
  };
  const std::vector<Bad> all = {
      {"/config", "config", "an object", {json(), 3, "x", json::array()}},
      {"/tokens", "tokens", "an integer from 0", {-1, 1.0, "4096", json(), UINT64_MAX, 1e30}},
      {"/data", "data", "an object", {json(), "x", json::array({1})}},
      {"/data/fingerprint", "data.fingerprint", "a string", {json(), 3, json::object(), true}},
      {"/data/sample", "data.sample", "a string", {json(), 3}},
      {"/data/tokenizer_sha256", "data.tokenizer_sha256", "a string or null", {3, json::array()}},
      {"/data/windows", "data.windows", "an integer from 0", {-1, 0.5, "64", json()}},
      {"/started_from", "started_from", "a string", {3, json(), json::object()}}};
  for (const Bad& bad : all) {
    for (const json& value : bad.values) {
      json state = good_state();
      state[json::json_pointer(bad.path)] = value;
      check_mentions(state_refusal(state),
                     {std::string("/state.json: ") + bad.name + ": expected " + bad.expected,
                      "found " + value.dump(), "; "});
    }
  }
}

TEST_CASE("a step that no run reaches is refused") {
  CHECK(state_refusal(good_state(), kMaxSteps).empty());
  for (const int64_t step : {kMaxSteps + 1, int64_t{1} << 62, INT64_MAX}) {
    check_mentions(state_refusal(good_state(), step),
                   {"state.json: step: expected an integer from 0 to 1099511627776",
                    "found " + std::to_string(step)});
  }
}

TEST_CASE("a checkpoint's moments have the names that PyTorch knows them by") {
  const Workplace w;
  json c = small_run(w);
  c["optimizer"] = {{"name", "adamw"}, {"lr", 1e-3}, {"betas", {0.75, 0.5}}};
  REQUIRE(
      run(bamtrain_command(write_config(w, "run.json", c), {"train.stop_at=1"}), threads(2)).code ==
      0);
  const SafetensorsFile file =
      SafetensorsFile::open(w.path("out/checkpoint-00000001/optimizer.safetensors"));
  const auto read = [&](const std::string& name) {
    const SafetensorsFile::Entry* entry = file.find(name);
    REQUIRE(entry != nullptr);
    std::vector<float> values(static_cast<size_t>(entry->bytes) / sizeof(float));
    file.read(*entry, values.data());
    return values;
  };
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  const std::vector<float> first = read(name + ".exp_avg"), second = read(name + ".exp_avg_sq");
  REQUIRE(first.size() == 64 * 64);
  REQUIRE(second.size() == first.size());
  // After one step, the moments are (1 - 0.75) g and (1 - 0.5) g^2.
  for (size_t i = 0; i < first.size(); ++i) {
    const double g = first[i] / 0.25;
    CHECK(second[i] == Approx(0.5 * g * g).epsilon(1e-5));
  }
}

TEST_CASE("a checkpoint of before there were samples of tokens resumes, and says what it lacks") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config), threads(2)).code == 0);
  const std::string whole = digest(w.path("out/checkpoint-00000008"));
  std::filesystem::remove_all(w.path("out"));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(2)).code == 0);
  forge_state(w.path("out/checkpoint-00000004"),
              [](json& state) { REQUIRE(state["data"].erase("sample") == 1); });
  const Outcome o = run(bamtrain_command(config), threads(2));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("it has no sample of tokens") != std::string::npos);
  CHECK(digest(w.path("out/checkpoint-00000008")) == whole);
}

TEST_CASE("a run refuses a checkpoint whose state does not fit, and leaves it alone") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(2)).code == 0);
  std::string checkpoint = w.path("out/checkpoint-00000004");
  const std::string good = digest(checkpoint);
  std::vector<std::string> words;
  SECTION("a wrong type") {
    forge_state(checkpoint, [](json& state) { state["data"]["fingerprint"] = 3; });
    words = {"state.json: data.fingerprint: expected a string, found 3"};
  }
  SECTION("a wrong place in the data") {
    forge_state(checkpoint, [](json& state) { state["data"]["windows"] = 65; });
    words = {"state.json: data.windows: expected 64, 16 per step for 4 steps, found 65"};
  }
  SECTION("a wrong number of tokens") {
    forge_state(checkpoint, [](json& state) { state["tokens"] = 0; });
    words = {"state.json: tokens: expected 4096, 1024 per step for 4 steps, found 0"};
  }
  SECTION("a step of 2^62") {
    forge_state(checkpoint, [](json& state) { state["step"] = int64_t{1} << 62; });
    const std::string named = w.path("out/checkpoint-4611686018427387904");
    std::filesystem::rename(checkpoint, named);
    checkpoint = named;
    words = {"state.json: step: expected an integer from 0 to 1099511627776"};
  }
  const Outcome o = run(bamtrain_command(config), threads(2));
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  words.push_back("; ");
  check_mentions(o.output, words);
  CHECK(digest(checkpoint) == good);
}

// Keys missing from an earlier program's state take the values with which its run was trained.
TEST_CASE(
    "a checkpoint of a program that knew fewer keys goes on to the bits of one that has them") {
  struct Case {
    const char *prior, *scale, *schedule;
  };
  for (const auto& [prior, scale, schedule] :
       {Case{"rope", "ssmax", "cosine"}, Case{"kerple", "adaptive", "wsd"},
        Case{"t5", "sentmax", "wsd"}, Case{"sinusoidal", "none", "cosine"},
        Case{"cable", "none", "cosine"}}) {
    INFO(prior << " with " << scale << ", " << schedule);
    const Workplace w;
    json c = small_run(w);
    c["config_version"] = 1;
    c["model"]["attention"]["prior"] = {{"name", prior}};
    c["model"]["attention"]["scale"] = {{"name", scale}};
    c["schedule"] = {{"name", schedule}, {"min_ratio", 0.1}};
    if (schedule == std::string("wsd")) c["schedule"]["decay_steps"] = 6;
    const std::string config = write_config(w, "run.json", c);
    const std::string straight = "out_dir=" + w.path("straight");
    REQUIRE(run(bamtrain_command(config, {straight}), threads(2)).code == 0);
    REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(2)).code == 0);
    forge_state(w.path("out/checkpoint-00000004"), [](json& state) {
      json& model = state["config"]["model"];
      for (const char* key : {"embed_scale", "head_dim", "norm_position"}) {
        REQUIRE(model.erase(key) == 1);
      }
      for (const char* key : {"decay", "gain", "init", "variant", "content_scale"}) {
        model["attention"]["prior"].erase(key);
      }
      for (const char* key : {"delta", "decay"}) model["attention"]["scale"].erase(key);
      REQUIRE(state["config"]["schedule"].erase("decay_shape") == 1);
      for (const char* key : {"length_tokens", "attention"}) {
        REQUIRE(state["config"]["eval"].erase(key) == 1);
      }
    });
    const Outcome o = run(bamtrain_command(config), threads(2));
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("resuming from") != std::string::npos);
    CHECK(digest(w.path("out/checkpoint-00000008")) ==
          digest(w.path("straight/checkpoint-00000008")));
  }
}
