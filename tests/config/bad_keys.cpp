// Keys that are unknown, missing, of the wrong type or out of range. Each message names the file or
// override, the key, what is allowed, what was found, and what to do.

#include <cmath>
#include <cstdint>
#include <fstream>

#include "config/value_schema.h"
#include "fixture.h"

TEST_CASE("an unknown key is refused with the nearest name, or else with its neighbours") {
  CHECK(message(replaced("\"width\"", "\"widht\"")) ==
        "run.json: model.widht: unknown key; did you mean model.width?");
  check_mentions(message(replaced("\"train\": {", "\"trian\": {")),
                 {"run.json: trian:", "did you mean train?"});
  check_mentions(
      message(replaced("\"hidden\": 64", "\"hidden\": 64, \"activation\": \"relu\"")),
      {"run.json: model.mlp.activation: unknown key; model.mlp has the keys kind, hidden"});
}

TEST_CASE("a known key in the wrong object is sent to the right one") {
  check_mentions(message(replaced("\"out_dir\"", "\"sequence_length\": 8, \"out_dir\"")),
                 {"run.json: sequence_length:", "did you mean data.sequence_length"});
  check_mentions(message(replaced("\"mlp\": {", "\"mlp\": {\"tokens_per_step\": 3, ")),
                 {"model.mlp.tokens_per_step:", "did you mean train.tokens_per_step"});
}

TEST_CASE("a misspelt key in the wrong object is recognised too") {
  check_mentions(message(kValid, {"wdith=3"}), {"--set wdith=3:", "did you mean model.width?"});
  check_mentions(message(kValid, {"model.lr=3"}), {"model.lr:", "did you mean optimizer.lr?"});
}

TEST_CASE("a key of another program is sent to its key here, wherever it stands") {
  for (const auto& [other, own] :
       std::vector<std::pair<std::string, std::string>>{{"learning_rate", "optimizer.lr"},
                                                        {"optimizer.learning_rate", "optimizer.lr"},
                                                        {"n_layer", "model.layers"},
                                                        {"model.n_embd", "model.width"},
                                                        {"block_size", "data.sequence_length"},
                                                        {"max_iters", "train.steps"}}) {
    check_mentions(message(kValid, {other + "=1"}), {other + "=1:", "did you mean " + own + "?"});
  }
  check_mentions(message(kValid, {"optimizer=adam"}), {"optimizer=adam:", "did you mean adamw?"});
  check_mentions(message(kValid, {"model.attention.prior=rotary"}), {"did you mean rope?"});
}

TEST_CASE("an unknown key that resembles none is still refused with a remedy") {
  check_mentions(message(replaced("\"out_dir\"", "\"\u00a7\": 8, \"out_dir\"")),
                 {"\u00a7:", "unknown key", "bamtrain help config lists the keys"});
}

TEST_CASE("a path is not a key: dots in a name are refused") {
  check_mentions(message(replaced("\"out_dir\"", "\"model.width\": 8, \"out_dir\"")),
                 {"run.json: model.width:", "unknown key", "one object for each name"});
  check_mentions(message(replaced("\"width\": 48", "\"mlp.hidden\": 48")),
                 {"model.mlp.hidden:", "unknown key"});
}

TEST_CASE("a duplicate key is refused") {
  check_mentions(message(replaced("\"width\": 48", "\"width\": 48, \"width\": 64")),
                 {"run.json:6:18", "duplicate key \"model.width\"", "remove one"});
}

TEST_CASE("trailing text is refused") {
  check_mentions(message(kValid + "\n}"), {"run.json:18:1", "text after the JSON value", "remove"});
}

TEST_CASE("a configuration is an object") {
  check_mentions(message("[1]"), {"run.json:", "an object", "config_version", "the array [1]"});
  check_mentions(message("3"), {"run.json:", "an object", "the number 3"});
  check_mentions(message("{}"), {"run.json: out_dir: missing"});
}

TEST_CASE("each required key is asked for by name") {
  const std::vector<std::pair<const char*, const char*>> keys = {
      {"\"out_dir\": \"out\",", "out_dir"},
      {"\"vocab\": 96,", "model.vocab"},
      {"\"width\": 48,", "model.width"},
      {"\"layers\": 2,", "model.layers"},
      {"\"heads\": 4,", "model.heads"},
      {"\"hidden\": 64", "model.mlp.hidden"},
      {"\"train\": \"tokens/train\",", "data.train"},
      {", \"sequence_length\": 16", "data.sequence_length"},
      {"\"steps\": 10,", "train.steps"},
      {"\"tokens_per_step\": 256,", "train.tokens_per_step"},
      {", \"micro_batch\": 2", "train.micro_batch"}};
  for (const auto& [text, key] : keys) {
    const std::string set = std::string("--set ") + key + "=";
    check_mentions(
        message(replaced(text, "")),
        {("run.json: " + std::string(key) + ": missing (").c_str(), "; add it", set.c_str()});
  }
}

TEST_CASE("a newer format is refused as such, before its keys are") {
  const std::string text = replaced("\"config_version\": 3", "\"config_version\": 4, \"new\": 1");
  check_mentions(message(text), {"run.json: config_version:", "version 4 is newer than 3",
                                 "use a newer bamtrain"});
  check_mentions(message(kValid, {"config_version=0"}),
                 {"config_version", "from 1 to 3", "number 0"});
  check_mentions(message(kValid, {"config_version=4.0"}), {"is newer than 3", "use a newer"});
}

TEST_CASE("a wrong type is refused with both types") {
  check_mentions(
      message(kValid, {"model.width=\"48\""}),
      {"model.width:", "an integer from 1 to", "the string \"48\"", "without the quotes"});
  check_mentions(message(kValid, {"model.width=4.5"}),
                 {"model.width:", "an integer", "the number 4.5", "whole number"});
  check_mentions(message(kValid, {"model.width=null"}), {"model.width:", "an integer", "null"});
  check_mentions(message(kValid, {"model.width=[48]"}), {"model.width:", "the array [48]"});
  check_mentions(message(kValid, {"model.tied=1"}), {"model.tied:", "true or false", "number 1"});
  check_mentions(message(kValid, {"model.tied=yes"}), {"model.tied:", "true or false", "\"yes\""});
  check_mentions(message(kValid, {"name=17"}), {"name:", "a string", "in double quotes: \"17\"",
                                                "in a shell --set 'name=\"17\"'"});
  CHECK(valid_with({"name=\"17\""}).name == "17");
  // The text as written, not the number reformatted.
  for (const std::string text : {"1e5", "1.10", "-0", "1E+2", "true"}) {
    check_mentions(message(kValid, {"name=" + text}), {"in double quotes: \"" + text + "\"",
                                                       "in a shell --set 'name=\"" + text + "\"'"});
    CHECK(valid_with({"name=\"" + text + "\""}).name == text);
  }
  CHECK(message(replaced("\"out\"", "1e5")).ends_with("write it as a string, in double quotes"));
  CHECK(message(kValid, {"checkpoint={\"resume\":1e5}"})
            .ends_with("write it as a string, in double quotes"));
  CHECK(message(replaced("\"out\"", "17")).ends_with("in double quotes: \"17\""));
  check_mentions(message(kValid, {"data.val=[\"data/val\"]"}),
                 {"data.val:", "a string", "array", "write one string, in double quotes"});
  check_mentions(
      message(kValid, {"train.precision=[\"bf16\"]"}),
      {"train.precision:", "one of \"fp32\", \"tf32\", \"bf16\"", "the array [\"bf16\"]"});
  check_mentions(message(kValid, {"model.tied=[]"}), {"expected true or false", "the array []"});
  check_mentions(message(kValid, {"model.mlp=64"}),
                 {"model.mlp:", "an object with the keys kind, hidden", "the number 64"});
  check_mentions(message(kValid, {"optimizer.lr=\"1e-3\""}),
                 {"optimizer.lr:", "a number above 0", "without the quotes"});
  check_mentions(message(kValid, {"sample.top_p=0"}),
                 {"sample.top_p:", "a number above 0 and of at most 1", "0"});
  check_mentions(message(replaced("\"train\": {\"steps\"",
                                  "\"eval\": {\"lengths\": 512}, \"train\": {\"steps\"")),
                 {"eval.lengths:", "an array", "number 512"});
  check_mentions(message(kValid, {"eval.lengths=[16,\"32\"]"}), {"eval.lengths[1]:", "an integer"});
  check_mentions(message(kValid, {"data.document_start=bos"}),
                 {"data.document_start:", "or null", "\"bos\""});
  check_mentions(message(kValid, {"optimizer.lr_multipliers=[1]"}),
                 {"optimizer.lr_multipliers:", "an object, each value a number", "the array [1]"});
}

TEST_CASE("an out_dir that a shell was to replace is refused, in a file and in --set") {
  check_mentions(message(kValid, {"out_dir=~/runs"}),
                 {"--set out_dir=~/runs: ", "only a shell expands", "write out the home"});
  check_mentions(message(replaced("\"out\"", "\"$HOME/runs\"")),
                 {"run.json: out_dir: ", "without variables", "$HOME/runs"});
  check_mentions(message(kValid, {"out_dir=s3://bucket/run"}), {"out_dir: ", "not a URL"});
  CHECK(valid_with({"out_dir=./~/runs"}).out_dir == "./~/runs");
  // A checkpoint of such a run can still be evaluated.
  const auto stored = bamtrain::read_run_config_text(
      replaced("\"out\"", "\"~/runs\""), "state.json", {}, bamtrain::ConfigUse::evaluation);
  CHECK(stored.out_dir == "~/runs");
}

TEST_CASE("a string that stands for a value is told how JSON writes that, where the key takes it") {
  const auto remedy = [](const std::string& override) {
    const std::string what = message(kValid, {override});
    const size_t end = what.rfind("; ");
    return end == std::string::npos ? "" : what.substr(end + 2);
  };
  const std::string bare = "write it without the quotes", as_json = "write it as JSON does: ",
                    whole = "write a whole number, without quotes";
  CHECK(remedy("optimizer.lr=\"1e-3\"") == bare);
  CHECK(remedy("optimizer.lr=.5") == as_json + "0.5");
  CHECK(remedy("optimizer.lr=5.") == as_json + "5");
  CHECK(remedy("train.steps=01") == as_json + "1");
  CHECK(remedy("train.steps=+1") == as_json + "1");
  CHECK(remedy("train.steps=0x10") == as_json + "16");
  CHECK(remedy("train.steps=\"10\"") == bare);
  CHECK(remedy("model.tied=\"true\"") == bare);
  CHECK(remedy("data.document_start=\"null\"") == bare);
  CHECK(remedy("eval.lengths=\"[16]\"") == bare);
  // Without quotes it would be refused again.
  for (const char* text : {"\"0.5\"", ".5", "\"true\"", "\"\"", "nan", "1e", "-"}) {
    CHECK(remedy(std::string("train.steps=") + text) == whole);
  }
  CHECK(remedy("model.tied=\"1\"") == "write true or false");
  CHECK(remedy("eval.lengths=\"16\"") == "write a list in brackets: [...]");
}

TEST_CASE("a value out of range is refused with the range") {
  check_mentions(message(kValid, {"model.width=0"}), {"model.width:", "from 1 to", "the number 0"});
  check_mentions(message(kValid, {"train.steps=-1"}), {"train.steps:", "from 1 to", "number -1"});
  check_mentions(message(kValid, {"optimizer.lr=0"}), {"optimizer.lr:", "above 0", "the number 0"});
  check_mentions(message(kValid, {"optimizer.lr=-1e-3"}), {"optimizer.lr:", "above 0"});
  check_mentions(message(kValid, {"optimizer.betas=[0.9,1]"}),
                 {"optimizer.betas[1]:", "of at least 0 and below 1", "the number 1"});
  check_mentions(message(kValid, {"optimizer.betas=[-0.1,0.9]"}), {"optimizer.betas[0]:"});
  check_mentions(message(kValid, {"optimizer.betas=[0.9]"}), {"optimizer.betas:", "exactly 2"});
  check_mentions(message(kValid, {"optimizer.clip=-1"}), {"optimizer.clip:", "at least 0"});
  check_mentions(message(kValid, {"schedule.min_ratio=1.5"}),
                 {"schedule.min_ratio:", "from 0 to 1"});
  check_mentions(message(kValid, {"checkpoint.keep=0"}), {"checkpoint.keep:", "from 1"});
  check_mentions(message(kValid, {"log.every=0"}), {"log.every:", "from 1"});
  check_mentions(message(kValid, {"eval.lengths=[16,16]", "data.val=v"}),
                 {"eval.lengths: duplicate element 16", "remove one"});
  check_mentions(message(kValid, {"optimizer.lr_multipliers.prior=-1"}),
                 {"optimizer.lr_multipliers.prior:", "at least 0"});
}

TEST_CASE("an eps that is zero or subnormal in fp32 is refused, the smallest normal one taken") {
  for (const std::string key : {"optimizer.eps", "model.norm.eps"}) {
    for (const char* value : {"0", "1e-50", "1e-38", "-1e-8"}) {
      check_mentions(message(kValid, {key + "=" + value}),
                     {(key + ":").c_str(), "from 1.17549435082228", "found the number"});
    }
  }
  // An eps that is infinite in fp32 is refused too.
  check_mentions(message(kValid, {"optimizer.eps=1e300"}), {"optimizer.eps:", "to 3.4", "1e+300"});
  check_mentions(message(kValid, {"model.norm.eps=3.5e38"}), {"model.norm.eps:", "to 3.4"});
  const auto c = valid_with({"optimizer.eps=1.18e-38", "model.norm.eps=1.18e-38"});
  CHECK(std::isnormal(static_cast<float>(c.optimizer.eps)));
  CHECK(std::isnormal(static_cast<float>(c.model.norm.eps)));
}

TEST_CASE("integers past any range are out of range, not wrapped") {
  for (const char* n : {"18446744073709551615", "9223372036854775808", "99999999999999999999"}) {
    check_mentions(message(kValid, {std::string("train.steps=") + n}),
                   {"train.steps:", "from 1 to 1099511627776", "found the number"});
  }
  check_mentions(message(kValid, {"seed=9223372036854775808"}),
                 {"seed:", "from 0 to 9223372036854775807"});
  check_mentions(message(kValid, {"seed=-1"}), {"seed:", "from 0"});
  // In two's complement the last value would be -1, which is in range.
  using bamtrain::check_value;
  using bamtrain::integer_value;
  CHECK_NOTHROW(check_value(-1, integer_value(-10, 10), "k"));
  CHECK_THROWS_AS(check_value(UINT64_MAX, integer_value(-10, 10), "k"), bamtrain::Error);
}

TEST_CASE("a number that no double holds is refused as such") {
  for (const std::string number : {"1e400", "-1e400", "123e999"}) {
    for (const char* key : {"optimizer.lr_multipliers.prior", "optimizer.lr", "train.steps", "seed",
                            "model.attention.scale.delta"}) {
      const std::string what = message(kValid, {key + ("=" + number)});
      check_mentions(what,
                     {key, "at most 1.8e308", number.c_str(), "out of range", "a smaller one"});
      CHECK(what.find("string") == std::string::npos);
    }
    check_mentions(message(replaced("48", number)),
                   {"run.json:6:", "at most 1.8e308", number.c_str(), "choose a smaller number"});
    check_mentions(message(kValid, {"optimizer.betas=[0.9," + number + "]"}), {"a smaller number"});
  }
  CHECK(valid_with({"name=1e400m"}).name == "1e400m");
  CHECK(valid_with({"name=\"1e400\""}).name == "1e400");
}

TEST_CASE("a word that is not among the choices is refused with the nearest") {
  check_mentions(
      message(kValid, {"device=gpu"}),
      {"device: unknown value 'gpu' (known: auto, cpu, cuda, check); did you mean cuda?"});
  check_mentions(message(kValid, {"train.precision=fp16"}),
                 {"train.precision: unknown value 'fp16'; choose one of fp32, tf32, bf16"});
  check_mentions(message(kValid, {"train.precision=f64"}),
                 {"train.precision: unknown value 'f64'", "fp32, tf32, bf16"});
  check_mentions(message(kValid, {"optimizer.name=adam"}),
                 {"optimizer.name:", "did you mean adamw?"});
  check_mentions(message(kValid, {"model.mlp.kind=swigLU2"}), {"did you mean swiglu?"});
  check_mentions(message(kValid, {"model.norm.kind=rms"}), {"did you mean rmsnorm?"});
  check_mentions(message(kValid, {"model.init=gpt"}), {"did you mean gpt2?"});
  check_mentions(message(kValid, {"schedule.name=cosin"}), {"did you mean cosine?"});
}

TEST_CASE("an unknown mechanism is refused with the known ones") {
  check_mentions(message(kValid, {"model.attention.prior=ropes"}),
                 {"model.attention.prior.name: unknown value 'ropes'; did you mean rope?"});
  check_mentions(
      message(kValid, {"model.attention.prior=xyz"}),
      {"model.attention.prior.name: unknown value 'xyz'; choose one of ", "nope, alibi", "bam"});
  check_mentions(message(kValid, {"model.attention.scale=ssmx"}),
                 {"model.attention.scale.name:", "did you mean ssmax?"});
  check_mentions(message(kValid, {"model.attention.normalizer=hardmax"}),
                 {"model.attention.normalizer.name: unknown value 'hardmax'", "softmax"});
  check_mentions(
      message(replaced("\"name\": \"ssmax\"", "")),
      {"run.json: model.attention.scale.name: missing (one of \"none\"", "add \"name\""});
  check_mentions(
      message(replaced("{\"name\": \"ssmax\"}", "3")),
      {"run.json: model.attention.scale:", "a name, or an object with a name", "write {\"name\""});
  check_mentions(message(replaced("{\"name\": \"ssmax\"}", "\"ssmx\"")),
                 {"run.json: model.attention.scale.name:", "did you mean ssmax?"});
}

TEST_CASE("a mechanism's option is checked against that mechanism") {
  check_mentions(message(replaced("\"init\": \"laplace\"", "\"int\": \"laplace\"")),
                 {"run.json: model.attention.prior.int:",
                  "bam has no option \"int\"; its options are init", "did you mean init?"});
  check_mentions(message(replaced("laplace", "laplacian")),
                 {"run.json: model.attention.prior.init: unknown value 'laplacian'",
                  "uniform, laplace", "did you mean laplace?"});
  check_mentions(message(kValid, {"model.attention.prior.share=1"}),
                 {"model.attention.prior.share:", "true or false"});
  check_mentions(message(kValid, {"model.attention.prior.train=[\"theta_alhpa\"]"}),
                 {"model.attention.prior.train[0]: unknown value 'theta_alhpa'",
                  "theta_alpha, theta_beta", "did you mean theta_alpha?"});
  check_mentions(message(kValid, {"model.attention.prior.train=[\"theta_mu\",\"theta_mu\"]"}),
                 {"model.attention.prior.train: duplicate element \"theta_mu\""});
  check_mentions(message(kValid, {"model.attention.prior={\"name\":\"rope\",\"theta\":0}"}),
                 {"model.attention.prior.theta:", "from 1 to", "the number 0"});
  check_mentions(message(kValid, {"model.attention.scale.offset=0.5"}),
                 {"model.attention.scale.offset:", "an integer from 0 to 1"});
  check_mentions(message(kValid, {"model.attention.scale.scale_bias=true"}),
                 {"model.attention.scale.scale_bias:", "\"auto\", \"true\", \"false\"",
                  "in double quotes: \"true\"",
                  "in a shell --set 'model.attention.scale.scale_bias=\"true\"'"});
}

TEST_CASE(
    "a number for a choice is to be quoted where that is one of the choices, and only there") {
  const std::string t5 = "model.attention.prior=t5", gain = "model.attention.prior.gain=";
  check_mentions(message(kValid, {t5, gain + "1"}),
                 {"gain=1:", "one of \"1\", \"sqrt(D)\"", "found the number 1",
                  "in a shell --set 'model.attention.prior.gain=\"1\"'"});
  CHECK(message(kValid, {t5, gain + "\"1\""}).empty());
  const std::string two = message(kValid, {t5, gain + "2"});
  check_mentions(two, {"gain=2:", "one of \"1\", \"sqrt(D)\"", "found the number 2"});
  CHECK(two.find("quotes") == std::string::npos);
  check_mentions(message(kValid, {"model.attention.prior.train=[1]"}),
                 {"train[0]:", "expected one of \"theta_alpha\"", "found the number 1"});
}

TEST_CASE("options left over from another mechanism are all named, with the way out") {
  const std::string what = message(kValid, {"model.attention.prior.name=rope"});
  check_mentions(what, {"--set model.attention.prior.name=rope: model.attention.prior.init:",
                        "rope has no option \"init\" (an option of bam, t5)",
                        "its options are theta", "--set model.attention.prior=rope"});
  CHECK(message(kValid, {"model.attention.prior=rope"}).empty());
  check_mentions(
      message(kValid, {"model.attention.prior.share=true", "model.attention.prior.name=nope"}),
      {"nope has no option \"init\"", "\"share\""});
}

TEST_CASE("a file name with a NUL character is refused") {
  check_mentions(message(replaced("\"out\"", "\"o\\u0000ut\"")),
                 {"run.json: out_dir:", "remove the NUL"});
}

TEST_CASE("an error says which override caused it") {
  check_mentions(message(kValid, {"seed=1", "model.widht=3"}), {"--set model.widht=3:"});
  check_mentions(message(kValid, {"model={\"width\":3}"}),
                 {"--set model={\"width\":3}: model.vocab:"});
  check_mentions(message(kValid, {"model.heads=5"}), {"--set model.heads=5:"});
}

TEST_CASE("a file that cannot be read is an error of its own kind") {
  const auto code = [](const std::string& path) {
    try {
      bamtrain::read_run_config(path, {});
    } catch (const bamtrain::Error& e) {
      check_mentions(e.what(), {path.c_str()});
      CHECK_FALSE(e.remedy().empty());
      return e.code();
    }
    return bamtrain::ExitCode::ok;
  };
  std::string folder = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  CHECK(code(folder) == bamtrain::ExitCode::io);
  CHECK(code(folder + "/absent.json") == bamtrain::ExitCode::io);
  std::ofstream(folder + "/large.json") << std::string(2 << 20, ' ');
  CHECK(code(folder + "/large.json") == bamtrain::ExitCode::config);
  std::ofstream(folder + "/empty.json") << "";
  CHECK(code(folder + "/empty.json") == bamtrain::ExitCode::config);
  std::ofstream(folder + "/good.json") << kValid;
  CHECK(bamtrain::read_run_config(folder + "/good.json", {}).model.width == 48);
  std::filesystem::remove_all(folder);
}
