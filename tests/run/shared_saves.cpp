// Checkpoints of several processes, which see one folder or not.

#include <filesystem>

#include "catch.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("a checkpoint has the same bytes where processes write it together and where they cannot") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["tokens_per_step"] = 768;
  c["train"]["lanes"] = 6;
  c["train"]["stop_at"] = 2;
  c["train"]["shard_optimizer"] = true;
  c["out_dir"] = "out";
  std::vector<std::string> command = bamtrain_command(write_config(w, "run.json", c));
  command[0] = std::filesystem::absolute(command[0]);
  /// Rank 0 in one folder, the two others in another.
  const auto run_in = [&](const std::string& first, const std::string& others) {
    std::vector<std::string> all = {"mpirun"};
    for (const auto& [n, folder] : {std::pair{"1", first}, {"2", others}}) {
      std::filesystem::create_directories(w.path(folder));
      if (all.size() > 1) all.push_back(":");
      all.insert(all.end(), {"-np", n, "-wdir", w.path(folder)});
      all.insert(all.end(), command.begin(), command.end());
    }
    return run(all, threads(1));
  };
  const std::string alone = "rank 0 writes checkpoints alone", name = "/out/checkpoint-00000002";
  const Outcome together = run_in("one", "one"), apart = run_in("first", "others");
  INFO(together.output << apart.output);
  REQUIRE(together.code == 0);
  REQUIRE(apart.code == 0);
  CHECK(together.output.find(alone) == std::string::npos);
  CHECK(apart.output.find(alone) != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("others/out")));
  CHECK_FALSE(std::filesystem::exists(w.path("one/out/.tmp-trial")));
  for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
    CHECK(read_text(w.path("one") + name + file) == read_text(w.path("first") + name + file));
  }
}
