// Processes of one run with different command lines or inputs.

#include <filesystem>
#include <fstream>
#include <regex>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Two processes, each with its own command line.
Outcome run_two(const std::vector<std::string>& first, const std::vector<std::string>& second) {
  std::vector<std::string> command = mpirun_command(1, first);
  command.insert(command.end(), {":", "-np", "1"});
  command.insert(command.end(), second.begin(), second.end());
  return run(command, threads(1));
}

void require_refused(const Workplace& w, const Outcome& o, ExitCode code, const std::string& what) {
  INFO(o.output);
  CHECK(o.code == static_cast<int>(code));
  CHECK(o.output.find("bamtrain: rank 1: " + what + ": expected the same on every rank") !=
        std::string::npos);
  CHECK(std::regex_search(o.output, std::regex("; (start|set|copy) ")));
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

}  // namespace

TEST_CASE("processes with different configurations are refused, the first key named") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const std::pair<const char*, nlohmann::json> changes[] = {
      {"optimizer.lr", 0.5},      {"seed", 77},       {"optimizer.betas", {0.5, 0.9}},
      {"optimizer.clip", 3.0},    {"train.steps", 4}, {"checkpoint.every", 1},
      {"train.precision", "bf16"}};
  for (const auto& [key, value] : changes) {
    const Workplace w;
    const nlohmann::json c = small_run(w);
    const std::vector<std::string> first = bamtrain_command(write_config(w, "a.json", c));
    std::vector<std::string> second = first;
    second.insert(second.end(), {"--set", std::string(key) + "=" + value.dump()});
    require_refused(w, run_two(first, second), ExitCode::config, key);
  }
}

TEST_CASE("processes with different commands are refused") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  const std::vector<std::string> training =
      bamtrain_command(write_config(w, "a.json", small_run(w)));
  std::vector<std::string> dry = training;
  dry.push_back("--dry-run");
  require_refused(w, run_two(training, dry), ExitCode::usage, "command");
  require_refused(w, run_two(training, {bamtrain_program(), "help", "data"}), ExitCode::usage,
                  "command");
}

TEST_CASE("another build of the program on one node is refused") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  const std::vector<std::string> first = bamtrain_command(write_config(w, "a.json", small_run(w)));
  std::vector<std::string> second = first;
  for (std::string& word : second) {
    if (word != bamtrain_program()) continue;
    word = w.path("bamtrain");
    std::filesystem::copy_file(bamtrain_program(), word);
    std::ofstream(word, std::ios::app | std::ios::binary) << "another";
  }
  REQUIRE(second != first);
  require_refused(w, run_two(first, second), ExitCode::distributed, "program");
}

TEST_CASE("another instruction set of the matrix products on one node is refused") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  const std::vector<std::string> command =
      bamtrain_command(write_config(w, "a.json", small_run(w)));
  const auto with_isa = [&](const std::string& isa) {
    std::vector<std::string> out = {"env", "ONEDNN_MAX_CPU_ISA=" + isa};
    out.insert(out.end(), command.begin(), command.end());
    return out;
  };
  const Outcome o = run_two(with_isa("AVX2"), with_isa("SSE41"));
  require_refused(w, o, ExitCode::distributed, "oneDNN's instruction set");
  CHECK(o.output.find("AVX2 as on rank 0, found SSE41") != std::string::npos);
  CHECK(o.output.find("-x ONEDNN_MAX_CPU_ISA=AVX2") != std::string::npos);
  CHECK(run_two(with_isa("AVX2"), with_isa("AVX2")).code == 0);
}

TEST_CASE("shards of the same size with other tokens on one node are refused") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::vector<std::string> first = bamtrain_command(write_config(w, "a.json", c));
  for (const std::string of : {"train", "val"}) {
    std::filesystem::copy(w.path(of), w.path("copy"), std::filesystem::copy_options::recursive);
    std::vector<std::string> second = first;
    second.insert(second.end(), {"--set", "data." + of + "=" + w.path("copy")});
    {
      INFO("a true copy, at another place");
      const Outcome o = run_two(first, second);
      INFO(o.output);
      CHECK(o.code == 0);
      std::filesystem::remove_all(w.path("out"));
    }
    write_shard(w.path("copy/000.bin"), of == "val" ? 5000 : 40000, 211, 99);
    const std::string name = of == "val" ? "validation" : "training";
    require_refused(w, run_two(first, second), ExitCode::data,
                    name + " data, a sample of its tokens");
    std::filesystem::remove_all(w.path("copy"));
  }
}
