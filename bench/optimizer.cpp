// The optimizer update alone, compared with a copy measured before each run. The update reads
// weights, two moments and gradients and writes all but the gradients: 28 bytes per parameter. A
// copy is a reference, not a limit: half of its bytes are read, but four sevenths of the update's.
//
//   build/bench/optimizer --parameters 124000000

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/parallel.h"
#include "core/wait_policy.h"
#include "median.h"
#include "ops/cpu/cpu.h"
#include "ops/optimizer_math.h"
#include "options.h"
#include "rates.h"

using namespace bamtrain;
using namespace bamtrain::bench;

int main(int argc, char** argv) try {
  limit_spinning(argv);
  BenchOptions options("time of the optimizer's update");
  int64_t n = 124000000, runs = 5;
  options.add("--parameters", &n, "elements");
  options.add("--runs", &runs, "measured runs, after one warm-up");
  options.read(argc, argv);

  const auto backend = make_cpu_backend();
  Arena arena;
  Tensor weights, m, v, gradients;
  arena.add("weights", &weights, Dtype::f32, {n});
  arena.add("m", &m, Dtype::f32, {n});
  arena.add("v", &v, Dtype::f32, {n});
  arena.add("gradients", &gradients, Dtype::f32, {n});
  arena.commit();
  std::fill_n(weights.ptr<float>(), n, 0.02f);
  std::fill_n(gradients.ptr<float>(), n, 1e-3f);

  constexpr std::array kKinds{OptimizerKind::adamw, OptimizerKind::radam};
  std::array<std::vector<double>, kKinds.size()> times, shares;
  std::vector<double> copies;
  Copy copy;
  const double bytes = 28.0 * static_cast<double>(n);
  for (int64_t run = 0; run <= runs; ++run) {
    for (size_t k = 0; k < kKinds.size(); ++k) {
      const double bandwidth = copy.bandwidth(), start = now();
      const OptimizerStep step = {kKinds[k], 100 + run, 1e-4, 0.1, {0.9, 0.95, 1e-8}};
      std::array<double, kOptimizerFactors> factors;
      write_factors(optimizer_factors(step), factors.data());
      backend->optimizer_step(weights, m, v, {}, gradients, {},
                              Tensor(factors.data(), Dtype::f64, {kOptimizerFactors}), step.rule);
      const double seconds = now() - start;
      if (run == 0) continue;
      times[k].push_back(seconds);
      shares[k].push_back(bytes / seconds / bandwidth);
      copies.push_back(bandwidth);
    }
  }
  for (size_t k = 0; k < kKinds.size(); ++k) {
    const double middle = median(times[k]);
    fmt::print(
        "{:<6} {} parameters, {} threads: {:.2f} ms, {:.1f} GB/s, {:.1f} % of a copy's {:.1f}\n",
        kKinds[k] == OptimizerKind::adamw ? "adamw" : "radam", n, max_threads(), 1e3 * middle,
        bytes / middle * 1e-9, 100 * median(shares[k]), median(copies) * 1e-9);
  }
  return 0;
} catch (const std::exception& e) {
  return bamtrain::bench::report("optimizer", e);
}
