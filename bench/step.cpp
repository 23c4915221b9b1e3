// Time and memory of whole training steps (forward, backward, clipping, optimizer) of a config's
// model on random tokens, with the peak matmul throughput measured in the same run.
//
//   build/bench/step --config configs/gpt2-124m.json --batch 4 --length 256 --precision fp32
//   build/bench/step --config configs/gpt2-124m.json --isa avx2    (as on one without AVX-512)
//
// Prints tokens per second, MFU (of that measured peak) from 6 N D (N: the parameters of matrices,
// including a head but not embeddings that are only looked up), MFU with the 6 products of
// attention, and the largest resident set. With --profile, prints where the time goes. The step is
// the program's own, Trainer::step, of one microbatch.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "core/wait_policy.h"
#include "isa.h"
#include "median.h"
#include "options.h"
#include "profile.h"
#include "rates.h"
#include "run/train.h"
#include "workloads.h"

using namespace bamtrain;
using namespace bamtrain::bench;

int main(int argc, char** argv) try {
  limit_spinning(argv);
  BenchOptions options("time and memory of a training step");
  ModelOptions model;
  int64_t B = 4, T = 256, steps = 5;
  bool profile = false;
  model.add_to(options);
  options.add("--batch", &B, "sequences");
  options.add("--length", &T, "tokens per sequence");
  options.add("--steps", &steps, "measured steps, after one warm-up step");
  options.add_flag("--profile", &profile,
                   "time per operation, beside the rate of products or of a copy");
  options.read(argc, argv);

  const RunConfig c = model.read();
  if (c.device != DeviceKind::automatic && c.device != DeviceKind::cpu) {
    throw Error(ExitCode::usage, "device", "auto or cpu", "another",
                "bench/cuda measures a GPU; remove the key");
  }
  if (c.train.precision == Precision::tf32) {
    throw Error(ExitCode::usage, "train.precision", "fp32 or bf16 on a CPU", "tf32",
                "choose one with --precision");
  }
  const Dtype A = activation_dtype(c.train.precision);
  std::unique_ptr<Backend> backend = make_backend_for(model.isa(), A);
  ProfiledBackend* profiled = nullptr;
  if (profile) {
    auto timed = std::make_unique<ProfiledBackend>(std::move(backend));
    profiled = timed.get();
    backend = std::move(timed);
  }
  StepWorkload workload(c, *backend, B, T, 1);
  const double rate_before = peak_matmul(A);
  std::vector<double> times;
  double loss = 0;
  for (int64_t step = 0; step <= steps; ++step) {
    if (profiled && step == 1) profiled->reset();
    const double start = now();
    loss = workload.step();
    if (step > 0) times.push_back(now() - start);
  }
  const double rate = std::max(rate_before, peak_matmul(A));
  const auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
  const double middle = median(times);
  const auto N = static_cast<double>(B * T);
  const double flops = flops_per_token(c.model, workload.parameters(), T);
  const double attention = attention_flops_per_token(c.model, T);
  const double matrices = flops - attention;
  fmt::print("{} {} {} B {} T {} threads {} loss {:.4f}\n", c.name, backend->name(), name_of(A), B,
             T, max_threads(), loss);
  fmt::print("step         {:.1f} ms median, {:.1f} to {:.1f} over {}\n", 1e3 * middle,
             1e3 * *fastest, 1e3 * *slowest, times.size());
  fmt::print("tokens/s     {:.1f}\n", N / middle);
  fmt::print("parameters   {}\n", workload.parameters().elements());
  fmt::print("flops/token  {:.0f} in matrices (6 N), {:.0f} in attention (6 products)\n", matrices,
             attention);
  fmt::print("peak matmul  {:.1f} GFLOP/s ({}, same run)\n", rate * 1e-9, matrix_library());
  fmt::print("share        {:.1f} % (6 N D), {:.1f} % with attention\n",
             100 * matrices * N / middle / rate, 100 * flops * N / middle / rate);
  fmt::print("memory       {:.1f} MiB planned, {:.1f} MiB largest resident set\n",
             static_cast<double>(workload.planned_bytes()) / (1 << 20),
             static_cast<double>(peak_bytes()) / (1 << 20));
  if (profiled) {
    const double seconds = std::accumulate(times.begin(), times.end(), 0.0);
    const double fp32 = A == Dtype::f32 ? rate : peak_matmul(Dtype::f32);
    fmt::print("\n{}", profiled->table(seconds, steps, {rate, fp32, copy_bandwidth()}));
  }
  return 0;
} catch (const std::exception& e) {
  return bamtrain::bench::report("step", e);
}
