// A run that starts from another run's weights computes the same function, at any training length.

#include "run/init_from_lengths.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "core/error.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json of_prior(const Json& prior) { return Json::object({{"prior", prior}}); }

Json scaled_rope(const char* scaling) {
  return {{"name", "rope"}, {"theta", 100}, {"scaling", scaling}, {"factor", 4}};
}

constexpr int kShort = 16, kLong = 4 * kShort;

std::string checkpoint_of(const Workplace& w, const std::string& out) {
  return w.path(out + "/checkpoint-00000001");
}

/// A run of one step at length kShort with this attention. Its learning rate of 1e-30 is below the
/// last bit of any weight. Initial values have a wide spread, so that the mechanisms matter.
Json still_run(const Workplace& w, const Json& attention) {
  Json c = small_run(w);
  c["optimizer"] = {{"name", "adamw"}, {"lr", 1e-30}, {"weight_decay", 0}};
  c["schedule"] = {{"name", "constant"}};
  c["data"]["shuffle"] = false;
  c["data"]["sequence_length"] = kShort;
  c["data"]["document_start"] = 1;
  c["model"]["init"] = "torch";
  c["model"]["attention"] = attention;
  c["train"].erase("tokens_per_step");
  c["train"]["sequences_per_step"] = 2;
  c["train"]["micro_batch"] = 2;
  c["train"]["lanes"] = 1;
  c["train"]["steps"] = 1;
  c["train"].erase("stop_at");
  c.erase("eval");
  c.erase("checkpoint");
  return c;
}

/// The losses of windows of kLong for a checkpoint, from perplexity.json.
Json losses_of(const Workplace& w, const std::string& checkpoint,
               const std::vector<std::string>& changes = {}) {
  const std::string out = w.path("perplexity.json");
  fs::remove(out);
  std::vector<std::string> command = {
      bamtrain_program(), "eval",   "--checkpoint", checkpoint, "--data",    w.path("val"),
      "--text",           "packed", "--protocols",  "windows",  "--lengths", std::to_string(kLong),
      "--count",          "4",      "--output",     out};
  for (const std::string& change : changes) command.insert(command.end(), {"--set", change});
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const Json windows = Json::parse(read_text(out))["windows"];
  REQUIRE(windows.size() == 1);
  return windows;
}

struct Begun {
  Workplace w;
  Json config;
  explicit Begun(const Json& attention) : config(still_run(w, attention)) {
    const Outcome o = run_config_into(w, config, "source");
    INFO(attention.dump() << o.output);
    REQUIRE(o.code == 0);
  }
  /// A run at kLong, starting from the source's checkpoint or from an export of it.
  Outcome next(const std::string& folder, const std::vector<std::string>& more = {},
               const std::string& out = "next") {
    Json c = config;
    c["data"]["sequence_length"] = kLong;
    c["seed"] = 9;
    c["init_from"] = {{"folder", folder}};
    return run_config_into(w, c, out, more);
  }
  std::string exported(const std::string& out = "source") const {
    const std::string folder = w.path(out + "-hf");
    fs::remove_all(folder);
    const Outcome o = run(
        {bamtrain_program(), "export", "--checkpoint", checkpoint_of(w, out), "--output", folder},
        threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return folder;
  }
  Json attention(const std::string& out) const {
    return Json::parse(
        read_text(checkpoint_of(w, out) + "/state.json"))["config"]["model"]["attention"];
  }
};

/// Runs at kLong that start from either, without warnings, evaluate like the source.
void check_same_function(const Json& attention) {
  INFO(attention.dump());
  Begun b(attention);
  const Json expected = losses_of(b.w, checkpoint_of(b.w, "source"));
  for (const std::string& folder : {checkpoint_of(b.w, "source"), b.exported()}) {
    const Outcome o = b.next(folder);
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("warning") == std::string::npos);  // no difference is reported
    CHECK(losses_of(b.w, checkpoint_of(b.w, "next")) == expected);
    fs::remove_all(b.w.path("next"));
  }
}

}  // namespace

TEST_CASE("every prior at four times the length evaluates as the model that it began from") {
  for (const PriorInfo& p : all_priors()) {
    Json prior = {{"name", p.name}};
    // Tables with one row per position must be long enough.
    if (p.name == "learned") prior["positions"] = kLong;
    check_same_function(of_prior(prior));
    if (!p.randomized || p.name == "learned") continue;
    prior["randomized"] = true;
    prior["randomized_length"] = 0;
    check_same_function(of_prior(prior));
  }
  for (const char* scaling : {"linear", "ntk", "yarn", "llama3"}) {
    check_same_function(of_prior(scaled_rope(scaling)));
  }
  check_same_function(of_prior({{"name", "dape"}, {"base", "fire"}}));
  check_same_function(of_prior(Json::array({"rope_local", "fire"})));
}

TEST_CASE("every scale and normalizer at four times the length likewise") {
  for (const ScaleInfo& s : all_scales()) {
    if (s.evaluation_only) continue;
    Json scale = {{"name", s.name}};
    if (s.name == "by_length") scale["lengths"] = kLong;
    check_same_function({{"prior", "bam"}, {"scale", scale}});
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    check_same_function({{"prior", "alibi"}, {"normalizer", {{"name", n.name}}}});
  }
}

TEST_CASE("the numbers of the source's length are in the resolved config, and go on from there") {
  Begun b(of_prior(Json::array({"rope_local", "fire"})));
  const std::string folder = b.exported();
  REQUIRE(b.next(folder, {"train.steps=2", "train.stop_at=1"}).code == 0);
  const Json prior = b.attention("next")["prior"];
  CHECK(prior[0]["window"] == kShort + 1);
  CHECK(prior[1]["threshold_length"] == kShort);
  // A resumed run does not read the folder. Keys left open then do not count as changed.
  fs::remove_all(folder);
  const Outcome resumed = b.next(folder, {"train.steps=2"});
  INFO(resumed.output);
  CHECK(resumed.code == 0);
  CHECK(resumed.output.find("resuming from ") != std::string::npos);
}

TEST_CASE("a config that asks for other numbers has them, and is told each") {
  Begun b(of_prior("rope_local"));
  for (const std::string& folder : {checkpoint_of(b.w, "source"), b.exported()}) {
    const Outcome o = b.next(folder, {"model.attention.prior.window=33"});
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("window is 17, but model.attention.prior.window of this run is 33") !=
          std::string::npos);
    CHECK(b.attention("next")["prior"]["window"] == 33);
    fs::remove_all(b.w.path("next"));
  }
}

TEST_CASE("a prior of init_from.new has the numbers of its own length") {
  Begun b(of_prior("alibi"));
  const Outcome o = b.next(checkpoint_of(b.w, "source"),
                           {"model.attention.prior=fire", "init_from.new=[\"prior\"]"});
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(b.attention("next")["prior"]["threshold_length"] == 0);
}

TEST_CASE("a number that the run's length does not allow is refused, with what has it") {
  Begun b(of_prior("learned"));
  const Outcome o = b.next(checkpoint_of(b.w, "source"));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::config));
  CHECK(o.output.find("model.attention.prior.positions: expected at least data.sequence_length = "
                      "64, found 16; lower data.sequence_length: ") != std::string::npos);
}

TEST_CASE("a Llama's yarn keeps the length that its config.json has") {
  Begun b(of_prior(scaled_rope("yarn")));
  const std::string folder = b.exported();
  const Json config = Json::parse(read_text(folder + "/config.json"));
  REQUIRE(config["model_type"] == "llama");
  CHECK(config["rope_scaling"]["original_max_position_embeddings"] == kShort);
  const Outcome o = b.next(folder);
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(b.attention("next")["prior"]["original_length"] == kShort);
  const Outcome other = b.next(folder, {"model.attention.prior.original_length=64"}, "other");
  INFO(other.output);
  CHECK(other.output.find("rope_scaling.original_max_position_embeddings is 16, but "
                          "model.attention.prior.original_length of this run is 64") !=
        std::string::npos);
}

TEST_CASE("yarn and llama3 after a rope without them count turns in the length of that training") {
  for (const Json& source :
       {of_prior({{"name", "rope"}, {"theta", 100}}), of_prior(scaled_rope("linear")),
        of_prior({{"name", "rope_local"}, {"theta", 100}})}) {
    Begun b(source);
    for (const char* scaling : {"yarn", "llama3"}) {
      const std::vector<std::string> scaled = {
          std::string("model.attention.prior.scaling=") + scaling,
          "model.attention.prior.factor=4"};
      // The source itself, scaled, at its own length.
      const Json expected = losses_of(b.w, checkpoint_of(b.w, "source"), scaled);
      for (const std::string& folder : {checkpoint_of(b.w, "source"), b.exported()}) {
        INFO(source.dump() << scaling << folder);
        const Outcome o = b.next(folder, scaled);
        INFO(o.output);
        REQUIRE(o.code == 0);
        CHECK(b.attention("next")["prior"]["original_length"] == kShort);
        if (source["prior"]["name"] == "rope") {
          CHECK(losses_of(b.w, checkpoint_of(b.w, "next")) == expected);
        }
        const Json config = Json::parse(read_text(b.exported("next") + "/config.json"));
        if (config["model_type"] == "llama") {
          CHECK(config["rope_scaling"]["original_max_position_embeddings"] == kShort);
        } else {
          CHECK(config["priors"][0]["original_length"] == kShort);
        }
        fs::remove_all(b.w.path("next"));
      }
    }
    const Outcome own = b.next(checkpoint_of(b.w, "source"),
                               {"model.attention.prior={\"name\":\"rope\",\"scaling\":\"yarn\","
                                "\"factor\":4,\"original_length\":20}"});
    INFO(own.output);
    REQUIRE(own.code == 0);
    CHECK(b.attention("next")["prior"]["original_length"] == 20);
  }
}

TEST_CASE("a source's state is believed by its digest, and no number in it that no run has") {
  Begun b(of_prior(Json::array({"rope_local", "fire"})));
  const std::string folder = checkpoint_of(b.w, "source"), state = folder + "/state.json";
  const std::string good = read_text(state);
  const auto refused = [&](const std::string& words) {
    const Outcome o = b.next(folder);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
    CHECK(o.output.find(words) != std::string::npos);
    CHECK_FALSE(fs::exists(b.w.path("next")));
  };
  Json changed = Json::parse(good);
  changed["config"]["model"]["attention"]["prior"][0]["window"] = 1e300;
  std::ofstream(state) << changed.dump(2) << "\n";
  refused(state + ": expected ");
  std::ofstream(state) << good;
  const auto forged = [&](const std::string& member, const Json& value, const std::string& bounds) {
    forge_state(folder, [&](Json& s) {
      s = Json::parse(good);
      s["config"][Json::json_pointer(member)] = value;
    });
    std::string place = member.substr(1);
    std::replace(place.begin(), place.end(), '/', '.');
    if (const size_t at = place.find(".0."); at != std::string::npos) place.replace(at, 3, "[0].");
    if (const size_t at = place.find(".1."); at != std::string::npos) place.replace(at, 3, "[1].");
    refused(state + ": config." + place + ": expected an integer from " + bounds + ", found " +
            value.dump());
  };
  for (const Json& value : {Json(1e300), Json(-1), Json(17.5), Json(UINT64_MAX)}) {
    forged("/model/attention/prior/0/window", value, "0 to 1000000000");
    forged("/model/attention/prior/1/threshold_length", value, "0 to 1000000000");
    forged("/model/attention/window", value, "0 to 2147483647");
    forged("/data/sequence_length", value, "1 to 2147483647");
  }
}

TEST_CASE("a number that no run has is refused in an export's config.json, by its place") {
  Begun b(of_prior(Json::array({"rope_local", "fire"})));
  const std::string folder = b.exported(), path = folder + "/config.json";
  Json config = Json::parse(read_text(path));
  config["priors"][0]["window"] = 1e300;
  std::ofstream(path) << config;
  const Outcome o = b.next(folder);
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(o.output.find(path + ": priors[0].window: expected an integer from 0 to 1000000000, found "
                             "1e+300; use another folder") != std::string::npos);
}
