// Shards, a configuration and a run's folder of 0.1.0 (tests/run/older).

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain::testing;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

/// A copy of the files, in which programs work as their user did.
struct OlderFiles {
  Workplace w;
  std::string folder = w.path("older");

  OlderFiles() {
    const char* source = std::getenv("BAMTRAIN_SOURCE");
    REQUIRE(source != nullptr);
    fs::copy(fs::path(source) / "tests/run/older/0.1.0", folder, fs::copy_options::recursive);
  }

  std::string works(const std::string& program, const Words& arguments) const {
    Words all = {"env", "-C", folder, fs::absolute(program).string()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome o = run(all, threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  }
  std::string bamtrain(const Words& arguments) const {
    return works(bamtrain_program(), arguments);
  }
  json file(const std::string& name) const { return json::parse(read_text(folder + "/" + name)); }
};

// Exponentials and the order of sums changed since, each by some units in the last place of fp32
// (6e-8). When these files were written, losses and norms differed by at most 8e-9.
constexpr double kRounding = 1e-6;

}  // namespace

TEST_CASE("shards of 0.1.0 are verified as far as their manifest goes") {
  const OlderFiles files;
  const std::string program =
      fs::path(bamtrain_program()).parent_path().parent_path() / "data_tools/bamdata";
  const std::string said = files.works(program, {"verify", "data/train"});
  INFO(said);
  CHECK(said.find("format 1") != std::string::npos);
  CHECK(files.works(program, {"inspect", "data/val"}).find("2,226") != std::string::npos);
}

TEST_CASE("eval of a run of 0.1.0 measures what 0.1.0 did, with the tokenizer beside its data") {
  const OlderFiles files;
  const json before = files.file("out/perplexity.json");
  files.bamtrain(
      {"eval", "out", "--last-tokens", "16", "--max-tokens", "256", "--output", "again.json"});
  const json now = files.file("again.json");
  for (const char* protocol : {"windows", "last"}) {
    REQUIRE(now[protocol].size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(now[protocol][i]["tokens"] == before[protocol][i]["tokens"]);
      CHECK(now[protocol][i]["loss"].get<double>() ==
            Approx(before[protocol][i]["loss"].get<double>()).epsilon(kRounding));
    }
  }
  CHECK(now.dump().find("bits_per_byte") != std::string::npos);
  CHECK_FALSE(files.bamtrain({"generate", "out", "--prompt", "the", "--max-tokens", "4"}).empty());
  files.bamtrain({"report", "out"});
  files.bamtrain({"export", "out", "--output", "hf"});
  CHECK(fs::exists(files.folder + "/hf/tokenizer.model"));
}

TEST_CASE("a run of 0.1.0 resumes with the losses that it had there") {
  const OlderFiles files;
  const json resolved = json::parse(files.bamtrain({"train", "run.json", "--print-config"}));
  CHECK(resolved["config_version"] == 1);
  const std::string said = files.bamtrain({"train", "run.json", "--set", "train.stop_at=0"});
  INFO(said);
  CHECK(said.find("resuming from out/checkpoint-00000004 at step 4") != std::string::npos);
  CHECK(said.find("bamtrain 0.1.0 wrote this checkpoint, ") != std::string::npos);
  std::istringstream expected(read_text(files.folder + "/metrics-5-to-8.jsonl"));
  std::istringstream all(read_text(files.folder + "/out/metrics.jsonl"));
  std::string line;
  for (int step = 1; step <= 4; ++step) REQUIRE(std::getline(all, line));
  for (int step = 5; step <= 8; ++step) {
    std::string before, now;
    REQUIRE(std::getline(expected, before));
    REQUIRE(std::getline(all, now));
    for (const char* key : {"loss", "grad_norm", "lr"}) {
      INFO(step << " " << key);
      CHECK(json::parse(now)[key].get<double>() ==
            Approx(json::parse(before)[key].get<double>()).epsilon(kRounding));
    }
  }
}
