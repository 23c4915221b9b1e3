#include "record/data_wait.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "catch.h"
#include "dist/backends.h"
#include "ops/cpu/cpu.h"
#include "train/trainer.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// How many of the program's next pread(2) calls are slow, and how slow.
std::atomic<int> g_slow_reads = 0;
constexpr auto kDelay = std::chrono::milliseconds(200);

std::vector<StepResult> waits(const std::vector<double>& seconds) {
  std::vector<StepResult> out(seconds.size());
  for (size_t i = 0; i < seconds.size(); ++i) out[i].data_wait = seconds[i];
  return out;
}

}  // namespace

/// Replaces the C library's function: a disk as slow as a test needs.
extern "C" ssize_t pread64(int descriptor, void* out, size_t bytes, off64_t offset) {
  if (g_slow_reads > 0 && g_slow_reads-- > 0) std::this_thread::sleep_for(kDelay);
  return ::syscall(SYS_pread64, descriptor, out, bytes, offset);
}

TEST_CASE("steps on a slow disk say how long they waited, and train on the same tokens") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  config.train.steps = 4;
  struct Run {
    std::vector<StepResult> steps;
    std::vector<float> master_weights;
  };
  const auto train = [&](int slow_reads) {
    const auto backend = make_cpu_backend();
    const auto alone = make_single_communicator();
    Trainer trainer(config, *backend, 0, 1);
    trainer.commit();
    trainer.initialize();
    g_slow_reads = slow_reads;
    Run run;
    for (int64_t step = 0; step < config.train.steps; ++step) {
      trainer.start_step(step, *alone);
      if (step == 1) continue;  // two steps are read at once
      for (const StepResult& r : trainer.finish_steps(*alone)) run.steps.push_back(r);
    }
    g_slow_reads = 0;
    const Tensor& m = trainer.state().place(StateTensor::master_weights);
    run.master_weights.assign(m.ptr<float>(), m.ptr<float>() + m.size());
    return run;
  };
  const Run fast = train(0), slow = train(4);  // two windows are one microbatch
  REQUIRE(fast.steps.size() == 4);
  REQUIRE(slow.steps.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(slow.steps[i].loss == fast.steps[i].loss);
    CHECK(fast.steps[i].data_wait >= 0);
    CHECK(slow.steps[i].data_wait < 60);
  }
  CHECK(slow.master_weights == fast.master_weights);
  // The first microbatch waits for two delays, part of which may pass before the program asks for
  // it.
  CHECK(slow.steps[0].data_wait > 0.05);
}

TEST_CASE("a line has the mean wait of the steps since the line before") {
  DataWait wait;
  CHECK(wait.take_mean() == 0);
  wait.steps(waits({0.001, 0.003}));
  wait.steps(waits({0.008}));
  CHECK(wait.take_mean() == Approx(4));
  CHECK(wait.take_mean() == 0);
  wait.steps(waits({0.5}));
  CHECK(wait.take_mean() == Approx(500));
}

TEST_CASE("waits are worth a word above a twentieth of the time, over ten seconds, once a while") {
  DataWait wait;
  // Too soon to report, although all of the first seconds were waits.
  wait.steps(waits({9}));
  CHECK_FALSE(wait.take_warning(9).has_value());
  const auto first = wait.take_warning(12);
  REQUIRE(first.has_value());
  CHECK(first->find("of the last 12 s waited 75 % of the time") != std::string::npos);
  // Reported waits are not counted again, and small ones are not reported.
  wait.steps(waits({0.49}));
  CHECK_FALSE(wait.take_warning(22).has_value());
  // A large wait, but soon after the first report.
  wait.steps(waits({300}));
  CHECK_FALSE(wait.take_warning(600).has_value());
  wait.steps(waits({6}));
  const auto second = wait.take_warning(700);
  REQUIRE(second.has_value());
  CHECK(second->find("of the last 100 s waited 6 % of the time") != std::string::npos);
  CHECK_FALSE(wait.take_warning(2000).has_value());
}
