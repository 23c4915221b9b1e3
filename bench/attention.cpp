// Attention alone, forward and backward, as a share of the peak fp32 matmul throughput measured in
// the same run. Causal flops: products of 2 D per visible pair of query and key. 7 are computed: 2
// forward and 5 backward, one of which recomputes the logits. bench/step and the program's progress
// line count the other 6. Both shares are printed.
//
//   build/bench/attention --length 2048 --head-dim 64 --form table
//   build/bench/attention --isa avx2        (as on a processor without AVX-512)

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "core/wait_policy.h"
#include "isa.h"
#include "median.h"
#include "options.h"
#include "profile.h"
#include "rates.h"
#include "workloads.h"

using namespace bamtrain;
using namespace bamtrain::bench;

namespace {
/// The form with that name. Throws std::out_of_range.
BiasForm form_named(const std::string& name) {
  for (size_t n = 0; n < std::size(kBiasForms); ++n) {
    if (name == kBiasForms[n].name) return static_cast<BiasForm>(n);
  }
  throw std::out_of_range(name);
}

/// Each bias with and without a scale, and the scale alone.
std::vector<std::string> forms() {
  std::vector<std::string> all;
  for (const auto& [bias, unused] : kBiasForms) {
    all.emplace_back(bias);
    all.push_back(bias == std::string("none") ? "scale" : bias + std::string("+scale"));
  }
  return all;
}
}  // namespace

int main(int argc, char** argv) try {
  limit_spinning(argv);
  BenchOptions options("time of attention alone");
  int64_t B = 1, T = 2048, H = 12, K = 0, D = 64, runs = 5;
  std::string precision = "fp32", form = "none", isa = "newest", normalizer = "softmax";
  double content = 1;
  int64_t mix = 0;
  std::vector<std::string> normalizers;
  for (const auto& [name, unused] : normalizer_forms()) normalizers.push_back(name);
  options.add("--batch", &B, "sequences");
  options.add("--length", &T, "tokens per sequence");
  options.add("--heads", &H, "query heads");
  options.add("--kv-heads", &K, "key heads (default: as many)");
  options.add("--head-dim", &D, "head dimension");
  options.add("--runs", &runs, "measured runs, after one warm-up");
  options.add_choice("--precision", &precision, "of activations", {"fp32", "bf16"});
  add_isa(options, &isa);
  options.add_choice(
      "--form", &form,
      "a bias by distance (table), of running sums (difference, log_square), of a small network "
      "(fire) or of queries and keys (relative, contextual), a scale",
      forms());
  options.add_choice("--normalizer", &normalizer, "general: softmax by the path of all the others",
                     normalizers);
  options.add("--mix", &mix, "hidden width of a network over the heads, 0: none", 0);
  options.add("--content", &content, "standard deviation of the logits without a bias");
  options.read(argc, argv);
  if (K == 0) K = H;
  if (H % K != 0) {
    throw Error(ExitCode::usage, "--kv-heads", fmt::format("a divisor of the {} query heads", H),
                std::to_string(K), "change --heads or --kv-heads");
  }

  const Dtype A = precision == "bf16" ? Dtype::bf16 : Dtype::f32;
  const auto backend = make_backend_for(isa, A);
  const std::string bias = form.substr(0, form.find('+'));
  AttentionForm of = {.bias = form_named(bias == "scale" ? "none" : bias),
                      .scale = form.ends_with("scale"),
                      .normalizer = normalizer_forms().at(normalizer),
                      .general_path = normalizer == "general"};
  if (mix > 0) {
    of.mix = MixForm::concat_residual;
    of.mix_hidden = mix;
  }
  AttentionWorkload workload(*backend, A, of, {B, T, H, K, D}, content);

  const double rate_before = peak_matmul(Dtype::f32);
  std::vector<double> forward, backward;
  for (int64_t run = 0; run <= runs; ++run) {
    const double start = now();
    workload.forward();
    const double between = now();
    workload.backward();
    if (run == 0) continue;
    forward.push_back(between - start);
    backward.push_back(now() - between);
  }
  const double rate = std::max(rate_before, peak_matmul(Dtype::f32));
  const double flops = attention_flops(*backend, workload.arguments()), f = median(forward),
               b = median(backward);
  fmt::print("attention {} {} form {}{} normalizer {} B {} T {} H {} K {} D {} threads {}\n",
             backend->name(), precision, form, mix > 0 ? fmt::format(" mix {}", mix) : "",
             normalizer, B, T, H, K, D, max_threads());
  if (const double live = workload.live_share(); live < 1) {
    fmt::print("live         {:.1f} % of the visible tiles of {} x {}\n", 100 * live, kLiveRows,
               kLiveKeys);
  }
  fmt::print("fp32 rate    {:.1f} GFLOP/s ({}, same run)\n", rate * 1e-9, matrix_library());
  fmt::print("forward      {:.2f} ms, {:.1f} %\n", 1e3 * f, 200 * flops / f / rate);
  fmt::print(
      "backward     {:.2f} ms, {:.1f} % (5 products), {:.1f} % (4, without recomputing logits)\n",
      1e3 * b, 500 * flops / b / rate, 400 * flops / b / rate);
  fmt::print("both         {:.2f} ms, {:.1f} % (7 products), {:.1f} % (6, as bench/step counts)\n",
             1e3 * (f + b), 700 * flops / (f + b) / rate, 600 * flops / (f + b) / rate);
  return 0;
} catch (const std::exception& e) {
  return bamtrain::bench::report("attention", e);
}
