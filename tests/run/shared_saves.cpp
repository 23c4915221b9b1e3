// Checkpoints of several processes, which see one folder or not.

#include <filesystem>

#include "catch.h"
#include "core/error.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// A run whose out_dir, "out", is in the folder that each rank works in.
class Apart {
 public:
  Apart() : config_(small_run(w)) {
    config_["train"]["tokens_per_step"] = 768;
    config_["train"]["lanes"] = 6;
    config_["train"]["shard_optimizer"] = true;
    config_["out_dir"] = "out";
  }
  /// Up to a step, rank 0 in one folder, the two others in another.
  Outcome run_in(const std::string& first, const std::string& others, int end) {
    config_["train"]["stop_at"] = end;
    std::vector<std::string> command = bamtrain_command(write_config(w, "run.json", config_));
    command[0] = std::filesystem::absolute(command[0]);
    std::vector<std::string> all = {"mpirun"};
    for (const auto& [n, folder] : {std::pair{"1", first}, {"2", others}}) {
      std::filesystem::create_directories(w.path(folder));
      if (all.size() > 1) all.push_back(":");
      all.insert(all.end(), {"-np", n, "-wdir", w.path(folder)});
      all.insert(all.end(), command.begin(), command.end());
    }
    return run(all, threads(1));
  }

  const Workplace w;

 private:
  nlohmann::json config_;
};

const std::string kAlone = "so rank 0 writes checkpoints alone";

}  // namespace

TEST_CASE(
    "a checkpoint has the same bytes where processes write it together and where they cannot") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  Apart runs;
  const Workplace& w = runs.w;
  const Outcome together = runs.run_in("one", "one", 2), apart = runs.run_in("first", "others", 2);
  INFO(together.output << apart.output);
  REQUIRE(together.code == 0);
  REQUIRE(apart.code == 0);
  CHECK(together.output.find(kAlone) == std::string::npos);
  CHECK(apart.output.find(kAlone + "; what stops them: nothing (rank 0), out/.tmp-trial: cannot "
                                   "open: No such file or directory") != std::string::npos);
  CHECK(apart.output.find("(rank 1)") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("others/out")));
  CHECK_FALSE(std::filesystem::exists(w.path("one/out/.tmp-trial")));
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    const std::string name = std::string("/out/checkpoint-00000002") + file;
    CHECK(read_text(w.path("one") + name) == read_text(w.path("first") + name));
  }
}

TEST_CASE("a run does not begin anew where another rank has its checkpoint") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  Apart runs;
  REQUIRE(runs.run_in("first", "others", 2).code == 0);
  // The nodes have changed places.
  const Outcome refused = runs.run_in("others", "first", 3);
  INFO(refused.output);
  CHECK(refused.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(refused.output.find("rank 1: out: expected no newer checkpoint than in rank 0's out_dir, "
                            "found checkpoint-00000002") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(runs.w.path("others/out")));
  CHECK(runs.run_in("first", "others", 3).code == 0);
}
