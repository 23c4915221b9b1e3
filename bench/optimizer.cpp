// The optimizer's update alone, as a share of the copy bandwidth measured in the same run: it reads
// weights, two moments and gradients and writes all but the gradients, 28 bytes per parameter.
//
//   build/bench/optimizer --parameters 124000000

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "ops/cpu/cpu.h"
#include "rates.h"

using namespace bamtrain;
using namespace bamtrain::bench;

int main(int argc, char** argv) try {
  CLI::App app{"time of the optimizer's update"};
  int64_t n = 124000000, runs = 5;
  app.add_option("--parameters", n, "elements");
  app.add_option("--runs", runs, "measured runs, after one warm-up");
  CLI11_PARSE(app, argc, argv);

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

  const double limit = copy_bandwidth();
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::radam}) {
    std::vector<double> times;
    for (int64_t run = 0; run <= runs; ++run) {
      const double start = now();
      backend->optimizer_step(weights, m, v, gradients,
                              {kind, 100 + run, 1e-4, 0.9, 0.95, 1e-8, 0.1, 1});
      if (run > 0) times.push_back(now() - start);
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2], rate = 28.0 * static_cast<double>(n) / median;
    fmt::print(
        "{:<6} {} parameters, {} threads: {:.2f} ms, {:.1f} GB/s, {:.1f} % of a copy's {:.1f}\n",
        kind == OptimizerKind::adamw ? "adamw" : "radam", n, max_threads(), 1e3 * median,
        rate * 1e-9, 100 * rate / limit, limit * 1e-9);
  }
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "optimizer: {}\n", e.what());
  return 1;
}
