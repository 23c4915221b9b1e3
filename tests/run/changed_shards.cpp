// Shards that change while a run reads them, or between the parts of a run.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "core/error.h"
#include "core/sha256.h"
#include "data/manifest.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace fs = std::filesystem;

namespace {

/// small_run, validating at every step, until something ends it.
nlohmann::json endless_run(const Workplace& w) {
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1000000;
  c["eval"] = {{"every", 1}, {"tokens", 0}};
  // A later write then changes the modification time, whatever the clock's resolution.
  for (const char* shard : {"train/000.bin", "val/000.bin"}) {
    fs::last_write_time(w.path(shard), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  return c;
}

/// Replaces ids by other valid ones, in place.
void write_over(const std::string& shard, int64_t first, int64_t count) {
  std::fstream file(shard, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(1024 + 2 * first);
  for (int64_t i = 0; i < count; ++i) file.write("\5\0", 2);
  file.close();
  REQUIRE(file);
}

}  // namespace

TEST_CASE("a shard that changes while a run reads it ends the run by name, whatever the change") {
  const Workplace w;
  std::string shard;
  std::function<void()> change;
  const auto cut = [&](int64_t tokens) {
    fs::resize_file(shard, static_cast<uintmax_t>(1024 + 2 * tokens));
  };
  SECTION("training, cut between pages") {
    shard = w.path("train/000.bin");
    change = [&] { cut(1536); };  // 4096 bytes
  }
  SECTION("training, written over with valid ids") {
    shard = w.path("train/000.bin");
    change = [&] { write_over(shard, 0, 40000); };
  }
  SECTION("validation, cut inside its last page") {
    shard = w.path("val/000.bin");
    change = [&] { cut(4990); };
  }
  SECTION("validation, written over with valid ids") {
    shard = w.path("val/000.bin");
    change = [&] { write_over(shard, 100, 10); };
  }
  const std::string config = write_config(w, "run.json", endless_run(w));
  const Outcome o = run_and(
      bamtrain_command(config), "step 2 validation loss", [&](int) { change(); }, threads(2));
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::data));
  CHECK((o.output.find(shard + ": expected ") != std::string::npos ||
         o.output.find(shard + ": modified since it was opened; ") != std::string::npos));
}

TEST_CASE("a run does not resume on shards that were written over") {
  const Workplace w;
  const std::string config = write_config(w, "run.json", small_run(w));
  REQUIRE(run(bamtrain_command(config, {"train.stop_at=4"}), threads(2)).code == 0);
  SECTION("not at all") {
    const Outcome o = run(bamtrain_command(config), threads(2));
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find("shards match the checkpoint (names, sizes, headers, sampled tokens); "
                        "bamdata verify compares all tokens") != std::string::npos);
  }
  SECTION("whole") {
    write_over(w.path("train/000.bin"), 0, 40000);
    const Outcome o = run(bamtrain_command(config), threads(2));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::data));
    CHECK(o.output.find(w.path("train") + ": expected the tokens of ") != std::string::npos);
    CHECK(o.output.find("bamdata verify") != std::string::npos);
    const Outcome allowed =
        run(bamtrain_command(config, {"checkpoint.allow_change=[\"data.train\"]"}), threads(2));
    INFO(allowed.output);
    CHECK(allowed.code == 0);
    CHECK(allowed.output.find("shards match the checkpoint") == std::string::npos);
  }
}

TEST_CASE("a run compares its shards with their manifest, and ends where one is another") {
  const Workplace w;
  nlohmann::json c = endless_run(w);
  c["checkpoint"]["every"] = 1;
  const Manifest m = write_training_manifest(w, 'a');
  const std::string config = write_config(w, "run.json", c);
  const std::string good = "verified 1 shard (SHA-256)";
  SECTION("all is well") {
    const Outcome o = run_and(
        bamtrain_command(config), good, [&](int run) { kill(run, SIGTERM); }, threads(2));
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::interrupted));
    const size_t said = o.output.find(good);
    CHECK(o.output.find(good, said + 1) == std::string::npos);
  }
  const int processes = have_mpi() ? 2 : 1;
  SECTION("a valid id in the place of another, where no sample lies") {
    write_over(w.path("train/000.bin"), 5000, 1);
    for (int n = 1; n <= processes; ++n) {
      const std::vector<std::string> command = bamtrain_command(config);
      const Outcome o = run(n == 1 ? command : mpirun_command(n, command), threads(1));
      INFO(o.output);
      CHECK(o.code == static_cast<int>(ExitCode::data));
      CHECK(o.output.find(w.path("train/000.bin") + ": expected SHA-256 " + m.shards[0].sha256) !=
            std::string::npos);
      CHECK(o.output.find("found " + sha256_file(w.path("train/000.bin"))) != std::string::npos);
      CHECK(o.output.find(good) == std::string::npos);
    }
  }
  SECTION("not asked to") {
    write_over(w.path("train/000.bin"), 5000, 1);
    const Outcome o =
        run(bamtrain_command(config, {"train.stop_at=20", "data.verify=false"}), threads(2));
    INFO(o.output);
    CHECK(o.code == 0);
    CHECK(o.output.find("(SHA-256)") == std::string::npos);
    CHECK(o.output.find("expected SHA-256") == std::string::npos);
  }
}
