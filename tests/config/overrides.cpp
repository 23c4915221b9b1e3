#include "config/overrides.h"

#include <nlohmann/json.hpp>

#include "fixture.h"

using bamtrain::parse_override;
using bamtrain::resolved_json;

TEST_CASE("the value of an override is JSON, or else a bare string") {
  const auto value = [](const std::string& text) { return parse_override("k=" + text).value; };
  CHECK(value("3") == 3);
  CHECK(value("-1.5e-3") == -1.5e-3);
  CHECK(value("true") == true);
  CHECK(value("null").is_null());
  CHECK(value("[1,2]") == nlohmann::json({1, 2}));
  CHECK(value("{\"a\":{\"b\":1}}")["a"]["b"] == 1);
  CHECK(value("\"3\"") == "3");
  CHECK(value("rope") == "rope");
  CHECK(value("") == "");
  CHECK(value("a=b") == "a=b");
  CHECK(value("data/*.bin") == "data/*.bin");
  CHECK(value("1.2.3") == "1.2.3");
  CHECK(value("nan") == "nan");
}

TEST_CASE("an override without a key or a value is refused as misuse of the command line") {
  for (const char* text : {"model.width", "=3", ".a=3", "a.=3", "a..b=3", ""}) {
    check_mentions(message(kValid, {text}, bamtrain::ExitCode::usage), {"--set", "key=value"});
  }
}

TEST_CASE("a key of very many names is refused as misuse of the command line") {
  std::string key = "model.attention.prior";
  for (int i = 0; i < 97; ++i) key += ".a";
  check_mentions(message(kValid, {key + "=1"}),
                 {"bam has no option \"a\"; its options are init, train, share, decay"});
  for (int i = 0; i < 60'000; ++i) key += ".a";
  check_mentions(message(kValid, {key + "=1"}, bamtrain::ExitCode::usage),
                 {"--set model.attention.prior.a", "at most 100 names", "60100"});
}

TEST_CASE("an override that begins like JSON must be JSON") {
  check_mentions(message(kValid, {"eval.lengths=[512,"}), {"--set eval.lengths=[512,", "cut off"});
  check_mentions(message(kValid, {"name=\"x"}), {"--set name=\"x", "invalid JSON"});
  check_mentions(message(kValid, {"optimizer={\"lr\":1,\"lr\":2}"}),
                 {"--set", "duplicate key \"lr\""});
  check_mentions(message(kValid, {"name=\xff"}), {"--set", "UTF-8"});
}

TEST_CASE("an override reaches any key, in the file or not") {
  CHECK(valid_with({"model.width=96"}).model.width == 96);
  CHECK(valid_with({"model.norm.kind=layernorm"}).model.norm.kind == bamtrain::NormKind::layernorm);
  CHECK(valid_with({"data.train=shards/*.bin"}).data.train.list ==
        std::vector<bamtrain::DataSource>{{"shards/*.bin"}});
  CHECK(valid_with({"data.val=v", "eval.lengths=[16,32]"}).eval.lengths ==
        std::vector<int64_t>{16, 32});
  CHECK(valid_with({"data.document_start=7", "data.document_start=null"}).data.document_start ==
        std::nullopt);
  CHECK(valid_with({"optimizer.lr_multipliers.theta_beta=0.5"})
            .optimizer.lr_multipliers.at("theta_beta") == 0.5);
}

TEST_CASE("of two overrides of a key the last one counts") {
  CHECK(valid_with({"train.steps=20", "train.steps=30"}).train.steps == 30);
}

TEST_CASE("an override that would take away what an earlier one gave is refused") {
  const std::string alpha = "model.attention.normalizer.alpha=2";
  check_mentions(
      message(kValid,
              {"model.attention.normalizer=entmax", alpha, "model.attention.normalizer=topk"},
              bamtrain::ExitCode::usage),
      {"--set model.attention.normalizer=topk:", "--set model.attention.normalizer.alpha=2",
       "the other order"});
}

TEST_CASE("an override of an object replaces it whole") {
  const auto c = valid_with({"model.attention={\"scale\":{\"name\":\"ssmax\",\"offset\":1}}"});
  CHECK(c.model.attention.prior.names() == "nope");
  CHECK(c.model.attention.scale.options.number("offset") == 1.0);
}

TEST_CASE("a mechanism is replaced by name or by object, with its own defaults") {
  const auto by_name = valid_with({"model.attention.prior=rope"}).model.attention.prior.of(0);
  CHECK(by_name.name() == "rope");
  CHECK(by_name.options.number("theta") == 10000.0);
  CHECK_FALSE(by_name.options.has("init"));
  const auto by_object = valid_with({"model.attention.prior={\"name\":\"rope\",\"theta\":2e4}"});
  CHECK(by_object.model.attention.prior.of(0).options.number("theta") == 20000.0);
  const auto then_option =
      valid_with({"model.attention.prior=rope", "model.attention.prior.theta=123"});
  CHECK(then_option.model.attention.prior.of(0).options.number("theta") == 123.0);
  const auto same = valid_with({"model.attention.prior=bam"}).model.attention.prior.of(0);
  CHECK(same.options.text("init") == "uniform");
  CHECK(valid_with({"model.attention.normalizer=softmax"}).model.attention.normalizer.name() ==
        "softmax");
}

TEST_CASE("a bare name is the mechanism with its defaults, in a file as in an override") {
  const std::string file = replaced("{\"name\": \"ssmax\"}", "\"sentmax\"");
  const auto read = [&](const std::vector<std::string>& overrides) {
    return resolved_json(bamtrain::read_run_config_text(file, "run.json", overrides));
  };
  CHECK(read({}) == resolved_json(valid_with({"model.attention.scale=sentmax"})));
  CHECK(read({"model.attention.scale.delta=2"})["model"]["attention"]["scale"]["delta"] == 2.0);
  CHECK(read({"model.attention.prior=[\"nope\",{\"name\":\"rope\",\"theta\":3}]"}) ==
        read({"model.attention.prior=[{\"name\":\"nope\"},{\"name\":\"rope\",\"theta\":3}]"}));
  const auto whole = valid_with({"model.attention={\"prior\":\"alibi\",\"scale\":\"ssmax\"}",
                                 "model.attention.scale.offset=1"});
  CHECK(whole.model.attention.prior.names() == "alibi");
  CHECK(whole.model.attention.scale.options.number("offset") == 1.0);
}

TEST_CASE("an override cannot pass through a value") {
  check_mentions(message(kValid, {"model.width.x=3"}),
                 {"--set model.width.x=3", "an object at \"model.width\"", "the number 48"});
  check_mentions(message(kValid, {"optimizer.betas=[0.9,0.99]", "optimizer.betas.0=0.5"}),
                 {"--set optimizer.betas.0=0.5", "as a whole"});
}

TEST_CASE("an unknown key in an override is refused as in a file") {
  check_mentions(message(kValid, {"model.widht=3"}),
                 {"--set model.widht=3:", "unknown key", "did you mean model.width?"});
  check_mentions(message(kValid, {"optimiser.lr=3"}),
                 {"--set optimiser.lr=3: optimiser:", "did you mean optimizer?"});
}

TEST_CASE("an unknown group is blamed on the override that made it, and on the file where it did") {
  check_mentions(message(kValid, {"seed=1", "foo.bar=1", "foo.baz=2", "name=x"}),
                 {"--set foo.bar=1: foo:", "unknown key"});
  check_mentions(message(kValid, {"model.foo.bar.baz=1"}),
                 {"--set model.foo.bar.baz=1: model.foo: unknown key"});
  check_mentions(message(replaced("\"out_dir\"", "\"foo\": {}, \"out_dir\""), {"foo.bar=1"}),
                 {"run.json: foo:", "unknown key"});
  // The group is known, and the override created it. The missing key is the file's omission.
  const std::string without = replaced("\"mlp\": {\"hidden\": 64},", "");
  check_mentions(message(without, {"model.mlp.kind=gelu"}), {"run.json: model.mlp.hidden:"});
  const std::string endless(300, 'x');
  check_mentions(message(kValid, {endless + "=1"}), {"--set xxx", "...: unknown key"});
}
