#include "config/command_line_value.h"

#include <nlohmann/json.hpp>

#include "config/overrides.h"
#include "fixture.h"

using bamtrain::resolved_json;
using nlohmann::json;

namespace {

/// The resolved config after overrides.
json resolved_with(const std::vector<std::string>& overrides) {
  return resolved_json(valid_with(overrides));
}

}  // namespace

TEST_CASE("lists of numbers and of fixed names need no brackets on the command line") {
  CHECK(valid_with({"data.val=v", "eval.lengths=64,128"}).eval.lengths ==
        std::vector<int64_t>{64, 128});
  CHECK(valid_with({"data.val=v", "eval.lengths=64"}).eval.lengths == std::vector<int64_t>{64});
  CHECK(valid_with({"data.val=v", "eval.lengths=1_024,2_048"}).eval.lengths ==
        std::vector<int64_t>{1024, 2048});
  CHECK(resolved_with({"optimizer.betas=0.9,0.95"}) ==
        resolved_with({"optimizer.betas=[0.9,0.95]"}));
  const std::string train = "model.attention.prior.train=";
  CHECK(resolved_with({train + "theta_beta,theta_alpha"}) ==
        resolved_with({train + "[\"theta_beta\",\"theta_alpha\"]"}));
  CHECK(resolved_with({train + "theta_beta"}) == resolved_with({train + "[\"theta_beta\"]"}));
  CHECK(resolved_with({"model.attention.prior=rope,nope"}) ==
        resolved_with({"model.attention.prior=[\"rope\",\"nope\"]"}));
}

TEST_CASE("an element of a list is not empty") {
  for (const char* value : {"64,", ",64", "64,,128"}) {
    check_mentions(message(kValid, {std::string("eval.lengths=") + value}),
                   {"eval.lengths[", "an integer", "found the string \"\""});
  }
}

TEST_CASE("a list of free texts needs its brackets") {
  CHECK_THROWS(valid_with({"checkpoint.allow_change=seed,name"}));
  CHECK(valid_with({"checkpoint.allow_change=[\"seed\"]"}).checkpoint.allow_change ==
        std::vector<std::string>{"seed"});
}

TEST_CASE("True, False and separated digits are understood where a key asks for them") {
  CHECK(valid_with({"model.tied=True"}).model.tied);
  CHECK_FALSE(valid_with({"model.tied=False"}).model.tied);
  CHECK(valid_with({"train.steps=1_000"}).train.steps == 1000);
  CHECK(valid_with({"optimizer.lr=0.000_5"}).optimizer.lr == 0.0005);
  CHECK(valid_with({"model.attention.prior=rope", "model.attention.prior.theta=500_000"})
            .model.attention.prior.of(0)
            .options.number("theta") == 500000);
  CHECK(valid_with({"name=1_000"}).name == "1_000");
  CHECK(valid_with({"name=True"}).name == "True");
  CHECK(valid_with({"name=a,b"}).name == "a,b");
  CHECK(valid_with({"data.train=a_1,b"}).data.train.list[0].path == "a_1,b");
}

TEST_CASE("digits are separated between digits alone") {
  for (const char* value : {"_1000", "1000_", "1__000", "1_e3", "-_1"}) {
    check_mentions(message(kValid, {std::string("train.steps=") + value}),
                   {"train.steps", "an integer"});
  }
}

TEST_CASE("files hold JSON alone") {
  check_mentions(message(replaced("\"steps\": 10", "\"steps\": \"1_000\"")),
                 {"run.json: train.steps", "an integer"});
  check_mentions(message(replaced("\"layers\": 2", "\"layers\": 2, \"tied\": \"True\"")),
                 {"run.json: model.tied", "true or false"});
}

TEST_CASE("an object's name alone sets what names it, and leaves the rest") {
  CHECK(valid_with({"model.norm=layernorm"}).model.norm.kind == bamtrain::NormKind::layernorm);
  const json by_group = resolved_with({"optimizer.lr=2e-3", "optimizer=radam"});
  CHECK(by_group == resolved_with({"optimizer.lr=2e-3", "optimizer.name=radam"}));
  CHECK(resolved_with({"schedule=cosine"}) == resolved_with({"schedule.name=cosine"}));
  CHECK(resolved_with({"model.mlp=gelu"}) == resolved_with({"model.mlp.kind=gelu"}));
  check_mentions(message(kValid, {"model.norm=layernrom"}),
                 {"--set model.norm=layernrom", "did you mean layernorm?"});
  check_mentions(message(kValid, {"train=5"}), {"--set train=5", "an object", "the number 5"});
}
