// A mix of heads in model.attention.prior; its base is a separate object.

#include <nlohmann/json.hpp>

#include "config/changes.h"
#include "fixture.h"

using bamtrain::resolved_json;
using nlohmann::json;
using Names = std::vector<std::string>;

namespace {

const std::string kDapeOverKerple =
    R"(model.attention.prior={"name": "dape", "base": {"name": "kerple", "kernel": "power"}})";

}  // namespace

TEST_CASE("a mix stands beside its base, and is written with every option of both") {
  const auto c = valid_with({kDapeOverKerple});
  CHECK(c.model.attention.prior.of(1).name() == "kerple");
  CHECK(c.model.attention.prior.of(1).options.text("kernel") == "power");
  CHECK(c.model.attention.prior.mix_of(1).name() == "dape");
  CHECK(c.model.attention.prior.names() == "dape over kerple");
  CHECK(prior_of(c) == json({{"name", "dape"},
                             {"base", {{"name", "kerple"}, {"kernel", "power"}, {"decay", true}}},
                             {"variant", "concat_residual"},
                             {"hidden", 32},
                             {"decay", true}}));
  const auto again = bamtrain::read_run_config_text(resolved_json(c).dump(), "run.json", {});
  CHECK(resolved_json(again) == resolved_json(c));
}

TEST_CASE("a mix by its name alone is over kerple, and a base may be a name") {
  CHECK(prior_of(valid_with({"model.attention.prior=dape"}))["base"]["name"] == "kerple");
  const auto named = valid_with({R"(model.attention.prior={"name": "dape", "base": "alibi"})"});
  CHECK(named.model.attention.prior.of(0).name() == "alibi");
  CHECK_FALSE(valid_with({"model.attention.prior=alibi"}).model.attention.prior.mix_of(0));
}

TEST_CASE("overrides reach a mix, its base and the base's options") {
  const auto c = valid_with({kDapeOverKerple, "model.attention.prior.hidden=8",
                             "model.attention.prior.base.kernel=logarithmic"});
  CHECK(c.model.attention.prior.mix_of(0).options.number("hidden") == 8);
  CHECK(c.model.attention.prior.of(0).options.text("kernel") == "logarithmic");
  const auto other = valid_with(
      {kDapeOverKerple, "model.attention.prior.base=rope", "model.attention.prior.base.theta=123"});
  CHECK(other.model.attention.prior.of(0).options.number("theta") == 123);
  CHECK(other.model.attention.prior.mix_of(0).name() == "dape");
  const auto renamed = valid_with({"model.attention.prior={\"name\":\"dape\",\"base\":\"nope\"}",
                                   "model.attention.prior.base.name=alibi"});
  CHECK(renamed.model.attention.prior.names() == "dape over alibi");
}

TEST_CASE("overrides reach the options of a base that a mix leaves to its default") {
  const std::string kernel = "model.attention.prior.base.kernel=power";
  const json expected = {{"name", "kerple"}, {"kernel", "power"}, {"decay", true}};
  const std::string file = replaced(R"({"name": "bam", "init": "laplace"})", R"({"name": "dape"})");
  const auto of_file = [&](const Names& changes) {
    return prior_of(bamtrain::read_run_config_text(file, "run.json", changes));
  };
  CHECK(of_file({kernel})["base"] == expected);
  CHECK(of_file({"model.attention.prior.base.name=alibi"})["base"]["name"] == "alibi");
  CHECK(of_file({"model.attention.prior.name=alibi"})["name"] == "alibi");
  CHECK(prior_of(valid_with({"model.attention.prior=dape", kernel}))["base"] == expected);
  check_mentions(
      message(file, {"model.attention.prior.base.theta=3"}),
      {"--set model.attention.prior.base.theta=3:", "kerple has no option", "an option of rope"});
  check_mentions(message(kValid, {kernel}), {"model.attention.prior.base:", "an option of dape"});
}

TEST_CASE("layers in turn have mixes or none") {
  const auto c = valid_with(
      {R"(model.attention.prior=["alibi", {"name": "dape", "base": "t5", "variant": "concat"}])"});
  CHECK(c.model.attention.prior.names() == "alibi, dape over t5");
  CHECK_FALSE(c.model.attention.prior.mix_of(0));
  CHECK(c.model.attention.prior.mix_of(1).options.text("variant") == "concat");
  CHECK(prior_of(c)[1]["base"]["name"] == "t5");
}

TEST_CASE("what a mix is not defined for is refused by its key") {
  const auto refused = [](const std::string& change) { return message(kValid, {change}); };
  for (const char* base : {"learned", "cope", "transformer_xl"}) {
    const std::string named = "\"" + std::string(base) + "\"";
    const std::string said =
        refused(R"(model.attention.prior={"name": "dape", "base": )" + named + "}");
    check_mentions(said,
                   {"model.attention.prior.base.name", "alibi", named.c_str(), "does not mix it"});
    CHECK(said.find("did you mean") == std::string::npos);
  }
  check_mentions(refused(R"(model.attention.prior={"name": "dape", "base": "kerpel"})"),
                 {"model.attention.prior.base.name", "did you mean kerple"});
  check_mentions(refused(R"(model.attention.prior={"name": "dape", "base": {"theta": 3}})"),
                 {"model.attention.prior.base.name", "add \"name\""});
  check_mentions(refused(R"(model.attention.prior={"name": "dape", "base": "dape"})"),
                 {"model.attention.prior.base.name"});
  check_mentions(
      refused(R"(model.attention.prior={"name": "dape", "base": {"name": "alibi", "theta": 2}})"),
      {"model.attention.prior.base.theta", "alibi has no option"});
  check_mentions(refused(R"(model.attention.prior={"name": "dape", "hidden": 65})"),
                 {"model.attention.prior.hidden", "4 to 64", "65"});
  check_mentions(refused(R"(model.attention.prior={"name": "dape", "variant": "sum"})"),
                 {"model.attention.prior.variant", "add_residual"});
  check_mentions(
      refused(R"(model.attention.prior={"name": "dape", "base": "nope", "variant": "bias_only"})"),
      {"model.attention.prior.variant", "model.attention.prior.base", "bias_only"});
  check_mentions(refused(R"(model.attention.prior={"name": "alibi", "base": "nope"})"),
                 {"model.attention.prior.base", "dape"});
}

TEST_CASE("an option of a mix or of its base is told its place where it stands in the other") {
  const auto refused = [](const std::string& prior) {
    return message(kValid, {"model.attention.prior=" + prior});
  };
  check_mentions(refused(R"({"name": "dape", "base": {"name": "kerple", "hidden": 4}})"),
                 {": model.attention.prior.base.hidden:",
                  R"("hidden" (an option of dape, in model.attention.prior))",
                  "write it in model.attention.prior"});
  check_mentions(
      refused(R"(["nope", {"name": "dape", "base": {"name": "nope", "hidden": 4}}])"),
      {"an option of dape, in model.attention.prior[1])", "write it in model.attention.prior[1]"});
  check_mentions(refused(R"({"name": "dape", "kernel": "power"})"),
                 {R"("kernel" (an option of kerple, in model.attention.prior.base))",
                  "write it in model.attention.prior.base"});
  check_mentions(refused(R"({"name": "dape", "base": {"name": "alibi", "hidden": 4, "x": 1}})"),
                 {"write what belongs to dape in model.attention.prior, and remove the rest"});
  // An option of neither gets the usual message.
  check_mentions(refused(R"({"name": "dape", "theta": 3})"),
                 {R"("theta" (an option of rope)", "remove what belongs to another mechanism"});
  check_mentions(refused(R"({"name": "dape", "base": {"name": "kerple", "base": "nope"}})"),
                 {"model.attention.prior.base.base:", "remove it"});
}

TEST_CASE("a list of bases is told where layers differ") {
  const std::string said =
      message(kValid, {R"(model.attention.prior={"name": "dape", "base": ["kerple"]})"});
  check_mentions(said, {": model.attention.prior.base:", "found the array", "write a list of mixes",
                        "write {\"name\": ...}"});
  CHECK(said.find("share") == std::string::npos);
}

TEST_CASE("a mix is named as a group, where there is one") {
  const std::string rate = "optimizer.lr_multipliers.mix=2";
  const Names from = {"init_from.folder=x", "init_from.new=[\"mix\"]"};
  const auto with = [](Names changes, const std::string& prior) {
    changes.insert(changes.begin(), "model.attention.prior=" + prior);
    return message(kValid, changes);
  };
  CHECK(with({rate}, "dape").empty());
  CHECK(with({rate}, R"({"name": "dape", "base": "rope"})").empty());
  check_mentions(
      with({rate}, "kerple"),
      {"optimizer.lr_multipliers.mix:",
       "expected one of prior, scale, r1, r2, s, found mix, but this model's mix has no trained "
       "parameters"});
  check_mentions(with({"optimizer.lr_multipliers.mixx=2"}, "dape"),
                 {"one of prior, mix, scale, r1, r2, weight1", "did you mean mix?"});
  CHECK(with(from, "dape").empty());
  CHECK(with(from, "kerple").empty());
}

TEST_CASE("a base that adds no bias takes every variant that reads scores") {
  for (const char* variant : {"concat", "concat_residual", "add_residual"}) {
    const auto c = valid_with({R"(model.attention.prior={"name": "dape", "base": "rope"})",
                               std::string("model.attention.prior.variant=") + variant});
    const auto parameters = c.model.attention.prior.mix_parameters(0, c.model.shape(16));
    CHECK(parameters.at(0).shape == std::vector<int64_t>{32, 4});
  }
}

TEST_CASE("a resumed run's mix may leave open what has its default, and not differ") {
  const json now = resolved_json(valid_with({kDapeOverKerple}));
  json before = now;
  before["model"]["attention"]["prior"].erase("hidden");
  before["model"]["attention"]["prior"]["base"].erase("decay");
  CHECK(bamtrain::keys_refused_on_resume(before, now, {}).empty());
  before["model"]["attention"]["prior"]["base"]["kernel"] = "logarithmic";
  CHECK(bamtrain::keys_refused_on_resume(before, now, {}) ==
        Names{"model.attention.prior.base.kernel"});
}
