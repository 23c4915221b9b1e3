// The CUDA backend on a GPU: attention alone in every form, and whole training steps. Prints one
// line of JSON per measurement, with the rates of a large bf16 product and of a copy from the same
// run. scripts/gpu_peer.py prints the same lines for PyTorch.
//
//   build/bench/cuda attention --length 512 --length 16384 --head-dim 64 --head-dim 48
//   build/bench/cuda attention --normalizer softmax --normalizer entmax-1.5 --content 4
//   build/bench/cuda step --config configs/bam-120m.json --batch 64 --length 512

#include "ops/cuda/cuda.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/reader.h"
#include "median.h"
#include "options.h"
#include "profile.h"
#include "rates.h"
#include "run/train.h"
#include "workloads.h"

using namespace bamtrain;
using namespace bamtrain::bench;

namespace {

/// The median seconds of one call of `work`, over `runs` timings; each timing makes enough calls to
/// take 20 ms or more.
template <class F>
double time_of(Backend& backend, int64_t runs, F&& work) {
  const auto timed = [&](int64_t calls) {
    backend.synchronize();
    const double start = now();
    for (int64_t c = 0; c < calls; ++c) work();
    backend.synchronize();
    return (now() - start) / static_cast<double>(calls);
  };
  timed(2);  // loads code and chooses algorithms
  const auto calls = static_cast<int64_t>(std::clamp(0.02 / timed(3), 1.0, 1000.0));
  std::vector<double> times;
  for (int64_t r = 0; r < runs; ++r) times.push_back(timed(calls));
  return median(times);
}

/// FLOP/s of a bf16 product of `size` cubed, and bytes/s of adding two fp32 arrays of `elements`.
nlohmann::ordered_json limits(Backend& backend, int64_t size, int64_t elements) {
  Arena arena;
  Tensor x, w, y, a, b;
  arena.add("x", &x, Dtype::bf16, {size, size});
  arena.add("w", &w, Dtype::bf16, {size, size});
  arena.add("y", &y, Dtype::bf16, {size, size});
  arena.add("a", &a, Dtype::f32, {elements});
  arena.add("b", &b, Dtype::f32, {elements});
  backend.plan(arena, {.B = 1, .T = 64, .H = 1, .K = 1, .D = 64, .C = 64, .backward = true});
  arena.commit(backend.memory());
  fill_normal(backend, x, "x");
  fill_normal(backend, w, "w");
  const double product = time_of(backend, 5, [&] { backend.linear_forward(y, x, w, {}); });
  const double add = time_of(backend, 5, [&] { backend.add(a, b); });
  const auto n = static_cast<double>(size);
  return {{"bf16_flops", 2 * n * n * n / product},
          {"bytes_per_second", 12.0 * static_cast<double>(elements) / add}};
}

void measure_attention(Backend& backend, int64_t tokens, int64_t T, int64_t H, int64_t D,
                       const std::string& form, const std::string& normalizer, double content) {
  const int64_t B = std::max<int64_t>(1, tokens / T);
  const bool scale = form == "table+scale";
  AttentionWorkload workload(backend, Dtype::bf16,
                             {.bias = form == "none" ? BiasForm::none : BiasForm::table,
                              .scale = scale,
                              .scale_bias = scale,
                              .normalizer = normalizer_forms().at(normalizer),
                              .general_path = normalizer == "general"},
                             {B, T, H, H, D}, content);
  const double forward = time_of(backend, 7, [&] { workload.forward(); });
  const double backward = time_of(backend, 7, [&] { workload.backward(); });
  const double flops = attention_flops(backend, workload.arguments());
  nlohmann::ordered_json line = {{"what", "attention"},
                                 {"program", backend.name()},
                                 {"form", form},
                                 {"normalizer", normalizer},
                                 {"live", workload.live_share()},
                                 {"B", B},
                                 {"T", T},
                                 {"H", H},
                                 {"D", D},
                                 {"forward_ms", 1e3 * forward},
                                 {"backward_ms", 1e3 * backward},
                                 {"forward_flops", 2 * flops / forward},
                                 {"both_flops", 7 * flops / (forward + backward)}};
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void measure_step(Backend& backend, const RunConfig& c, int64_t B, int64_t T,
                  int64_t micro_batches) {
  StepWorkload workload(c, backend, B, T, micro_batches);
  double loss = 0;
  const double N = static_cast<double>(B * T * micro_batches);
  const double seconds = time_of(backend, 5, [&] { loss = workload.step(); });
  const double flops = flops_per_token(c.model, workload.parameters(), T) * N / seconds;
  nlohmann::ordered_json line = {{"what", "step"},
                                 {"program", backend.name()},
                                 {"config", c.name},
                                 {"B", B},
                                 {"T", T},
                                 {"micro_batches", micro_batches},
                                 {"loss", loss},
                                 {"step_ms", 1e3 * seconds},
                                 {"tokens_per_second", N / seconds},
                                 {"flops", flops},
                                 {"memory_bytes", workload.planned_bytes()}};
  fmt::print("{}\n", line.dump());
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"the CUDA backend on a GPU"};
  app.require_subcommand(1);
  std::vector<int64_t> lengths = {512, 1024, 2048, 4096, 8192, 16384}, dims = {64, 48};
  std::vector<std::string> forms = {"none", "table", "table+scale"}, normalizers = {"softmax"};
  std::vector<std::string> overrides;
  double content = 1;
  std::string config;
  int64_t tokens = 32768, heads = 12, B = 64, T = 512, micro_batches = 4, size = 8192,
          elements = int64_t{1} << 28;
  app.add_option("--product", size, "of the product whose rate is a limit: rows, columns, terms")
      ->check(CLI::PositiveNumber);
  app.add_option("--array", elements, "of the sum whose rate is a limit: elements")
      ->check(CLI::PositiveNumber);
  CLI::App* attention = app.add_subcommand("attention", "forward and backward, bf16, causal");
  attention->add_option("--length", lengths, "tokens per sequence (repeatable)");
  attention->add_option("--head-dim", dims, "head dimension (repeatable)");
  attention->add_option("--form", forms, "none, table, table+scale (repeatable)")
      ->check(CLI::IsMember({"none", "table", "table+scale"}));
  attention->add_option("--normalizer", normalizers, "general: softmax by the general path")
      ->check(CLI::IsMember(normalizer_forms()));
  attention->add_option("--content", content, "standard deviation of the logits without a bias");
  attention->add_option("--tokens", tokens, "tokens per batch");
  attention->add_option("--heads", heads, "heads");
  CLI::App* step = app.add_subcommand("step", "whole training steps, bf16");
  step->add_option("--config", config, "run configuration")->required();
  step->add_option("--set", overrides, "override a config key");
  step->add_option("--batch", B, "sequences of a micro-batch");
  step->add_option("--length", T, "tokens per sequence");
  step->add_option("--micro-batches", micro_batches, "of a step")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const std::unique_ptr<Backend> backend = make_cuda_backend(0);
  nlohmann::ordered_json machine = limits(*backend, size, elements);
  machine["what"] = "limits";
  machine["program"] = backend->name();
  fmt::print("{}\n", machine.dump());
  if (*step) {
    overrides.push_back("train.precision=bf16");
    measure_step(*backend, read_run_config(config, overrides), B, T, micro_batches);
    return 0;
  }
  for (int64_t D : dims) {
    for (const std::string& form : forms) {
      for (const std::string& normalizer : normalizers) {
        for (int64_t length : lengths) {
          measure_attention(*backend, tokens, length, heads, D, form, normalizer, content);
        }
      }
    }
  }
  return 0;
} catch (const std::exception& e) {
  return bamtrain::bench::report("cuda", e);
}
