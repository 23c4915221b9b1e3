// model.attention.prior as a list: the layers take its priors in turn.

#include <nlohmann/json.hpp>

#include "config/changes.h"
#include "fixture.h"

using bamtrain::keys_refused_on_resume;
using bamtrain::resolved_json;
using nlohmann::json;
using Names = std::vector<std::string>;

namespace {

/// kValid with this prior and four layers.
std::string with_prior(const std::string& prior) {
  json document = json::parse(kValid);
  document["model"]["layers"] = 4;
  document["model"]["attention"]["prior"] = json::parse(prior);
  return document.dump();
}

bamtrain::RunConfig read_with_prior(const std::string& prior, const Names& overrides = {}) {
  return bamtrain::read_run_config_text(with_prior(prior), "run.json", overrides);
}

const std::string kPair = R"([{"name": "rope", "theta": 100}, {"name": "bam", "train": []}])";

}  // namespace

TEST_CASE("a list of priors serves the layers in turn") {
  const auto prior = read_with_prior(kPair).model.attention.prior;
  REQUIRE(prior.pattern.size() == 2);
  for (int64_t l = 0; l < 4; ++l) CHECK(prior.of(l).name() == (l % 2 == 0 ? "rope" : "bam"));
  CHECK(prior.of(2).options.number("theta") == 100.0);
  CHECK(prior.of(3).options.list("train").empty());
  CHECK(prior.names() == "rope, bam");
}

TEST_CASE("a list is written with every option, and reads back equal") {
  const auto c = read_with_prior(kPair);
  const json written = prior_of(c);
  REQUIRE(written.is_array());
  CHECK(written[0] == json({{"name", "rope"},
                            {"theta", 100.0},
                            {"scaling", "none"},
                            {"factor", 1.0},
                            {"original_length", 0},
                            {"randomized", false},
                            {"randomized_length", 0},
                            {"randomized_draw", "sequence"},
                            {"eval_positions", "counted"}}));
  CHECK(written[1]["init"] == "uniform");
  const auto again = bamtrain::read_run_config_text(resolved_json(c).dump(), "run.json", {});
  CHECK(resolved_json(again) == resolved_json(c));
  CHECK(again.model.attention.prior.pattern == c.model.attention.prior.pattern);
}

TEST_CASE("a list of one is the prior alone") {
  CHECK(prior_of(read_with_prior(R"([{"name": "nope"}])")) == json({{"name", "nope"}}));
}

TEST_CASE("a list whose length does not divide the layers is refused") {
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"name": "nope"}, {"name": "rope"}])")),
                 {"run.json: model.attention.prior:", "a divisor of model.layers = 4", "found 3",
                  "give 2 or 4 priors"});
  check_mentions(message(with_prior("[]")),
                 {"run.json: model.attention.prior:", "empty list; name a prior"});
  check_mentions(message(with_prior(kPair), {"model.layers=5"}),
                 {"model.attention.prior:", "model.layers = 5"});
}

TEST_CASE("an entry of a list is named in what is wrong with it") {
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"name": "ropes"}])")),
                 {"run.json: model.attention.prior[1].name:", "did you mean rope?"});
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"theta": 3}])")),
                 {"run.json: model.attention.prior[1].name:", "missing (one of \"nope\""});
  check_mentions(message(with_prior(R"(["nope", "ropes"])")),
                 {"run.json: model.attention.prior[1].name:", "did you mean rope?"});
  check_mentions(message(with_prior(R"([3, "rope"])")),
                 {"run.json: model.attention.prior[0]:", "an object with a name"});
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"name": "rope", "theta": 0}])")),
                 {"run.json: model.attention.prior[1].theta:", "from 1 to"});
  const std::string foreign =
      message(with_prior(R"([{"name": "alibi", "theta": 3}, {"name": "nope"}])"));
  check_mentions(foreign, {"run.json: model.attention.prior[0].theta:", "an option of rope",
                           "remove what belongs to another mechanism"});
  CHECK(foreign.find("--set") == std::string::npos);
  check_mentions(message(with_prior(R"([[{"name": "nope"}], {"name": "nope"}])")),
                 {"run.json: model.attention.prior[0]:", "an object with a name",
                  "an entry of a list is one"});
  // Errors that depend on the shape of the model.
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"name": "rope", "factor": 2}])")),
                 {"run.json: model.attention.prior[1].factor:", "1 without scaling",
                  "set model.attention.prior[1].scaling"});
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"name": "rope", "scaling": "yarn"}])")),
                 {"run.json: model.attention.prior[1].factor:", "above 1 for yarn", "found 1"});
  // A list of one entry is also a list.
  check_mentions(
      message(with_prior(R"([{"name": "dape", "base": "rope", "variant": "bias_only"}])")),
      {"run.json: model.attention.prior[0].variant:",
       "model.attention.prior[0].base adds no bias"});
  check_mentions(message(with_prior(R"([{"name": "rope", "factor": 2}])")),
                 {"run.json: model.attention.prior[0].factor:"});
  check_mentions(message(with_prior(R"([{"name": "nope"}, {"name": "rope"}])"), {"model.heads=16"}),
                 {"run.json: model.attention.prior[1]:", "an even head dimension"});
}

TEST_CASE("priors that are added to the embedding are refused in a list") {
  for (const std::string name : {"sinusoidal", "learned"}) {
    check_mentions(message(with_prior("[{\"name\": \"nope\"}, {\"name\": \"" + name + "\"}]")),
                   {"run.json: model.attention.prior[1].name:", name.c_str(), "the embedding",
                    "without a list"});
    check_mentions(message(with_prior("[{\"name\": \"" + name + "\"}]")),
                   {"model.attention.prior[0].name:", "the embedding"});
  }
}

TEST_CASE("layers share parameters within one prior of a list, not between two") {
  CHECK(message(with_prior(R"([{"name": "t5"}, {"name": "cable"}, {"name": "t5"}, {"name": "bam",
                               "share": true}])"))
            .empty());
  CHECK(message(with_prior(R"([{"name": "t5"}, {"name": "t5", "share": false}])")).empty());
  check_mentions(message(with_prior(R"([{"name": "bam", "share": true, "init": "laplace"},
                             {"name": "bam", "share": true}])")),
                 {"run.json: model.attention.prior[1]:", "no second prior that shares theta_alpha",
                  "model.attention.prior[0]", "set share to false"});
}

TEST_CASE("multipliers know the parameters of every prior of a list") {
  CHECK(
      message(with_prior(R"(["rope", "bam"])"), {"optimizer.lr_multipliers.theta_beta=2"}).empty());
  check_mentions(message(with_prior(R"([{"name": "cable"}, {"name": "t5"}])"),
                         {"optimizer.lr_multipliers.theta_beta=2"}),
                 {"one of prior, scale, weight, bias, s"});
}

TEST_CASE("an override replaces a list whole, by objects or by bare names") {
  CHECK(prior_of(read_with_prior(kPair, {"model.attention.prior=alibi"}))["name"] == "alibi");
  const auto names =
      read_with_prior(R"({"name": "nope"})", {"model.attention.prior=[\"rope_local\",\"nope\"]"});
  CHECK(names.model.attention.prior.names() == "rope_local, nope");
  const auto objects = read_with_prior(
      R"({"name": "nope"})", {"model.attention.prior=[{\"name\":\"rope\",\"theta\":7},\"nope\"]"});
  CHECK(objects.model.attention.prior.of(2).options.number("theta") == 7.0);
  check_mentions(
      message(with_prior(kPair), {"model.attention.prior=[\"rope\",\"noope\"]"}),
      {"--set model.attention.prior=[", "model.attention.prior[1].name:", "did you mean nope?"});
  check_mentions(message(with_prior(kPair), {"model.attention.prior=[\"learned\"]"}),
                 {"--set model.attention.prior=[", "model.attention.prior[0].name:"});
}

TEST_CASE("an override of a part of a list says how to write the list") {
  for (const char* path : {"name=rope", "theta=3"}) {
    const std::string text = std::string("model.attention.prior.") + path;
    check_mentions(message(with_prior(kPair), {text}),
                   {"--set model.attention.prior.", "an object at \"model.attention.prior\"",
                    "the array", "--set 'model.attention.prior=[{\"name\": ...}, ...]'"});
  }
}

TEST_CASE("a resumed run has the priors of the run before, in every layer") {
  const json before = resolved_json(read_with_prior(kPair));
  CHECK(keys_refused_on_resume(before, before, {}).empty());
  const json other = resolved_json(
      read_with_prior(R"([{"name": "rope", "theta": 101}, {"name": "bam", "train": []}])"));
  CHECK(keys_refused_on_resume(before, other, {}) == Names{"model.attention.prior"});
  CHECK(keys_refused_on_resume(before, other, {"model.attention.prior"}).empty());
  const json object = resolved_json(read_with_prior(R"({"name": "nope"})"));
  CHECK(keys_refused_on_resume(before, object, {}) ==
        Names{"model.attention.prior", "model.attention.prior.name"});
  // An option unknown to the earlier program counts as its default.
  json older = before;
  older["model"]["attention"]["prior"][0].erase("scaling");
  CHECK(keys_refused_on_resume(older, before, {}).empty());
  CHECK(keys_refused_on_resume(older, other, {}) == Names{"model.attention.prior"});
}
