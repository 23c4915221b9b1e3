// config_version: keys that a config leaves open take the defaults of its version, so that a
// resumed run keeps the defaults that it began with.

#include <nlohmann/json.hpp>

#include "config/changes.h"
#include "config/renamed_keys.h"
#include "fixture.h"

using namespace bamtrain;

namespace {

RunConfig version(int64_t n, const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"config_version=" + std::to_string(n)};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return valid_with(all);
}

const Options& prior_options(const RunConfig& c) { return c.model.attention.prior.of(0).options; }

bool decays(int64_t config_version, const std::string& prior) {
  return prior_options(version(config_version, {"model.attention.prior=" + prior})).flag("decay");
}

nlohmann::json resolved(const RunConfig& c) { return resolved_json(c); }

}  // namespace

TEST_CASE("defaults are those of the config's version") {
  for (const char* rope : {"rope", "rope_local"}) {
    const std::string set = std::string("model.attention.prior=") + rope;
    CHECK(prior_options(version(1, {set})).number("theta") == 500000);
    CHECK(prior_options(version(2, {set})).number("theta") == 10000);
    CHECK(prior_options(version(1, {set, "model.attention.prior.theta=7"})).number("theta") == 7);
  }
  // In version 1, gates had weight decay, but tables and networks had none.
  for (const char* name : {"cable", "kcable", "transformer_xl"}) {
    CHECK((decays(1, name) && decays(2, name)));
  }
  for (const char* name : {"kerple", "fire", "t5"}) CHECK((!decays(1, name) && decays(2, name)));
  CHECK((!decays(1, "bam") && !decays(2, "bam")));
  const std::string adaptive = "model.attention.scale=adaptive";
  CHECK(version(1, {adaptive}).model.attention.scale.options.flag("decay"));
  CHECK_FALSE(version(2, {adaptive}).model.attention.scale.options.flag("decay"));
}

TEST_CASE("a version with a zero fraction is that version, for defaults too") {
  for (const char* one : {"1.0", "1e0", "10e-1"}) {
    const RunConfig c =
        valid_with({std::string("config_version=") + one, "model.attention.prior=rope",
                    "schedule.name=wsd", "schedule.decay_steps=3"});
    INFO(one);
    CHECK(c.config_version == 1);
    CHECK(prior_options(c).number("theta") == 500000);
    CHECK_FALSE(c.schedule.reaches_minimum);
  }
  check_mentions(message(kValid, {"config_version=1.5"}),
                 {"config_version:", "an integer from 1 to 3", "found the number 1.5"});
}

TEST_CASE("every prior of a list has the defaults of the config's version") {
  const RunConfig c = version(1, {R"(model.attention.prior=["rope","kerple"])"});
  CHECK(c.model.attention.prior.of(0).options.number("theta") == 500000);
  CHECK_FALSE(c.model.attention.prior.of(1).options.flag("decay"));
}

TEST_CASE("wsd reaches its minimum at the last step from version 2 on") {
  const std::vector<std::string> wsd = {"schedule.name=wsd", "schedule.decay_steps=3"};
  CHECK_FALSE(version(1, wsd).schedule.reaches_minimum);
  CHECK(version(2, wsd).schedule.reaches_minimum);
}

TEST_CASE("a run of version 1 is resumed under version 1 though its program knew fewer options") {
  for (const char* prior : {"kerple", "cable", "t5", "fire", "nape", "sinusoidal"}) {
    const std::string set = std::string("model.attention.prior=") + prior;
    const nlohmann::json now = resolved(version(1, {set}));
    nlohmann::json before = now;
    for (const char* newer : {"decay", "gain", "init", "slope_heads", "variant", "randomized",
                              "randomized_length", "randomized_draw", "eval_positions"}) {
      before["model"]["attention"]["prior"].erase(newer);
    }
    before["model"]["attention"]["scale"].erase("delta");
    before["model"]["attention"]["scale"].erase("decay");
    before["schedule"].erase("decay_shape");
    INFO(prior);
    CHECK(keys_refused_on_resume(before, now, {}).empty());
  }
}

TEST_CASE("another version is refused on resume, with every default that it changes") {
  const nlohmann::json before = resolved(version(1, {"model.attention.prior=kerple"}));
  nlohmann::json older = before;
  older["model"]["attention"]["prior"].erase("decay");
  const nlohmann::json now = resolved(version(2, {"model.attention.prior=kerple"}));
  const std::vector<std::string> expected = {"config_version", "model.attention.prior.decay"};
  CHECK(keys_refused_on_resume(before, now, {}) == expected);
  CHECK(keys_refused_on_resume(older, now, {}) == expected);
  CHECK(keys_refused_on_resume(before, now, expected).empty());
}

TEST_CASE("versions 2 and 3 have the same defaults: a run of one resumes under the other") {
  for (const char* prior : {"bam", "rope", "kerple", "cable", "t5", "fire", "nape"}) {
    const std::string set = std::string("model.attention.prior=") + prior;
    nlohmann::json earlier = resolved(version(2, {set})), now = resolved(version(3, {set}));
    INFO(prior);
    CHECK(keys_refused_on_resume(earlier, now, {}).empty());
    CHECK(keys_refused_on_resume(now, earlier, {}).empty());
    now["seed"] = 5;
    CHECK(keys_refused_on_resume(earlier, now, {}) == std::vector<std::string>{"seed"});
    earlier.erase("config_version");
    CHECK(keys_refused_on_resume(earlier, now, {"seed"}) ==
          std::vector<std::string>{"config_version"});
  }
}

TEST_CASE("up to version 2 eval.require_all_lengths may be called eval.insist") {
  CHECK(renamed_keys().size() == 1);
  for (const int64_t n : {1, 2}) {
    INFO(n);
    const RunConfig c = version(n, {"eval.insist=true"});
    CHECK(c.eval.require_all_lengths);
    CHECK(c.config_version == n);
    CHECK(version(n, {"eval={\"insist\":true}"}).eval.require_all_lengths);
    CHECK(version(n, {"eval.require_all_lengths=true"}).eval.require_all_lengths);
    CHECK_FALSE(version(n, {"eval.insist=false"}).eval.require_all_lengths);
    CHECK_FALSE(version(n, {}).eval.require_all_lengths);
    // The resolved config has the current name and reads back.
    const nlohmann::json now = resolved(c);
    CHECK(now["eval"]["require_all_lengths"] == true);
    CHECK_FALSE(now["eval"].contains("insist"));
    CHECK(resolved(read_run_config_text(now.dump(), "resolved", {})) == now);
    version(n, {"checkpoint.allow_change=[\"eval.insist\"]"});
  }
  CHECK(version(3, {"eval.require_all_lengths=true"}).eval.require_all_lengths);
}

TEST_CASE("eval.insist is refused with version 3, and with the key's current name") {
  const std::string v2 = "config_version=2";
  check_mentions(message(kValid, {"eval.insist=true"}),
                 {"--set eval.insist=true:", "unknown key",
                  "write \"eval.require_all_lengths\", its name since config_version 3"});
  check_mentions(message(replaced("\"train\": {", "\"eval\": {\"insist\": true}, \"train\": {")),
                 {"run.json: eval.insist:", "unknown key", "\"eval.require_all_lengths\""});
  check_mentions(message(kValid, {"checkpoint.allow_change=[\"eval.insist\"]"}),
                 {"checkpoint.allow_change:", "\"eval.insist\"", "\"eval.require_all_lengths\""});
  for (const char* value : {"true", "false"}) {
    const std::string both = std::string("eval.require_all_lengths=") + value;
    check_mentions(message(kValid, {v2, "eval.insist=true", both}),
                   {"--set eval.insist=true:", "one name of the key",
                    "this and eval.require_all_lengths", "remove one of them"});
  }
  check_mentions(message(kValid, {v2, "eval.insist=1"}),
                 {"--set eval.insist=1:", "true or false", "number 1"});
}

TEST_CASE("a run whose configuration has eval.insist is resumed, and counts as the same run") {
  const std::vector<std::string> lengths = {"eval.lengths=[8]", "data.val=v",
                                            "data.document_start=1"};
  const nlohmann::json now = resolved(version(2, lengths));
  nlohmann::json before = now;
  before["eval"].erase("require_all_lengths");
  before["eval"]["insist"] = true;
  CHECK(keys_refused_on_resume(before, now, {}).empty());
  CHECK(with_current_names(before)["eval"]["require_all_lengths"] == true);
  CHECK_FALSE(with_current_names(before)["eval"].contains("insist"));
  before["eval"]["insist"] = false;
  CHECK(with_current_names(before) == now);
  CHECK(with_current_names(now) == now);
  for (const nlohmann::json& odd : {nlohmann::json(), nlohmann::json({{"eval", 3}})}) {
    CHECK(with_current_names(odd) == odd);
  }
}

TEST_CASE("a resolved configuration of version 1 reads back as it is") {
  const RunConfig c = version(1, {"model.attention.prior=rope", "model.attention.scale=adaptive",
                                  "schedule.name=wsd", "schedule.decay_steps=2"});
  const RunConfig again = read_run_config_text(resolved(c).dump(), "resolved", {});
  CHECK(resolved(again) == resolved(c));
  CHECK(again.config_version == 1);
  CHECK_FALSE(again.schedule.reaches_minimum);
}
