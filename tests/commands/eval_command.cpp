// `bamtrain eval` as a user calls it: what it prints, writes and refuses.

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "core/paired_difference.h"
#include "train/changed_checkpoint.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;

/// Lengths of the documents in the workplace's validation shard, parsed from its bytes.
std::vector<int64_t> document_lengths(const Workplace& w) {
  const std::string bytes = read_text(w.path("val/000.bin"));
  std::vector<int64_t> lengths;
  for (size_t i = 1024; i + 1 < bytes.size(); i += 2) {
    if (bytes[i] == 1 && bytes[i + 1] == 0) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

/// A run of the workplace, trained for one step, and its checkpoint.
struct OneStepRun {
  Workplace w;
  nlohmann::json config = small_run(w);
  std::string checkpoint = w.path("out/checkpoint-00000001");

  OneStepRun() : OneStepRun(nullptr) {}
  explicit OneStepRun(const nlohmann::json& prior, const char* scale = nullptr,
                      const nlohmann::json& multipliers = nlohmann::json::object(),
                      const char* normalizer = nullptr) {
    if (!prior.is_null()) config["model"]["attention"]["prior"] = prior;
    if (scale) config["model"]["attention"]["scale"] = {{"name", scale}};
    if (normalizer) config["model"]["attention"]["normalizer"] = {{"name", normalizer}};
    config["optimizer"]["lr_multipliers"] = multipliers;
    config["train"]["stop_at"] = 1;
    config["eval"] = {{"lengths", {16, 48}}, {"tokens", 480}};
    const Outcome o = run(bamtrain_command(write_config(w, "run.json", config)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
  }

  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {bamtrain_program(), "eval", "--checkpoint", checkpoint};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

/// A copy of the checkpoint in which every element of `tensor` is `value`.
std::string checkpoint_with_constant(const OneStepRun& t, const std::string& tensor, float value) {
  return testing::with_constant(t.checkpoint, t.w.path("changed"), tensor, value);
}

}  // namespace

TEST_CASE("eval writes what it prints: the JSON that the end of the training wrote, too") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  const Outcome o = run(t.command({"--lengths", "48,16", "--protocols", "windows,last",
                                   "--max-tokens", "480", "--output", output}),
                        threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const std::string text = read_text(output);
  CHECK(text == read_text(t.w.path("out/perplexity.json")));

  const auto result = nlohmann::json::parse(text);
  CHECK(result["checkpoint"] == t.checkpoint);
  CHECK(result["step"] == 1);
  CHECK(result["data"] == t.w.path("val"));
  CHECK(result["precision"] == "f32");
  CHECK(result["training_length"] == 64);
  CHECK_FALSE(result.contains("bins"));
  int rows = 0;
  for (const char* protocol : {"windows", "last"}) {
    REQUIRE(result[protocol].size() == 2);
    for (const auto& row : result[protocol]) {
      const double loss = row["loss"], perplexity = row["perplexity"];
      CHECK(perplexity == Approx(std::exp(loss)).epsilon(1e-12));
      const double loss_error = row["loss_error"];
      const double perplexity_error = row["perplexity_error"];
      CHECK(loss_error > 0);
      CHECK(perplexity_error == Approx(perplexity * loss_error).epsilon(1e-12));
      char line[200];
      std::snprintf(
          line, sizeof line,
          "\n  length %7d  perplexity %9.3f ± %.3f  loss %.4f ± %.4f  (%d tokens, %d documents)\n",
          row["length"].get<int>(), perplexity, perplexity_error, loss, loss_error,
          row["tokens"].get<int>(), row["documents"].get<int>());
      INFO(line);
      CHECK(o.output.find(line) != std::string::npos);
      ++rows;
    }
  }
  CHECK(rows == 4);
  CHECK(o.output.find("\n±: standard error over documents; seed variance not included\n") !=
        std::string::npos);
  CHECK(o.output.find("no ±") == std::string::npos);
}

TEST_CASE("eval prints differences from the training length, and numpy has the same") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  const Outcome o = run(t.command({"--lengths", "16,64", "--output", output}), threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const auto result = nlohmann::json::parse(read_text(output));
  const auto& d = result["windows"][0]["difference"];
  const double value = d["perplexity"], error = d["perplexity_error"];
  CHECK(d["from_length"] == 64);
  CHECK(o.output.find("  difference " + difference_text(value, error)) != std::string::npos);
  CHECK(o.output.find("difference: from the perplexity at the training length, 64, on the same "
                      "targets, paired by document; *: p < 0.05") != std::string::npos);
  CHECK(o.output.find("not comparable") == std::string::npos);
  const char* const source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source);
  const Outcome numpy =
      run({"python3", std::string(source) + "/tests/eval/paired_difference.py", output});
  INFO(numpy.output);
  constexpr int kNoNumpy = 77;
  if (numpy.code == kNoNumpy) WARN(numpy.output);
  CHECK((numpy.code == 0 || numpy.code == kNoNumpy));
}

TEST_CASE("eval says which lengths it does not compare") {
  const OneStepRun t;
  const auto printed = [&](std::vector<std::string> options) {
    const Outcome o = run(t.command(options), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.find("  difference ") == std::string::npos);
    return o.output;
  };
  CHECK(printed({"--lengths", "16,48"})
            .find("no differences between lengths: --lengths lacks the training length, 64\n") !=
        std::string::npos);
  CHECK(printed({"--lengths", "16,64", "--text", "beginnings"})
            .find("lengths without a difference score other targets: they are not comparable\n") !=
        std::string::npos);
}

TEST_CASE("eval knows no standard error of one document, and says so") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  const Outcome o =
      run(t.command({"--lengths", "48", "--max-tokens", "1", "--output", output}), threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  const auto result = nlohmann::json::parse(read_text(output));
  for (const char* protocol : {"windows", "last", "bins"}) {
    CHECK(result[protocol][0]["documents"] == 1);
    CHECK(result[protocol][0]["loss_error"].is_null());
    CHECK(result[protocol][0]["perplexity_error"].is_null());
  }
  CHECK(o.output.find(" (48 tokens, 1 document)\n") != std::string::npos);
  CHECK(o.output.find("\nno ±: one document, so the standard error is unknown\n") !=
        std::string::npos);
  CHECK(o.output.find(" ± ") == std::string::npos);
  CHECK(o.output.find("\n±: ") == std::string::npos);
}

TEST_CASE("the evaluation that ends a run has as many targets as eval.length_tokens says") {
  const OneStepRun t;  // eval.tokens 480, no length_tokens
  const auto at_the_end = [&](const nlohmann::json& length_tokens, const std::string& out) {
    nlohmann::json c = t.config;
    c["out_dir"] = t.w.path(out);
    c["eval"]["length_tokens"] = length_tokens;
    const Outcome o = run(bamtrain_command(write_config(t.w, out + ".json", c)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return nlohmann::json::parse(read_text(t.w.path(out + "/perplexity.json")));
  };
  const nlohmann::json few = nlohmann::json::parse(read_text(t.w.path("out/perplexity.json")));
  CHECK(few["windows"][0]["tokens"] == 480);
  CHECK(at_the_end(nullptr, "as-passes")["windows"] == few["windows"]);
  CHECK(at_the_end(96, "fewer")["windows"][0]["tokens"] == 96);
  const nlohmann::json all = at_the_end(0, "all");
  int64_t stretches = 0;
  for (int64_t length : document_lengths(t.w)) stretches += (length - 1) / 48;
  REQUIRE(stretches * 48 > 480);
  CHECK(all["windows"][0]["tokens"] == stretches * 48);
  CHECK(all["windows"][0]["documents"] == all["documents"]);
}

TEST_CASE("a head of zeros has the perplexity of the vocabulary's size, on every long document") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  std::vector<std::string> command = t.command({"--lengths", "16,48", "--output", output});
  command[3] = checkpoint_with_constant(t, "lm_head.weight", 0);
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  int64_t documents = 0, stretches = 0;  // with 48 targets
  for (int64_t length : document_lengths(t.w)) {
    documents += length >= 49;
    stretches += (length - 1) / 48;
  }
  REQUIRE(documents > 10);
  const auto result = nlohmann::json::parse(read_text(output));
  CHECK(result["documents"] == documents);
  CHECK(result["last_tokens"] == 16);
  for (const auto& row : result["windows"]) CHECK(row["tokens"] == stretches * 48);
  for (const auto& row : result["last"]) CHECK(row["tokens"] == stretches * 16);
  CHECK(result["bins"][0]["tokens"] == stretches * 48);
  for (const char* protocol : {"windows", "last", "bins"}) {
    for (const auto& row : result[protocol]) {
      CHECK(row["loss"].get<double>() == Approx(std::log(211.0)).epsilon(1e-6));
      CHECK(row["loss_error"].get<double>() < 1e-6);  // the same everywhere
      CHECK(row["documents"] == documents);
      CHECK(row["perplexity"].get<double>() == Approx(211.0).epsilon(1e-5));
    }
  }
}

/// An evaluation at length 48 with these --set overrides.
Outcome evaluated(const OneStepRun& t, const std::vector<std::string>& overrides) {
  std::vector<std::string> command =
      t.command({"--lengths", "48", "--output", t.w.path("result.json")});
  for (const std::string& o : overrides) command.insert(command.end(), {"--set", o});
  return run(command, threads(1));
}

nlohmann::json evaluation(const OneStepRun& t, const std::vector<std::string>& overrides) {
  const Outcome o = evaluated(t, overrides);
  INFO(o.output);
  REQUIRE(o.code == 0);
  return nlohmann::json::parse(read_text(t.w.path("result.json")));
}

void check_refused(const OneStepRun& t, const std::string& override, ExitCode code,
                   const std::string& text) {
  const Outcome o = evaluated(t, {override});
  INFO(o.output);
  CHECK(o.code == static_cast<int>(code));
  CHECK(o.output.find(text) != std::string::npos);
}

TEST_CASE(
    "eval ends with the code of a loss that is no number, when it has written what there is") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  std::vector<std::string> command = t.command({"--lengths", "16,48", "--output", output});
  command[3] = checkpoint_with_constant(t, "lm_head.weight", 3e38f);
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::nonfinite));
  CHECK(o.output.find("expected finite losses, found NaN at length 16 (windows)") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(read_text(output))["windows"][0]["loss"].is_null());
}

TEST_CASE("eval takes another prior with the same parameters from --set, and nothing else") {
  const OneStepRun t(nlohmann::json::object({{"name", "rope"}}));
  const auto perplexity = [&](const std::vector<std::string>& overrides) {
    return evaluation(t, overrides);
  };
  const nlohmann::json plain = perplexity({});
  CHECK(plain["prior"]["theta"] == 10000.0);
  const nlohmann::json other = perplexity({"model.attention.prior.theta=100"});
  CHECK(other["prior"]["theta"] == 100.0);
  CHECK(other["windows"][0]["loss"] != plain["windows"][0]["loss"]);
  const nlohmann::json scaled =
      perplexity({"model.attention.prior.scaling=linear", "model.attention.prior.factor=2"});
  CHECK(scaled["windows"][0]["loss"] != plain["windows"][0]["loss"]);
  // The window equals the training length, so it has no effect on shorter sequences.
  CHECK(perplexity({"model.attention.prior=rope_local"})["windows"] == plain["windows"]);

  // eval prints what differs from training, including options reset to their defaults.
  const auto told = [&](const std::string& override) {
    const std::string output = evaluated(t, {override}).output, label = "changed since training: ";
    std::string lines;
    for (size_t at = 0; (at = output.find(label, at)) != std::string::npos; ++at) {
      lines += output.substr(at + label.size(), output.find('\n', at) - at - label.size()) + "\n";
    }
    return lines;
  };
  CHECK(told("model.attention.prior.theta=10000").empty());
  CHECK(told("model.attention.prior.theta=100") ==
        "model.attention.prior.theta: 10000.0 -> 100.0\n");
  CHECK(told("model.attention.prior=rope_local") ==
        "model.attention.prior.name: \"rope\" -> \"rope_local\"\n"
        "model.attention.prior.window: unset -> 0\n");

  check_refused(t, "model.attention.window=3", ExitCode::usage,
                "evaluation cannot change model.attention.window, only ");
  check_refused(t, "model.attention.prior=bam", ExitCode::config, "the parameters of rope");
  check_refused(t, "model.attention.prior=ropes", ExitCode::config, "did you mean rope?");
}

TEST_CASE("eval with another prior does not read the learning rates of the training") {
  const OneStepRun t({{"name", "bam"}, {"train", {"theta_alpha"}}}, nullptr, {{"theta_alpha", 2}});
  evaluation(t, {"model.attention.prior.train=[\"theta_mu\"]"});
  const Outcome o = evaluated(t, {"model.attention.prior=alibi"});
  INFO(o.output);
  CHECK(o.output.find("model.attention.prior: expected a prior with the parameters of bam") !=
        std::string::npos);
  CHECK(o.output.find("state.json") == std::string::npos);
}

TEST_CASE("eval names the first parameter that the replaced prior has in another shape") {
  const OneStepRun t(nlohmann::json::object({{"name", "learned"}}));
  check_refused(t, "model.attention.prior.positions=80", ExitCode::config,
                "model.embed_positions.weight of shape (64, 64)), found learned with "
                "model.embed_positions.weight of shape (80, 64)");
}

TEST_CASE("eval takes another scale from --set where neither has parameters") {
  const OneStepRun t(nlohmann::json::object({{"name", "alibi"}}), "none");
  const nlohmann::json plain = evaluation(t, {});
  CHECK(plain["scale"]["name"] == "none");
  const nlohmann::json entropy = evaluation(t, {"model.attention.scale=entropy"});
  CHECK(entropy["scale"]["name"] == "entropy");
  CHECK(entropy["windows"][0]["loss"] != plain["windows"][0]["loss"]);
  const auto constant = [](const char* t) {
    return std::string("model.attention.scale={\"name\":\"constant\",\"t\":") + t + "}";
  };
  CHECK(evaluation(t, {constant("1")})["windows"] == plain["windows"]);
  CHECK(evaluation(t, {constant("2")})["windows"] != plain["windows"]);
  check_refused(t, "model.attention.scale=ssmax", ExitCode::config,
                "found none in training, ssmax now");
  check_refused(t, "model.attention.scale=adaptive", ExitCode::config, "scales without parameters");

  const OneStepRun scaled(nlohmann::json::object({{"name", "alibi"}}), "ssmax");
  for (const char* override : {"model.attention.scale=entropy", "model.attention.scale=none"}) {
    INFO(override);
    check_refused(scaled, override, ExitCode::config, "found ssmax in training");
  }
  check_refused(
      scaled, "model.attention.scale.offset=1", ExitCode::config,
      "model.attention.scale.offset: expected scales without parameters: evaluation cannot replace "
      "others, found ssmax with 0 in training, 1 now; remove --set model.attention.scale.offset");
}

TEST_CASE("eval names the option that gives the normalizer of the training parameters") {
  const OneStepRun t(nullptr, nullptr, nlohmann::json::object(), "entmax");
  check_refused(t, "model.attention.normalizer.learned=true", ExitCode::config,
                "model.attention.normalizer.learned: expected normalizers without parameters: "
                "evaluation cannot replace others, found entmax with false in training, true now; "
                "remove --set model.attention.normalizer.learned");
  check_refused(t, "model.attention.scale=entropy", ExitCode::config,
                "model.attention.scale=entropy: expected a scale for entmax");
}

TEST_CASE("eval takes other priors of layers with the same parameters from --set") {
  const OneStepRun t(nlohmann::json::array({{{"name", "rope"}}, {{"name", "bam"}}}));
  const auto loss = [&](const std::string& prior) {
    return evaluation(t, {"model.attention.prior" + prior})["windows"][0]["loss"].get<double>();
  };
  const double trained = loss(R"(=["rope","bam"])");
  CHECK(loss(R"(=[{"name":"rope","theta":100},"bam"])") != trained);
  CHECK(loss(R"(=["rope_local","bam"])") == trained);  // the window hides nothing
  const auto refused = [&](const std::string& prior, const std::string& text) {
    check_refused(t, "model.attention.prior" + prior, ExitCode::config, text);
  };
  refused(R"(=["bam","rope"])", "the parameters of rope, bam");
  refused("=rope", "the parameters of rope, bam");
  refused(".theta=100", "'model.attention.prior=[");
}

TEST_CASE("eval past the positions that training draws from is refused by name") {
  const OneStepRun t({{"name", "rope"}, {"randomized", true}, {"randomized_length", 64}});
  const auto at = [&](const std::string& length) {
    return run(t.command({"--lengths", length}), threads(1));
  };
  CHECK(at("64").code == 0);
  const Outcome o = at("65");
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::config));
  CHECK(o.output.find("randomized_length: expected at most 64 positions") != std::string::npos);
}

TEST_CASE("eval past the table of a learned scale is refused by name") {
  const OneStepRun t(nullptr, "by_length");
  CHECK(run(t.command({"--lengths", "64"}), threads(1)).code == 0);
  const Outcome o = run(t.command({"--lengths", "65"}), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::config));
  CHECK(o.output.find("model.attention.scale.lengths: expected at most 64 visible keys") !=
        std::string::npos);
}

TEST_CASE("an eval that fails leaves the former result and no other file") {
  const OneStepRun t;
  fs::create_directory(t.w.path("results"));
  const std::string output = t.w.path("results/result.json");
  const std::string former = R"({"checkpoint": "former"})";
  std::ofstream(output) << former;
  Outcome o = run(t.command({"--lengths", "4096", "--output", output}), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK(read_text(output) == former);
  CHECK(std::distance(fs::directory_iterator(t.w.path("results")), {}) == 1);

  // An unwritable output path is reported before the checkpoint is opened.
  fs::remove_all(t.checkpoint);
  for (const std::string& place : {t.w.path("none/result.json"), t.w.path("results")}) {
    o = run(t.command({"--lengths", "16", "--output", place}), threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::io));
    CHECK(o.output.find(place) != std::string::npos);
  }
}

TEST_CASE("eval has printed its numbers where the file for them cannot be written") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  std::vector<std::string> command = {"sh", "-c", "ulimit -f 0; exec \"$@\" 2>&1 | cat", "sh"};
  for (const std::string& word : t.command({"--lengths", "16", "--output", output})) {
    command.push_back(word);
  }
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.output.find("\n  length      16  perplexity") != std::string::npos);
  CHECK(o.output.find("bamtrain: " + output) != std::string::npos);
  CHECK_FALSE(fs::exists(output));
}

TEST_CASE("eval refuses values of options in one line that names the option") {
  const Workplace w;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& line) {
    std::vector<std::string> command = {bamtrain_program(), "eval", "--checkpoint", w.path("x")};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome o = run(command);
    CHECK(o.code == static_cast<int>(ExitCode::usage));
    CHECK(o.output == "bamtrain: " + line + "\n");
  };
  const std::string range = "expected an integer from 1 to 16777216, found ";
  const std::string within = "";
  refused({"--lengths", "0"}, "--lengths: " + range + "0" + within);
  refused({"--lengths", "16,99999999999999999999"},  // passkey lengths may be 0
          "--lengths: expected an integer from 0 to 16777216, found 99999999999999999999" + within);
  refused({"--lengths", "16", "--last-tokens", "1e3"},
          "--last-tokens: " + range + "1e3; write a whole number in digits");
  refused({"--lengths", "16", "--precision", "fp16"},
          "--precision: unknown value 'fp16'; choose one of fp32, tf32, bf16");
  refused({"--lengths", "16", "--precision", "2"},
          "--precision: unknown value '2'; choose one of fp32, tf32, bf16");
  refused({"--lengths", "16", "--device", "1"},
          "--device: unknown value '1'; choose one of auto, cpu, cuda, check");
  refused({"--lengths", "16", "--protocols", "widnows"},
          "--protocols: unknown value 'widnows' (known: windows, last, bins); did you mean "
          "windows?");
}

TEST_CASE("eval refuses options of the training and several processes, and writes nothing then") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  const std::vector<std::string> eval =
      t.command({"--lengths", "16", "--max-tokens", "48", "--output", output});
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"--config", t.w.path("run.json")}, {"--set", "seed=3"}, {"--resume", "never"}}) {
    std::vector<std::string> command = eval;
    command.insert(command.begin() + 1, option.begin(), option.end());
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::usage));
    CHECK(o.output.find("options of eval after its name") != std::string::npos);
  }
  if (have_mpi()) {
    const Outcome o = run(mpirun_command(2, eval), threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::usage));
    CHECK(o.output.find("eval: runs on one process, not 2; ") != std::string::npos);
  }
  CHECK_FALSE(fs::exists(output));
  CHECK(run(eval, threads(1)).code == 0);
  CHECK(fs::exists(output));
}

TEST_CASE("the process that will evaluate refuses what it cannot, and all end with its code") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"lengths", {64, 4096}}, {"require_all_lengths", true}};
  const std::string config = write_config(w, "run.json", c);
  const Outcome o = run(mpirun_command(2, bamtrain_command(config)), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK(o.output.find("rank 0: ") != std::string::npos);
  CHECK(o.output.find("rank 1: ") == std::string::npos);
  CHECK(o.output.find("a document of at least 4097 tokens") != std::string::npos);
  CHECK_FALSE(fs::exists(w.path("out")));
}

TEST_CASE("a prior whose limits the trained parameters pass is refused") {
  const nlohmann::json prior = {{"name", "kerple"}};
  const OneStepRun t(prior);
  std::vector<std::string> command =
      t.command({"--lengths", "16", "--max-tokens", "160", "--protocols", "windows", "--set",
                 "model.attention.prior.kernel=power"});
  command[3] = checkpoint_with_constant(t, "model.layers.1.self_attn.prior.r2", 2);
  CHECK(run(command, threads(1)).code == 0);
  fs::remove_all(t.w.path("changed"));
  checkpoint_with_constant(t, "model.layers.1.self_attn.prior.r2", 2.5);
  const Outcome o = run(command, threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(o.output.find("model.safetensors: tensor \"model.layers.1.self_attn.prior.r2\": expected "
                      "values from 0.01 to 2, found 2.5 at element 0; remove --set") !=
        std::string::npos);
  command.resize(command.size() - 2);  // the logarithmic kernel accepts it
  CHECK(run(command, threads(1)).code == 0);
}

TEST_CASE("lengths that no document has are left out of the final evaluation, with a warning") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"lengths", {16, 4096, 32, 100000}}, {"tokens", 64}};
  const std::string warning =
      "warning: eval.lengths 4096, 100000 left out: the longest document of ";
  Outcome o = run(bamtrain_command(write_config(w, "run.json", c)), threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find(warning) != std::string::npos);
  const auto result = nlohmann::json::parse(read_text(w.path("out/perplexity.json")));
  REQUIRE(result["windows"].size() == 2);
  CHECK(result["windows"][1]["length"] == 32);

  c["eval"]["lengths"] = {4096};
  c["out_dir"] = w.path("other");
  o = run(bamtrain_command(write_config(w, "run.json", c)), threads(1));
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("warning: eval.lengths 4096 left out") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("other/perplexity.json")));
}

TEST_CASE("eval leaves out lengths that no document has, or refuses them where all are required") {
  const OneStepRun t;
  const std::string output = t.w.path("result.json");
  const auto eval = [&](const std::string& lengths, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--lengths", lengths, "--output", output});
    return run(t.command(more), threads(1));
  };
  const std::string longest = std::to_string([&] {
    const std::vector<int64_t> lengths = document_lengths(t.w);
    return *std::max_element(lengths.begin(), lengths.end());
  }());
  Outcome o = eval("4096,16");
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("warning: --lengths 4096 left out: the longest document of " +
                      t.w.path("val") + " has " + longest +
                      " tokens (--require-all-lengths makes this an error)\n") !=
        std::string::npos);
  auto result = nlohmann::json::parse(read_text(output));
  REQUIRE(result["windows"].size() == 1);
  CHECK(result["windows"][0]["length"] == 16);
  REQUIRE(eval("16").code == 0);
  CHECK(nlohmann::json::parse(read_text(output)) == result);

  const auto refused = [&](const Outcome& outcome, const std::string& text) {
    INFO(outcome.output);
    CHECK(outcome.code == static_cast<int>(ExitCode::data));
    CHECK(outcome.output.find(text) != std::string::npos);
    CHECK(nlohmann::json::parse(read_text(output)) == result);
  };
  refused(eval("4096,16", {"--require-all-lengths"}),
          "expected a document of at least 4097 tokens");
  refused(eval("8192,4096"), "expected a document of at least 4097 tokens");
  refused(eval("8192", {"--text", "packed"}), "expected a stream of at least 8193 tokens");
  o = eval("8192,64", {"--text", "packed"});
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(o.output.find("warning: --lengths 8192 left out: " + t.w.path("val") + " has ") !=
        std::string::npos);
}

TEST_CASE("eval says how many documents its numbers are of, and that the longest length decides") {
  const OneStepRun t;
  std::vector<int64_t> lengths = document_lengths(t.w);
  const auto of_more_than = [&](int64_t tokens) {
    return std::to_string(
        std::count_if(lengths.begin(), lengths.end(), [&](int64_t n) { return n > tokens; }));
  };
  const std::string all = std::to_string(lengths.size());
  REQUIRE(of_more_than(48) != of_more_than(16));
  REQUIRE(of_more_than(16) != all);
  const auto eval = [&](const char* asked) {
    const Outcome o = run(t.command({"--lengths", asked}), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  };
  const std::string both = eval("16,48"), one = eval("16");
  CHECK(both.find(of_more_than(48) + " of " + all + " documents, each of more than 48 tokens\n") !=
        std::string::npos);
  CHECK(both.find("warning: all lengths are measured on documents of " + t.w.path("val") +
                  " with more than 48 tokens, the longest length. There are " + of_more_than(48) +
                  "; length 16 alone would use " + of_more_than(16) + ".") != std::string::npos);
  CHECK(one.find(of_more_than(16) + " of " + all + " documents, each of more than 16 tokens\n") !=
        std::string::npos);
  CHECK(one.find("warning") == std::string::npos);
}

TEST_CASE("eval says why it has no bits per byte") {
  const OneStepRun t;
  const Outcome o = run(t.command({"--lengths", "16"}), threads(1));
  INFO(o.output);
  REQUIRE(o.code == 0);
  CHECK(o.output.find("\nno bits per byte: no manifest next to " + t.w.path("val") +
                      " names the tokenizer\n") != std::string::npos);
}

TEST_CASE("a final evaluation whose result cannot be written is refused before the first step") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["eval"] = {{"lengths", {16}}, {"tokens", 64}};
  const std::string config = write_config(w, "run.json", c), path = w.path("out/perplexity.json");
  fs::create_directories(w.path("out"));
  SECTION("a pipe") { REQUIRE(mkfifo(path.c_str(), 0600) == 0); }
  SECTION("a folder") { fs::create_directory(path); }
  SECTION("a link to a device") { fs::create_symlink("/dev/null", path); }
  const Outcome o = run(bamtrain_command(config), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::io));
  CHECK((o.output.find(": a folder of this name exists; ") != std::string::npos ||
         o.output.find(": not a regular file; ") != std::string::npos));
  CHECK(o.output.find("or move the existing file elsewhere") != std::string::npos);
  CHECK_FALSE(fs::exists(w.path("out/starts.json")));
  CHECK_FALSE(fs::exists(w.path("out/metrics.jsonl")));
  // Without evaluation, the name is not used.
  CHECK(run(bamtrain_command(config, {"eval.lengths=[]", "train.stop_at=1"}), threads(1)).code ==
        0);
}

TEST_CASE("tensors that are not the configuration's are named before memory is asked for them") {
  const OneStepRun t;
  // 2^20 x 2^20 weights in each of 4,096 layers: more memory than any machine has.
  forge_state(t.checkpoint, [](nlohmann::json& state) {
    nlohmann::json& model = state["config"]["model"];
    model["layers"] = 4096;
    model["width"] = model["mlp"]["hidden"] = 1 << 20;
  });
  const Outcome o = run(t.command({"--lengths", "16"}), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(o.output.find("model.safetensors: tensor \"model.") != std::string::npos);
}
