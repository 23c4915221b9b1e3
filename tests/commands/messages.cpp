// What a user of several processes sees of errors and of the memory plan.

#include <filesystem>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

int occurrences(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The number of MiB in the line that begins with `label`.
double mebibytes(const std::string& text, const std::string& label) {
  const size_t at = text.find("  " + label + " ");
  INFO(text);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + 2 + label.size()));
}

}  // namespace

TEST_CASE("an error that all ranks meet is printed once") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  ExitCode code = ExitCode::ok;
  std::string text;
  SECTION("in the config") {
    c["model"]["heads"] = 5;
    code = ExitCode::config;
    text = "run.json: model.heads: expected a divisor";
  }
  SECTION("in the data") {
    c["data"]["train"] = w.path("nowhere");
    code = ExitCode::data;
    text = "nowhere";
  }
  SECTION("in a step") {
    c["optimizer"]["lr"] = 1e30;
    c["optimizer"]["clip"] = 0;
    code = ExitCode::nonfinite;
    text = "expected a finite loss";
  }
  const std::string config = write_config(w, "run.json", c);
  const Outcome o = run(mpirun_command(4, bamtrain_command(config)), threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(code));
  CHECK(occurrences(o.output, "bamtrain: ") == 1);
  CHECK(occurrences(o.output, "bamtrain: rank 0: ") == 1);
  CHECK(o.output.find(text) != std::string::npos);
  CHECK(o.output.find("before the first step") == std::string::npos);
}

TEST_CASE("an error that one rank meets is printed, with its rank") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  for (const char* rank : {"0", "1", "3"}) {
    std::filesystem::create_directory_symlink(w.path("train"), w.path("shards") + rank);
  }
  const Outcome o = run(
      mpirun_command(4, {"sh", "-c", "exec $0 --config $1 --set data.train=$2$OMPI_COMM_WORLD_RANK",
                         bamtrain_program(), config, w.path("shards")}),
      threads(1));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK(occurrences(o.output, "bamtrain: ") == 1);
  CHECK(occurrences(o.output, "bamtrain: rank 2: " + w.path("shards2")) == 1);
  CHECK(o.output.find("before the first step") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}

TEST_CASE("a dry run counts the messages between processes and the evaluation at the end") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const auto dry_run = [&](int processes) {
    std::vector<std::string> command = bamtrain_command(write_config(w, "run.json", c));
    command.push_back("--dry-run");
    if (processes > 1) command = mpirun_command(processes, command);
    const Outcome o = run(command, threads(1));
    INFO(o.output);
    REQUIRE(o.code == 0);
    return o.output;
  };
  const std::string plain = dry_run(1);
  CHECK(plain.find("messages") == std::string::npos);
  CHECK(plain.find("evaluation") == std::string::npos);
  // Batches of 8,192 tokens. Per token: 928 numbers for the one stored layer and around it, and 211
  // logits.
  c["eval"] = {{"lengths", {8, 32}}};
  const double evaluation = mebibytes(dry_run(1), "final evaluation");
  const double activations = 8192.0 * 4 * (928 + 211) / (1 << 20);
  CHECK(evaluation > activations);
  CHECK(evaluation < 2 * activations);
  // Four messages of 16 MiB in flight.
  if (have_mpi()) CHECK(mebibytes(dry_run(2), "messages") == 64);
  CHECK_FALSE(std::filesystem::exists(w.path("out")));
}
