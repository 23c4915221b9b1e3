// Time and memory of whole training steps (forward, backward, clipping, optimizer) of a config's
// model on random tokens, beside the rate of matrix products measured in the same run.
//
//   build/bench/step --config configs/gpt2-124m.json --batch 4 --length 256 --precision fp32
//
// Prints tokens per second, 6 N D as a share of the matrix rate (N: all parameters but embeddings
// that are only looked up), and the largest resident set.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "config/reader.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/matmul.h"
#include "train/optimizer.h"
#include "train/train.h"

using namespace bamtrain;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The best FLOP/s of the library's own threaded product over shapes of a training step.
double library_rate(Dtype dtype) {
  double best = 0;
  constexpr int64_t kShapes[][3] = {{1024, 3072, 768}, {1024, 768, 3072}, {2048, 2048, 2048}};
  for (const auto& [M, N, K] : kShapes) {
    Arena arena;
    Tensor a, b, c;
    arena.add("a", &a, dtype, {M, K});
    arena.add("b", &b, dtype, {N, K});
    arena.add("c", &c, dtype, {M, N});
    arena.commit();
    for (int run = 0; run < 6; ++run) {
      const double start = now();
      matmul_unguarded(matrix(c), matrix(a), matrix_transposed(b));
      const double elapsed = now() - start;
      const auto flops = 2.0 * static_cast<double>(M) * static_cast<double>(N * K);
      if (run > 0) best = std::max(best, flops / elapsed);
    }
  }
  return best;
}

int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"time and memory of a training step"};
  std::string config_path, precision = "fp32";
  std::vector<std::string> overrides;
  int64_t B = 4, T = 256, steps = 5;
  app.add_option("--config", config_path, "run configuration")->required();
  app.add_option("--set", overrides, "override a config key");
  app.add_option("--batch", B, "sequences");
  app.add_option("--length", T, "tokens per sequence");
  app.add_option("--steps", steps, "measured steps, after one warm-up step");
  app.add_option("--precision", precision)->check(CLI::IsMember({"fp32", "bf16"}));
  CLI11_PARSE(app, argc, argv);

  const RunConfig c = read_run_config(config_path, overrides);
  const Dtype A = precision == "bf16" ? Dtype::bf16 : Dtype::f32;
  const auto backend = make_cpu_backend();
  Model model(c.model, std::max(T, c.data.sequence_length), *backend, A);
  Optimizer optimizer(c.optimizer, model.parameters(), *backend);
  Arena arena;
  Tensor masters, gradients;
  arena.add("weights.masters", &masters, Dtype::f32, {model.parameters().elements()});
  arena.add("gradients.lanes", &gradients, Dtype::f32, {model.parameters().elements()});
  optimizer.plan(arena);
  model.plan(arena, B, T, ModelUse::training);
  arena.commit();
  for (const Parameter& p : model.parameters().all()) {
    initialize(p, c.model, c.data.sequence_length, 1, masters.slice(0, p.offset, p.size));
  }
  model.set_masters(masters);

  const Rng rng(1, "bench");
  std::vector<int32_t> tokens(static_cast<size_t>(B * T + 1));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(rng.below(i, static_cast<uint64_t>(c.model.vocab)));
  }
  const double rate_before = library_rate(A);
  std::vector<double> times;
  double loss = 0;
  for (int64_t step = 0; step <= steps; ++step) {
    const double start = now();
    model.refresh();
    backend->zero(gradients);
    loss = model.forward_backward(tokens.data(), tokens.data() + 1, c.data.document_start,
                                  1 / static_cast<double>(B * T), gradients);
    const double norm = std::sqrt(backend->squared_norm(gradients));
    optimizer.step(step + 1, 1e-4, optimizer.clip_factor(norm), masters, gradients);
    if (step > 0) times.push_back(now() - start);
  }
  const double rate = std::max(rate_before, library_rate(A));
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const auto N = static_cast<double>(B * T);
  const double flops = flops_per_token(c.model, model.parameters(), T);
  const double matrices =
      flops - 6.0 * static_cast<double>(c.model.layers * c.model.width * (T + 1));
  fmt::print("{} {} B {} T {} threads {} loss {:.4f}\n", c.name, precision, B, T, max_threads(),
             loss / N);
  fmt::print("step         {:.1f} ms median, {:.1f} to {:.1f} over {}\n", 1e3 * median,
             1e3 * times.front(), 1e3 * times.back(), times.size());
  fmt::print("tokens/s     {:.1f}\n", N / median);
  fmt::print("matrix rate  {:.1f} GFLOP/s (library, same run)\n", rate * 1e-9);
  fmt::print("share        {:.1f} % (6 N D), {:.1f} % with attention\n",
             100 * matrices * N / median / rate, 100 * flops * N / median / rate);
  fmt::print("memory       {:.1f} MiB planned, {:.1f} MiB largest resident set\n",
             static_cast<double>(arena.total_bytes()) / (1 << 20),
             static_cast<double>(peak_bytes()) / (1 << 20));
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "step: {}\n", e.what());
  return 1;
}
