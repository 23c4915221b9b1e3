// Training on the CUDA backend, on the engine: compared with the CPU, and in several processes.

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "ops/compare.h"
#include "thinned.h"
#include "train/support.h"

namespace bamtrain::testing {
namespace {

std::string program() {
  const char* build = std::getenv("BAMTRAIN_BUILD");
  return std::string(build ? build : "build") + "/tests/cuda/on_processes";
}

struct Curve {
  std::vector<double> losses;
  std::string state;  // SHA-256 of weights and moments
};

/// Trains small_run: 2 layers, steps of 1,024 tokens.
Curve trained(const Workplace& w, const std::string& device, const std::string& precision,
              int steps, int processes = 1, const std::vector<std::string>& more = {}) {
  nlohmann::json c = small_run(w);
  c["train"]["steps"] = steps;
  c["train"]["precision"] = precision;
  c["device"] = device;
  std::vector<std::string> command = {program(), "train", write_config(w, "run.json", c)};
  command.insert(command.end(), more.begin(), more.end());
  if (processes > 1) command = mpirun_command(processes, command);
  const Outcome o = run(command, threads(1));
  INFO(device << " " << precision << ", " << processes << " processes\n" << o.output);
  REQUIRE(o.code == 0);
  Curve curve;
  std::istringstream lines(o.output);
  for (std::string line; std::getline(lines, line);) {
    double loss = 0;
    char digest[65] = {};
    if (std::sscanf(line.c_str(), "step loss %lf", &loss) == 1) curve.losses.push_back(loss);
    if (std::sscanf(line.c_str(), "state %64s", digest) == 1) curve.state = digest;
  }
  REQUIRE(curve.losses.size() == static_cast<size_t>(steps));
  REQUIRE(curve.state.size() == 64);
  return curve;
}

/// The largest difference between losses of the same step.
double distance(const Curve& a, const Curve& b) {
  double most = 0;
  for (size_t i = 0; i < a.losses.size(); ++i) {
    most = std::max(most, std::abs(a.losses[i] - b.losses[i]));
  }
  return most;
}

/// Each activation is rounded by at most `rounding`. Averaging over a step's 1,024 tokens divides
/// this by 32; eight times that is allowed.
void check_near(const Curve& a, const Curve& b, double rounding) {
  INFO("largest difference " << distance(a, b));
  CHECK(distance(a, b) <= rounding / 4 * b.losses.front());
}

TEST_CASE("steps on CUDA in bf16 follow the CPU's loss curve, and twice give the same bits") {
  const Workplace w;
  const int steps = long_tests() ? 20 : 12;
  const Curve cuda = trained(w, "cuda", "bf16", steps);
  CHECK(cuda.losses.back() < cuda.losses.front() - (long_tests() ? 0.3 : 0.02));  // it learns
  CHECK(trained(w, "cuda", "bf16", steps).state == cuda.state);
  if (with_products({Dtype::bf16}).empty()) return;
  const Curve cpu = trained(w, "cpu", "bf16", steps);
  CHECK(cuda.state != cpu.state);
  check_near(cuda, cpu, 0x1p-9);
}

TEST_CASE("steps on CUDA in fp32 follow the CPU's loss curve") {
  const Workplace w;
  check_near(trained(w, "cuda", "fp32", 4), trained(w, "cpu", "fp32", 4), 0x1p-24);
}

/// From the third step on, they are replayed, each with its own learning rate and factors.
TEST_CASE("steps of one micro-batch, which are recorded as a whole, follow the CPU's loss curve") {
  const Workplace w;
  const std::vector<std::string> whole = {"train.micro_batch=16", "train.lanes=0",
                                          "optimizer.name=adamw", "optimizer.clip=0.5",
                                          "schedule.warmup_steps=4"};
  const Curve cpu = trained(w, "cpu", "fp32", 5, 1, whole);
  CHECK(std::abs(cpu.losses.back() - cpu.losses.front()) > 1e-4);  // 1e-7 of it may differ
  check_near(trained(w, "cuda", "fp32", 5, 1, whole), cpu, 0x1p-24);
}

TEST_CASE("sums between devices have the bits of the communicator's on 2, 3, 4 and 8 processes") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  for (const int processes : {2, 3, 4, 8}) {
    for (const char* piece : {"64", "4096"}) {
      const Outcome o = run(mpirun_command(processes, {program(), "sums", piece}), threads(1));
      INFO(processes << " processes, messages of " << piece << "\n" << o.output);
      CHECK(o.code == 0);
      CHECK(o.output.find("rank " + std::to_string(processes - 1) + ": 0 failures") !=
            std::string::npos);
    }
  }
}

TEST_CASE("several processes on CUDA train to the bits of one, and with the library's sum near") {
  if (!have_mpi()) {
    WARN("built without MPI");
    return;
  }
  const Workplace w;
  const int steps = long_tests() ? 6 : 3;
  const Curve one = trained(w, "cuda", "bf16", steps);
  for (const int processes : {2, 3, 4}) {
    const Curve several = trained(w, "cuda", "bf16", steps, processes);
    CHECK(several.state == one.state);
    CHECK(several.losses == one.losses);
  }
  CHECK(trained(w, "cuda", "bf16", steps, 2, {"train.shard_optimizer=false"}).state == one.state);
  const Curve exact = trained(w, "cuda", "fp32", 2);
  CHECK(trained(w, "cuda", "fp32", 2, 3).state == exact.state);
  const Curve library = trained(w, "cuda", "bf16", steps, 4, {"train.reduction=library"});
  check_near(library, one, 0x1p-9);
}

}  // namespace
}  // namespace bamtrain::testing
