// `bamtrain eval --task passkey` and `niah` as a user calls them. The model's answer is known: its
// head says the digit 1 whatever it reads.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "core/json_digest.h"
#include "core/sha256.h"
#include "data/tokenizers.h"
#include "eval/passkey_scores.h"
#include "tools/support.h"
#include "train/changed_checkpoint.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Words = std::vector<std::string>;

const Tokenizer& tokenizer() {
  static const Tokenizer t = Tokenizer::open(golden_path("digits.json"));
  return t;
}

struct SaysOne {
  Workplace w;
  std::string checkpoint;

  explicit SaysOne(const char* prior = "bam") {
    json c = small_run(w);
    c["model"].erase("vocab");
    c["model"]["bias"] = {"head"};
    c["model"]["attention"] = {{"prior", {{"name", prior}}}};
    c["data"] = {{"train",
                  {{"task", "passkey"},
                   {"tokenizer", golden_path("digits.json")},
                   {"length", {150, 200}},
                   {"digits", 1}}}};
    c["train"] = {{"steps", 1}, {"sequences_per_step", 2}, {"micro_batch", 2}};
    c["checkpoint"] = {{"every", 1}};
    c["model"]["vocab"] = tokenizer().vocab();
    const Outcome o = run(bamtrain_command(write_config(w, "run.json", c)), threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    const auto one = static_cast<size_t>(tokenizer().encode(" 1")[1]);
    checkpoint = with_changes(w.path("out/checkpoint-00000001"), w.path("changed"),
                              [&](const std::string& name, float* values, size_t count) {
                                if (name == "lm_head.weight") std::fill_n(values, count, 0.0f);
                                if (name != "lm_head.bias") return;
                                std::fill_n(values, count, 0.0f);
                                values[one] = 1;
                              });
  }

  std::string path(const std::string& name) const { return w.path(name); }
  Outcome eval(const std::string& task, const Words& settings, const Words& more = {}) const {
    Words all = {bamtrain_program(), "eval", "--checkpoint", checkpoint, "--task", task};
    for (const std::string& s : settings) all.insert(all.end(), {"--task-set", s});
    all.insert(all.end(), more.begin(), more.end());
    return run(all, threads(1));
  }
  std::string printed(const std::string& task, const Words& settings, const Words& more) const {
    const Outcome o = eval(task, settings, more);
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  }
  /// The text of the result file.
  std::string written(const std::string& task, const Words& settings, Words more) const {
    more.insert(more.end(), {"--output", path("result.json")});
    printed(task, settings, more);
    return read_text(path("result.json"));
  }
  void refused(const std::string& task, const Words& settings, const Words& more, ExitCode code,
               const std::string& message) const {
    Words all = more;
    all.insert(all.end(), {"--output", path("none.json")});
    const Outcome o = eval(task, settings, all);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(code));
    CHECK(contains(o.output, message));
    CHECK_FALSE(std::filesystem::exists(path("none.json")));
  }
};

/// For each depth, the share of prompts whose key is 1 or ends in 1.
std::vector<double> ones(const PasskeyOptions& options, const PasskeyRequest& request,
                         int64_t length) {
  std::vector<double> shares(static_cast<size_t>(request.depths));
  const auto prompts = passkey_prompts(Passkey(tokenizer(), options), request, length);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto of_depth = static_cast<size_t>(request.samples);
    if (prompts[i].key.back() == '1') shares[i / of_depth] += 1.0 / static_cast<double>(of_depth);
  }
  return shares;
}

std::string prompt_line(const std::string& input, const Words& outputs) {
  return json{{"input", input}, {"outputs", outputs}}.dump() + "\n";
}

}  // namespace

TEST_CASE("passkeys of a model that always says 1 are right where the key is 1") {
  const SaysOne t;
  const Words samples = {"--lengths", "300,0", "--samples", "20", "--seed", "3"};
  const std::string whole = t.written("passkey", {"depths=3"}, samples);
  const json result = json::parse(whole);
  const Passkey passkey(tokenizer(), {1, 0});
  const std::vector<int64_t> lengths = {0, 300};
  REQUIRE(result["scores"].size() == 2);
  std::vector<double> at_depth(3);
  double all = 0;
  for (size_t l = 0; l < 2; ++l) {
    const json& row = result["scores"][l];
    const std::vector<double> truth = ones({1, 0}, {3, 20, 3}, lengths[l]);
    CHECK(row["length"] == lengths[l]);
    CHECK(row["tokens"] == passkey.fixed() + passkey.fillers(lengths[l]) * passkey.filler());
    CHECK(row["prompts"] == 60);
    double mean = 0;
    for (size_t d = 0; d < 3; ++d) {
      CHECK(row["cells"][d]["exact_match"].get<double>() == Approx(truth[d]).margin(1e-12));
      at_depth[d] += truth[d] / 2;
      mean += truth[d] / 3;
    }
    CHECK(row["exact_match"].get<double>() == Approx(mean));
    CHECK(row["accuracy"] == row["exact_match"]);
    all += mean;
  }
  CHECK(all > 0);
  for (size_t d = 0; d < 3; ++d) {
    CHECK(result["depths"][d]["depth"] == static_cast<double>(d) / 2);
    CHECK(result["depths"][d]["exact_match"].get<double>() == Approx(at_depth[d]).margin(1e-12));
  }
  // One digit, as in training; the other settings are recorded.
  CHECK(result["task"] == json({{"task", "passkey"},
                                {"digits", 1},
                                {"prefix_digits", 0},
                                {"question", "published"},
                                {"bos", false},
                                {"depths", 3},
                                {"generate", false}}));
  CHECK(result["checkpoint"] == t.checkpoint);
  CHECK(result["weights"] == sha256_file(t.checkpoint + "/model.safetensors"));
  CHECK(result["tokenizer"] == tokenizer().sha256());
  CHECK(result["samples"] == 20);
  CHECK(result["seed"] == 3);
  CHECK(result["step"] == 1);

  // Generated answers give the same scores. With two digits, one of them given, the model is asked
  // for the other.
  json written = json::parse(t.written("passkey", {"depths=3", "generate=true"}, samples));
  CHECK(written["scores"] == result["scores"]);
  written = json::parse(t.written("passkey", {"depths=3", "digits=2", "prefix_digits=1"}, samples));
  CHECK(written["task"]["prefix_digits"] == 1);
  for (size_t d = 0; d < 3; ++d) {
    CHECK(written["scores"][1]["cells"][d]["exact_match"].get<double>() ==
          Approx(ones({2, 1}, {3, 20, 3}, 300)[d]).margin(1e-12));
  }

  const std::string printed = t.printed("passkey", {"depths=3"}, samples);
  CHECK(contains(printed, "passkey, 20 prompts at each of 3 depths\n"));
  CHECK(contains(printed, "\n  exact match (%) by depth (%, down) and length\n   depth      0"));
  t.written("passkey", {"depths=3"}, samples);
  const Outcome o = run({bamtrain_program(), "report", t.path("result.json"), "--figure",
                         "retrieval", "-o", t.path("map.svg")});
  INFO(o.output);
  CHECK(o.code == 0);
  CHECK(contains(read_text(t.path("map.svg")), "passkey, exact match (%)"));
}

TEST_CASE("an evaluation of passkeys goes on behind the lengths of its file") {
  const SaysOne t;
  const Words settings = {"depths=2"};
  const auto evaluated = [&](const std::string& lengths, const std::string& seed = "0") {
    return t.written("passkey", settings, {"--lengths", lengths, "--samples", "3", "--seed", seed});
  };
  const std::string whole = evaluated("0,200,300");
  const auto altered = [&](const std::function<void(ordered_json&)>& change) {
    ordered_json file = ordered_json::parse(whole);
    for (const char* key : {"format", "digest"}) file.erase(key);  // as an earlier program wrote it
    change(file);
    std::ofstream(t.path("result.json")) << file.dump(2) + "\n";
  };
  altered([](auto& file) {
    file["scores"].erase(2);
    file["scores"].erase(0);
    file["depths"].clear();
    file["scores"][0]["exact_match"] = 0.123;
  });
  const json known = json::parse(evaluated("300,0,200"));
  REQUIRE(known["scores"].size() == 3);
  CHECK(known["scores"][1]["exact_match"] == 0.123);
  altered([](auto& file) { file["scores"].erase(1); });
  CHECK(evaluated("200") == whole);
  // With another seed, checkpoint, task, tokenizer or precision, nothing in the file is reused.
  altered([](auto& file) { file["scores"][0]["exact_match"] = 0.123; });
  CHECK_FALSE(contains(evaluated("0,200,300", "1"), "0.123"));
  for (const char* key : {"weights", "task", "tokenizer", "precision"}) {
    altered([&](auto& file) {
      file["scores"][0]["exact_match"] = 0.123;
      file[key] = "other";
    });
    CHECK(evaluated("0,200,300") == whole);
  }
  for (const json& row : {json(3), json(), json{{"length", 200}, {"task", "passkey"}}}) {
    altered([&](auto& file) { file["scores"][1] = row; });
    CHECK(evaluated("0,200,300") == whole);
  }
  for (const json& length : {json(-200), json(int64_t{1} << 41)}) {
    altered([&](auto& file) { file["scores"][1]["length"] = length; });
    CHECK(evaluated("0,200,300") == whole);
  }
  // A changed number in a file with a digest.
  ordered_json flipped = ordered_json::parse(whole);
  flipped["scores"][1]["exact_match"] = 0.123;
  std::ofstream(t.path("result.json")) << flipped.dump(2);
  CHECK(evaluated("0,200,300") == whole);
}

TEST_CASE("RULER's prompts are answered by greedy text, and a file's as its lines ask") {
  const SaysOne t;
  const json result =
      json::parse(t.written("niah", {"tasks=niah_single_1,niah_multikey_3", "depths=2", "tokens=3"},
                            {"--lengths", "600,700", "--samples", "2"}));
  REQUIRE(result["scores"].size() == 4);
  CHECK(result["scores"][0]["task"] == "niah_single_1");
  CHECK(result["scores"][3]["task"] == "niah_multikey_3");
  CHECK(result["scores"][3]["length"] == 700);
  for (const json& row : result["scores"]) {
    CHECK(row["recall"] == 0.0);  // the answers are numbers of 7 digits, and UUIDs
    CHECK(row["cells"].size() == 2);
    CHECK(row["prompts"] == 4);
    // RULER leaves 128 tokens for the answer. The prompt fills the rest, up to less than two units.
    CHECK(row["tokens"].get<double>() <= row["length"].get<double>() - 128);
    CHECK(row["tokens"].get<double>() > row["length"].get<double>() - 128 - 200);
  }
  CHECK(result["depths"].size() == 4);
  CHECK(result["task"]["tokens"] == 3);

  // The model writes "111"; some lines have references that it contains.
  write_bytes(t.path("file"), prompt_line("The old", {"111"}) + prompt_line("A", {"1", "2"}) +
                                  prompt_line("Every", {"1111"}) + prompt_line("x", {"11"}));
  const json of_file = json::parse(t.written("niah", {"file=" + t.path("file"), "tokens=3"}, {}));
  CHECK(of_file["samples"] == 4);
  REQUIRE(of_file["scores"].size() == 1);
  CHECK(of_file["scores"][0]["recall"] == 0.625);
  CHECK(of_file["scores"][0]["prompts"] == 4);
  CHECK_FALSE(of_file["scores"][0].contains("length"));
  CHECK(of_file["task"]["sha256"] == sha256_file(t.path("file")));
  CHECK(json::parse(t.written("niah", {"file=" + t.path("file"), "tokens=3"},
                              {"--samples", "1"}))["scores"][0]["recall"] == 1.0);

  // RULER's own depths. Another task keeps the results that the file already has.
  const Words few = {"--lengths", "600", "--samples", "2"};
  const std::string one = t.written("niah", {"tasks=niah_single_1", "tokens=3"}, few);
  CHECK_FALSE(json::parse(one)["scores"][0].contains("cells"));
  ordered_json marked = ordered_json::parse(one);
  marked["scores"][0]["recall"] = 0.123;
  write_bytes(t.path("result.json"), digested_json(marked));
  const json two =
      json::parse(t.written("niah", {"tasks=niah_multikey_2,niah_single_1", "tokens=3"}, few));
  CHECK(two["scores"][0]["task"] == "niah_multikey_2");
  CHECK(two["scores"][1]["recall"] == 0.123);
  CHECK(contains(t.printed("niah", {"tasks=niah_single_1", "tokens=3"}, few),
                 "niah_single_1, 2 prompts\n  length     600 "));
  // A call with fewer tasks keeps the results of the others.
  const json less = json::parse(t.written("niah", {"tasks=niah_single_1", "tokens=3"},
                                          {"--lengths", "650", "--samples", "2"}));
  REQUIRE(less["scores"].size() == 3);
  CHECK(less["scores"][0]["recall"] == 0.123);
  CHECK(less["scores"][1]["length"] == 650);
  CHECK(less["scores"][2] == two["scores"][0]);
}

TEST_CASE(
    "the texts of retrieval are written without their scores, and read as prompts of a file") {
  const SaysOne t;
  const auto texts = [&](const std::string& task, const Words& settings, Words more) {
    more.insert(more.end(), {"--write-prompts", t.path("texts.jsonl")});
    CHECK(t.printed(task, settings, more).empty());
    std::vector<json> lines;
    std::ifstream in(t.path("texts.jsonl"));
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
  };

  // With one digit, both evaluations agree prompt by prompt.
  const Words twenty = {"--lengths", "0,300", "--samples", "20", "--seed", "3"};
  std::vector<json> lines = texts("passkey", {"depths=3"}, twenty);
  REQUIRE(lines.size() == 120);
  for (const json& line : lines) {
    const auto input = line["input"].get<std::string>();
    const auto key = line["outputs"][0].get<std::string>();
    CHECK(contains(input, "The pass key is " + key + ". Remember it."));
    CHECK(input.ends_with("What is the pass key? The pass key is "));
  }
  CHECK(lines[59]["length"] == 0);
  CHECK(lines[60]["length"] == 300);
  CHECK(lines[79]["depth"] == 0.0);
  CHECK(lines[80]["depth"] == 0.5);
  const json asked = json::parse(t.written("passkey", {"depths=3"}, twenty));
  const json of_file =
      json::parse(t.written("niah", {"file=" + t.path("texts.jsonl"), "tokens=1"}, {}));
  const double mean = (asked["scores"][0]["exact_match"].get<double>() +
                       asked["scores"][1]["exact_match"].get<double>()) /
                      2;
  CHECK(mean > 0);
  CHECK(of_file["scores"][0]["recall"].get<double>() == Approx(mean).margin(1e-12));

  lines = texts("passkey", {"depths=2", "digits=3", "prefix_digits=2"}, {"--lengths", "200"});
  REQUIRE(lines.size() == 2);
  const auto input = lines[1]["input"].get<std::string>();
  const std::string given = input.substr(input.size() - 2);
  CHECK(contains(input, "The pass key is " + given + lines[1]["outputs"][0].get<std::string>()));

  const Words two = {"--lengths", "600,700", "--samples", "2"};
  const Words needles = {"tasks=niah_single_1,niah_multivalue", "haystack=" + t.path("essay")};
  write_bytes(t.path("essay"), "It was a day like others. Nobody knew why.\n");
  lines = texts("niah", needles, two);
  REQUIRE(lines.size() == 8);
  CHECK(lines[7]["task"] == "niah_multivalue");
  CHECK(lines[7]["length"] == 700);
  CHECK_FALSE(lines[7].contains("depth"));
  CHECK(lines[7]["outputs"].size() == 4);
  for (const json& line : lines) {
    for (const json& output : line["outputs"]) {
      CHECK(contains(line["input"].get<std::string>(), output.get<std::string>()));
    }
  }
  const std::string before = read_text(t.path("texts.jsonl"));
  texts("niah", {"file=" + t.path("texts.jsonl")}, {"--samples", "3"});
  CHECK(read_text(t.path("texts.jsonl")) != before);

  const auto refused = [&](const std::string& task, const Words& settings, const Words& more) {
    const Outcome o = t.eval(task, settings, more);
    CHECK(o.code != 0);
    return o.output;
  };
  const Words onto = {"--output", t.path("texts.jsonl")};
  CHECK(contains(refused("niah", {"file=" + t.path("texts.jsonl")}, onto),
                 "/texts.jsonl is the file that the task reads; choose another name"));
  const Words many = {"--write-prompts", t.path("many"), "--lengths", "600",
                      "--samples",       "100000000"};
  CHECK(contains(refused("passkey", {}, many), "prompts: expected at most"));
  const Words elsewhere = {"--write-prompts", t.path("essay"), "--lengths", "300"};
  CHECK(contains(refused("passkey", {}, elsewhere), "--write-prompts: "));
  CHECK(contains(refused("copy", {}, elsewhere),
                 "expected a task that generates prompts: passkey or niah"));
  CHECK(contains(refused("passkey", {}, {"--write-prompts", t.path("new"), "--lengths", "5"}),
                 "--lengths"));
  CHECK_FALSE(std::filesystem::exists(t.path("new")));
  CHECK(read_text(t.path("essay")) == "It was a day like others. Nobody knew why.\n");
}

TEST_CASE("what retrieval cannot ask is refused before a token is computed") {
  const SaysOne t;
  const Words lengths = {"--lengths", "600"};
  t.refused("passkey", {"depth=3"}, {}, ExitCode::usage, "did you mean depths?");
  t.refused("passkey", {"depths=1"}, {}, ExitCode::usage,
            "--task-set depths: expected an integer from 2 to 1000, found 1");
  t.refused("passkey", {"digits=10"}, lengths, ExitCode::usage, "--task-set digits: expected");
  t.refused("passkey", {"prefix_digits=1"}, lengths, ExitCode::usage,
            "--task-set prefix_digits: expected fewer than the 1 digits");
  t.refused("passkey", {"question=mine"}, lengths, ExitCode::usage,
            "--task-set question: unknown value 'mine'; choose one of published, paper");
  t.refused("passkey", {"generate=yes"}, lengths, ExitCode::usage, "expected true or false");
  t.refused("passkey", {}, {"--lengths", "300,20"}, ExitCode::usage,
            "--lengths: expected 0, for a prompt without filler, or at least its");
  t.refused("passkey", {"tokenizer=" + golden_path("gpt2.json")}, lengths, ExitCode::data,
            "one for each digit");
  t.refused("passkey", {}, {"--lengths", "600", "--samples", "100000000"}, ExitCode::device,
            "memory of the model and its KV cache (--lengths): expected at most");
  t.refused("file", {}, {}, ExitCode::usage, "name the file in the run's data.val");
  t.refused("passkee", {}, lengths, ExitCode::usage, "did you mean passkey?");

  t.refused("niah", {}, lengths, ExitCode::usage,
            "--task-set tasks: expected tasks of RULER, or a file of its prompts, found neither");
  t.refused("niah", {"tasks=niah_singel_1"}, lengths, ExitCode::usage,
            "did you mean niah_single_1?");
  t.refused("niah", {"tasks=niah_single_1"}, {}, ExitCode::usage,
            "--lengths: expected at least one");
  t.refused("niah", {"tasks=niah_single_1"}, {"--lengths", "600,100"}, ExitCode::usage,
            "--lengths: expected at least ");
  // If the shortest prompt fills more than half of a length, eval inspects each prompt; so many
  // would not fit in memory.
  t.refused("niah", {"tasks=niah_single_1"}, {"--lengths", "600", "--samples", "1000000000000"},
            ExitCode::device, "memory of 1000000000000 prompts: expected at most");
  t.refused("niah", {"tasks=niah_single_2"}, lengths, ExitCode::usage,
            "--task-set haystack: expected a text to hide the needles of niah_single_2 in");
  t.refused("niah", {"tasks=vt", "haystack=" + t.path("run.json")}, lengths, ExitCode::usage,
            "--task-set haystack: expected no text: no task here hides needles in one");
  t.refused("niah", {"tasks=niah_multikey_1", "depths=2", "haystack=" + t.path("run.json")},
            lengths, ExitCode::usage, "--task-set depths: expected a task of one needle");
  t.refused("niah", {"tasks=niah_single_2", "haystack=" + t.path("no")}, lengths, ExitCode::io,
            t.path("no"));
  t.refused("niah", {"file=" + t.path("run.json")}, {}, ExitCode::data, "run.json:1");
  write_bytes(t.path("file"), prompt_line("a", {"1"}));
  t.refused("niah", {"file=" + t.path("file")}, lengths, ExitCode::usage,
            "--lengths: expected no value: the prompts come from the file");
  t.refused("niah", {"file=" + t.path("file"), "depths=3"}, {}, ExitCode::usage,
            "--task-set depths: expected no value: the prompts come from the file");
  const Outcome o = run({bamtrain_program(), "report", t.path("run.json"), "--figure", "retrieval",
                         "-o", t.path("map.svg")});
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK_FALSE(std::filesystem::exists(t.path("map.svg")));
}

TEST_CASE("NaN ends retrieval with its exit code and the checkpoint's name") {
  const SaysOne t;
  const std::string spoiled =
      with_constant(t.checkpoint, t.path("spoiled"), "lm_head.weight", 3e38f);
  for (const std::string& task : {std::string("passkey"), std::string("niah")}) {
    Words words = {bamtrain_program(), "eval", "--checkpoint", spoiled, "--task", task,
                   "--lengths",        "600",  "--samples",    "1"};
    if (task == "niah") words.insert(words.end(), {"--task-set", "tasks=niah_single_1"});
    const Outcome o = run(words, threads(1));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::nonfinite));
    CHECK(contains(o.output, spoiled + ": "));
  }
}

TEST_CASE("lengths past a learned table are refused, with the length that has them") {
  const SaysOne t("learned");
  t.refused("passkey", {"depths=2"}, {"--lengths", "160,400"}, ExitCode::config,
            "the longest text of length 400, with its answer, has 372 tokens");
  t.refused("niah", {"tasks=niah_single_1"}, {"--lengths", "600"}, ExitCode::config,
            "niah_single_1 at 600");
  CHECK(t.eval("passkey", {"depths=2"}, {"--lengths", "160"}).code == 0);
}
