// Incremental decoding: time of the chunked prefill of a long text, and of decode steps.
//
//   build/bench/generation --config configs/bam-120m.json --length 16384 --precision bf16
//   build/bench/generation --config configs/bench-small.json --length 4096 --texts 16
//
// Prints tokens per second of both. Prefill is compared with the peak matmul throughput: two
// operations per matrix parameter, the head's excluded, and two products per visible pair of query
// and key. A decode step is compared with the rate of a copy: each byte of the weights and of the
// keys and values that it sees is read once. With --profile, prints where both times go.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "core/parallel.h"
#include "core/wait_policy.h"
#include "isa.h"
#include "median.h"
#include "model/incremental_decoder.h"
#include "options.h"
#include "profile.h"
#include "rates.h"
#include "run/train.h"

using namespace bamtrain;
using namespace bamtrain::bench;

namespace {

/// A model with initial values and texts of random tokens.
class Texts {
 public:
  Texts(const RunConfig& c, Backend& backend, Dtype A, int64_t B, int64_t longest)
      : model_(c.model, c.data.sequence_length, backend, A), B_(B) {
    const Dtype P = backend.parameter_dtype();
    arena_.add("masters", &master_weights_, P, {model_.parameters().elements()});
    arena_.add("logits", &logits_, P, {B, c.model.outputs()});
    model_.plan(arena_, B, longest, ModelUse::generation);
    arena_.commit(backend.memory());
    for (const Parameter& p : model_.parameters().all()) {
      initialize(p, c.model, c.data.sequence_length, c.seed,
                 master_weights_.slice(0, p.offset, p.size));
    }
    model_.set_master_weights(master_weights_);
    model_.refresh();
    tokens_.resize(static_cast<size_t>(B * kMaxPrefillChunk));
    for (size_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(c.model.vocab));
    }
  }

  void begin() { model_.begin_decoding(std::vector<int64_t>(static_cast<size_t>(B_))); }
  /// Appends n tokens and returns what follows them.
  void append(int64_t n) {
    while (n > 0) {
      const int64_t piece = std::min(n, kMaxPrefillChunk);
      n -= piece;
      model_.append(tokens_.data(), piece, {}, n == 0 ? logits_ : Tensor());
    }
  }
  const ParameterLayout& parameters() const { return model_.parameters(); }
  int64_t planned_bytes() const { return arena_.total_bytes(); }

 private:
  Arena arena_;
  Model model_;
  Tensor master_weights_, logits_;
  int64_t B_;
  std::vector<int32_t> tokens_;
};

}  // namespace

int main(int argc, char** argv) try {
  limit_spinning(argv);
  BenchOptions options("time of incremental decoding");
  ModelOptions model;
  int64_t B = 1, T = 16384, tokens = 32;
  bool profile = false;
  model.add_to(options);
  options.add("--texts", &B, "texts decoded in one batch");
  options.add("--length", &T, "tokens that are read");
  options.add("--tokens", &tokens, "tokens that follow");
  options.add_flag("--profile", &profile, "time per operation");
  options.read(argc, argv);

  const RunConfig c = model.read();
  check_incremental_decoding(c.model);
  const Dtype A = activation_dtype(c.train.precision);
  std::unique_ptr<Backend> backend = make_backend_for(model.isa(), A);
  ProfiledBackend* profiled = nullptr;
  if (profile) {
    auto timed = std::make_unique<ProfiledBackend>(std::move(backend));
    profiled = timed.get();
    backend = std::move(timed);
  }
  Texts texts(c, *backend, A, B, T + tokens + 1);

  // A warm-up, for the setup of each shape's first product.
  texts.begin();
  texts.append(std::min(T, 2 * kMaxPrefillChunk));
  const double rate_before = peak_matmul(A);
  if (profiled) profiled->reset();
  texts.begin();
  double start = now();
  texts.append(T);
  const double reading = now() - start;
  const double rate = std::max(rate_before, peak_matmul(A));
  const double bandwidth_before = copy_bandwidth();
  const auto print_profile = [&](double seconds, int64_t steps) {
    if (!profiled) return;
    const double fp32 = A == Dtype::f32 ? rate : peak_matmul(Dtype::f32);
    fmt::print("{}\n", profiled->table(seconds, steps, {rate, fp32, bandwidth_before}));
  };
  print_profile(reading, 1);
  std::vector<double> times;
  for (int64_t n = 0; n <= tokens; ++n) {
    if (profiled && n == 1) profiled->reset();
    start = now();
    texts.append(1);
    if (n > 0) times.push_back(now() - start);
  }
  print_profile(std::accumulate(times.begin(), times.end(), 0.0), tokens);
  const double bandwidth = std::max(bandwidth_before, copy_bandwidth());

  // A third of training's cost, which includes the head.
  const double attention = attention_flops_per_token(c.model, T) / 3;
  const double head = 2 * static_cast<double>(c.model.width * c.model.outputs());
  const double matrices = flops_per_token(c.model, texts.parameters(), T) / 3 - attention - head;
  const auto N = static_cast<double>(B * T);
  const auto element = static_cast<double>(size_of(A));
  const double weights = element * (matrices + head) / 2;
  double keys = 0;
  for (int64_t l = 0; l < c.model.layers; ++l) {
    const int64_t seen =
        c.model.attention.most_keys(T, layer_window(c.model, l, c.data.sequence_length));
    keys += element * static_cast<double>(2 * B * seen * c.model.kv_heads * c.model.head_dim());
  }
  const double following = median(times);
  fmt::print("{} {} {} texts {} of {} tokens, threads {}\n", c.name, backend->name(), name_of(A), B,
             T, max_threads());
  fmt::print(
      "reading      {:.2f} s, {:.0f} tokens/s, {:.0f} flops/token in matrices, {:.0f} in "
      "attention\n",
      reading, N / reading, matrices, attention);
  fmt::print("             {:.1f} % of {:.1f} GFLOP/s ({}, same run)\n",
             100 * (matrices + attention) * N / reading / rate, rate * 1e-9, matrix_library());
  fmt::print(
      "following    {:.2f} ms median, {:.1f} tokens/s, {:.1f} MB of weights, {:.1f} MB of keys and "
      "values\n",
      1e3 * following, static_cast<double>(B) / following, weights * 1e-6, keys * 1e-6);
  fmt::print("             {:.1f} % of {:.1f} GB/s (a copy, same run)\n",
             100 * (weights + keys) / following / bandwidth, bandwidth * 1e-9);
  fmt::print("memory       {:.1f} MiB planned\n",
             static_cast<double>(texts.planned_bytes()) / (1 << 20));
  return 0;
} catch (const std::exception& e) {
  return bamtrain::bench::report("generation", e);
}
