// The same config and seed give bitwise identical results: from run to run, resumed or not, with
// any number of threads, and with any number of processes up to the lanes.

#include <csignal>
#include <filesystem>

#include "catch.h"
#include "checkpoint/checkpoint.h"
#include "ops/cpu/cpu.h"
#include "run/peak_matmul.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

void send_usr1(int process) { kill(process, SIGUSR1); }

/// The precisions in which this machine can train; oneDNN multiplies bf16 only with AVX-512.
std::vector<std::string> precisions() {
  static const bool have_bf16 = [] {
    try {
      measure_peak_matmul(*make_cpu_backend(), Dtype::bf16);
      return true;
    } catch (const Error& e) {
      WARN("bf16 is not tested: " << e.what());
      return false;
    }
  }();
  return have_bf16 ? std::vector<std::string>{"fp32", "bf16"} : std::vector<std::string>{"fp32"};
}

/// Stops a run with SIGUSR1, resumes it, and compares it with an uninterrupted run. The signal
/// cannot come too late: the run would take hours.
void check_stopped_by_signal(int processes, int processes_after) {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = 1'000'000;
  const auto command = [&](const std::string& out, int n, const std::vector<std::string>& changes) {
    c["out_dir"] = w.path(out);
    const auto alone = bamtrain_command(write_config(w, out + ".json", c), changes);
    return n > 1 ? mpirun_command(n, alone) : alone;
  };
  const Outcome stopped =
      run_and(command("stopped", processes, {}), "1/1000000 loss", send_usr1, threads(1));
  INFO(stopped.output);
  REQUIRE(stopped.code == 85);
  const std::string announced = "interrupted; checkpoint saved at step ";
  const size_t at = stopped.output.find(announced);
  REQUIRE(at != std::string::npos);
  const int step = std::stoi(stopped.output.substr(at + announced.size()));
  REQUIRE(step >= 1);

  const int end = step + 4;
  const std::vector<std::string> to_end = {"train.stop_at=" + std::to_string(end)};
  const Outcome resumed = run(command("stopped", processes_after, to_end), threads(1));
  INFO(resumed.output);
  REQUIRE(resumed.code == 0);
  CHECK(resumed.output.find("resuming from") != std::string::npos);
  CHECK(resumed.output.find("wrote this checkpoint") == std::string::npos);
  const Outcome straight = run(command("straight", 1, to_end), threads(2));
  INFO(straight.output);
  REQUIRE(straight.code == 0);
  CHECK(straight.output.find("resuming from") == std::string::npos);
  const std::string last = "/" + checkpoint_name(end);
  CHECK(digest(w.path("stopped") + last) == digest(w.path("straight") + last));
}

/// Trains `config` in its own out_dir. Returns the digest of its last checkpoint.
std::string train_to_end(const Workplace& w, nlohmann::json config, const std::string& out,
                         int threads_per_process, int processes) {
  config["out_dir"] = w.path(out);
  auto command = bamtrain_command(write_config(w, out + ".json", config));
  if (processes > 1) command = mpirun_command(processes, command);
  const Outcome o = run(command, threads(threads_per_process));
  INFO(o.output);
  REQUIRE(o.code == 0);
  return digest(w.path(out) + "/checkpoint-00000008");
}

/// Trains `config` in its own out_dir up to step 4, in one process.
void train_half(const Workplace& w, nlohmann::json config, const std::string& out) {
  config["train"]["stop_at"] = 4;
  config["out_dir"] = w.path(out);
  const Outcome o = run(bamtrain_command(write_config(w, "half.json", config)), threads(2));
  INFO(o.output);
  REQUIRE(o.code == 0);
  REQUIRE_FALSE(std::filesystem::exists(w.path(out) + "/checkpoint-00000008"));
}

/// Every way to train in this build must give the same model and the same loss.
void check_all_ways(const Workplace& w, const nlohmann::json& config) {
  const std::string straight = train_to_end(w, config, "straight", 1, 1);
  const nlohmann::json validated = read_metrics(w.path("straight")).back();
  REQUIRE(validated["validation_loss_error"].get<double>() > 0);
  REQUIRE(validated["attention"]["windows"] == 8);
  const auto check = [&](const std::string& out, int threads_per_process, int processes) {
    CHECK(train_to_end(w, config, out, threads_per_process, processes) == straight);
    const nlohmann::json line = read_metrics(w.path(out)).back();
    for (const char* key :
         {"loss", "grad_norm", "validation_loss", "validation_loss_error", "attention"}) {
      CHECK(line[key] == validated[key]);
    }
  };
  for (int n : {2, 3}) {
    INFO(n << " threads");
    check("threads" + std::to_string(n), n, 1);
  }
  train_half(w, config, "halves");
  check("halves", 1, 1);
  if (!have_mpi()) {
    WARN("built without MPI: one process only");
    return;
  }
  for (int n : {2, 3}) {
    INFO(n << " processes");
    check("processes" + std::to_string(n), 1, n);
  }
}

}  // namespace

TEST_CASE("fp32 training gives the same bits by every way") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["optimizer"]["clip"] = 0.1;  // below the norm of every step
  check_all_ways(w, c);
}

TEST_CASE("lanes give the same bits on every number of processes") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["tokens_per_step"] = 768;  // six micro-batches
  for (const auto& [lanes, counts] :
       std::initializer_list<std::pair<int, std::vector<int>>>{{6, {2, 3, 4, 5, 6}}, {3, {2, 3}}}) {
    c["train"]["lanes"] = lanes;
    const std::string of_lanes = std::to_string(lanes) + "-";
    const std::string straight = train_to_end(w, c, of_lanes + "1", 1, 1);
    for (int n : counts) {
      INFO(lanes << " lanes, " << n << " processes");
      c["train"]["shard_optimizer"] = n % 3 != 0;
      CHECK(train_to_end(w, c, of_lanes + std::to_string(n), 1, n) == straight);
      CHECK(read_metrics(w.path(of_lanes + std::to_string(n))).back()["loss"] ==
            read_metrics(w.path(of_lanes + "1")).back()["loss"]);
    }
  }
}

/// The number of processes changes in between, what each keeps, and when gradients are summed.
TEST_CASE("a run goes on with the same bits on other processes, which divide its state or not") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  struct Part {
    int end, processes;
    bool divided, overlap;
  };
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["tokens_per_step"] = 768;
  c["train"]["lanes"] = 6;
  c["optimizer"]["clip"] = 0.1;
  for (const std::string& name : precisions()) {
    INFO(name);
    c["train"]["precision"] = name;
    c["model"]["tied"] = name == "fp32";
    const std::string straight = train_to_end(w, c, name + "-1", 1, 1);
    nlohmann::json parts = c;
    parts["out_dir"] = w.path(name);
    for (const auto& [end, n, divided, overlap] :
         {Part{2, 6, true, false}, Part{3, 4, false, true}, Part{5, 3, true, true},
          Part{7, 2, true, true}, Part{8, 2, false, false}}) {
      parts["train"]["stop_at"] = end;
      parts["train"]["shard_optimizer"] = divided;
      parts["train"]["overlap"] = overlap;
      const auto command = bamtrain_command(write_config(w, "parts.json", parts));
      const Outcome o = run(mpirun_command(n, command), threads(1));
      INFO(o.output);
      REQUIRE(o.code == 0);
    }
    CHECK(digest(w.path(name + "/checkpoint-00000008")) == straight);
  }
}

TEST_CASE("random positions are the same by every way") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["model"]["attention"]["scale"] = {{"name", "none"}};
  c["model"]["attention"]["prior"] = {{"name", "rope"}};
  const std::string counting = train_to_end(w, c, "counting", 2, 1);
  c["model"]["attention"]["prior"]["randomized"] = true;
  check_all_ways(w, c);
  CHECK(digest(w.path("straight/checkpoint-00000008")) != counting);
}

TEST_CASE("bf16 training gives the same bits by every way") {
  if (precisions().size() < 2) return;
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["precision"] = "bf16";
  check_all_ways(w, c);
}

TEST_CASE("layers of different priors give the same bits by every way") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["model"]["layers"] = 4;
  c["model"]["attention"]["prior"] = {
      {{"name", "rope_local"}}, {{"name", "cable"}}, {{"name", "t5"}}, {{"name", "bam"}}};
  check_all_ways(w, c);
}

TEST_CASE("width 64 with 4,096 tokens per micro-batch gives the same bits by every way") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  c["train"]["micro_batch"] = 64;  // of 64 tokens
  c["train"]["tokens_per_step"] = 4 * 4096;
  for (const std::string& name : precisions()) {
    c["train"]["precision"] = name;
    INFO(name);
    const std::string straight = train_to_end(w, c, name + "-1", 1, 1);
    CHECK(train_to_end(w, c, name + "-2", 2, 1) == straight);
    if (have_mpi()) CHECK(train_to_end(w, c, name + "-mpi", 1, 4) == straight);
  }
}

TEST_CASE("other seeds and other data give other bits") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::string straight = train_to_end(w, c, "a", 2, 1);
  c["seed"] = 8;
  CHECK(train_to_end(w, c, "b", 2, 1) != straight);
}

TEST_CASE("a run stopped by SIGUSR1 resumes bitwise identically") { check_stopped_by_signal(1, 1); }

TEST_CASE("mpirun forwards SIGUSR1 to all ranks, and the run resumes bitwise identically") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  check_stopped_by_signal(2, 4);
}

TEST_CASE("parameters and both moments of a checkpoint reach every process") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  nlohmann::json c = small_run(w);
  // Every step divides by the second moments; RAdam's first steps do not.
  c["optimizer"] = {{"name", "adamw"}, {"lr", 3e-3}};
  const std::string straight = train_to_end(w, c, "straight", 2, 1);
  train_half(w, c, "resumed");
  CHECK(train_to_end(w, c, "resumed", 1, 4) == straight);
}

TEST_CASE("the trigger file stops a run after one step, once, and it resumes bitwise identically") {
  const Workplace w;
  nlohmann::json c = small_run(w);
  const std::string straight = train_to_end(w, c, "straight", 2, 1);
  c["out_dir"] = w.path("stopped");
  const std::string config = write_config(w, "stopped.json", c);
  std::filesystem::create_directories(w.path("stopped"));
  fclose(fopen(w.path("stopped/stop").c_str(), "w"));
  const Outcome stopped = run(bamtrain_command(config), threads(2));
  INFO(stopped.output);
  REQUIRE(stopped.code == 85);
  CHECK(std::filesystem::exists(w.path("stopped/checkpoint-00000001")));
  CHECK_FALSE(std::filesystem::exists(w.path("stopped/stop")));
  const Outcome resumed = run(bamtrain_command(config), threads(2));
  INFO(resumed.output);
  REQUIRE(resumed.code == 0);
  CHECK(digest(w.path("stopped/checkpoint-00000008")) == straight);
  const auto lines = read_metrics(w.path("stopped"));
  REQUIRE(lines.size() == 8);
  for (size_t i = 0; i < lines.size(); ++i) CHECK(lines[i]["step"] == i + 1);
}

TEST_CASE("the trigger file that the first process finds stops all of them after the same step") {
  if (!have_mpi()) {
    WARN("built without MPI: skipped");
    return;
  }
  const Workplace w;
  const nlohmann::json c = small_run(w);
  const std::string config = write_config(w, "run.json", c);
  std::filesystem::create_directories(w.path("out"));
  fclose(fopen(w.path("out/stop").c_str(), "w"));
  const Outcome stopped = run(mpirun_command(2, bamtrain_command(config)), threads(1));
  INFO(stopped.output);
  CHECK(stopped.code == 85);
  CHECK(std::filesystem::exists(w.path("out/checkpoint-00000001")));
  CHECK(read_metrics(w.path("out")).size() == 1);
}
