#include "workloads.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/element.h"
#include "core/rng.h"
#include "ops/host_copy.h"

namespace bamtrain::bench {

namespace {
constexpr int64_t kPeriod = 1 << 20;  // a normal number takes 100 ns
}

void fill_normal(Backend& backend, const Tensor& t, const std::string& stream) {
  const Rng rng(1, stream);
  HostCopy host(backend, t, HostCopy::Contents::undefined);
  const int64_t period = std::min(t.size(), kPeriod);
  for (int64_t i = 0; i < period; ++i) {
    put(host.tensor(), i, rng.normal(static_cast<uint64_t>(i)));
  }
  const auto bytes = static_cast<int64_t>(size_of(t.dtype));
  char* const data = static_cast<char*>(host.tensor().data);
  for (int64_t at = period; at < t.size(); at += period) {
    const int64_t n = std::min(period, t.size() - at);
    std::memcpy(data + at * bytes, data, static_cast<size_t>(n * bytes));
  }
  host.upload();
}

AttentionWorkload::AttentionWorkload(Backend& backend, Dtype activations, const Shape& s)
    : backend_(backend) {
  const Dtype A = activations;
  arena_.add("q", &a_.q, A, {s.B, s.T, s.H, s.D});
  arena_.add("k", &a_.k, A, {s.B, s.T, s.K, s.D});
  arena_.add("v", &a_.v, A, {s.B, s.T, s.K, s.D});
  arena_.add("dq", &g_.dq, A, {s.B, s.T, s.H, s.D});
  arena_.add("dk", &g_.dk, A, {s.B, s.T, s.K, s.D});
  arena_.add("dv", &g_.dv, A, {s.B, s.T, s.K, s.D});
  arena_.add("out", &out_, A, {s.B, s.T, s.H, s.D});
  arena_.add("dout", &dout_, A, {s.B, s.T, s.H, s.D});
  arena_.add("lse", &lse_, Dtype::f32, {s.B, s.H, s.T});
  arena_.add("first_key", &a_.first_key, Dtype::i32, {s.B, s.T});
  if (s.table) {
    arena_.add("table", &a_.table, Dtype::f32, {s.H, s.T});
    arena_.add("dtable", &g_.dtable, Dtype::f32, {s.H, s.T});
  }
  if (s.scale) {
    arena_.add("scale", &a_.scale, Dtype::f32, {s.B, s.H, s.T});
    arena_.add("dscale", &g_.dscale, Dtype::f32, {s.B, s.H, s.T});
    a_.scale_bias = s.scale_bias;
  }
  backend.plan(arena_, {.B = s.B,
                        .T = s.T,
                        .H = s.H,
                        .K = s.K,
                        .D = s.D,
                        .C = s.H * s.D,
                        .backward = true,
                        .activations = A});
  arena_.commit(backend.memory());
  fill_normal(backend, a_.q, "q");
  fill_normal(backend, a_.k, "k");
  fill_normal(backend, a_.v, "v");
  fill_normal(backend, dout_, "dout");
  if (s.table) {
    HostCopy table(backend, a_.table, HostCopy::Contents::undefined);
    for (int64_t i = 0; i < s.H * s.T; ++i) {
      table.tensor().ptr<float>()[i] = -0.01f * static_cast<float>(i % s.T);
    }
    table.upload();
  }
  if (s.scale) {
    HostCopy scale(backend, a_.scale, HostCopy::Contents::undefined);
    std::fill_n(scale.tensor().ptr<float>(), a_.scale.size(), 1.1f);
    scale.upload();
  }
}

StepWorkload::StepWorkload(const RunConfig& config, Backend& backend, Dtype activations, int64_t B,
                           int64_t T)
    : config_(config),
      backend_(backend),
      model_(config.model, std::max(T, config.data.sequence_length), backend, activations),
      optimizer_(config.optimizer, model_.parameters(), backend) {
  arena_.add("weights.masters", &masters_, Dtype::f32, {parameters().elements()});
  arena_.add("gradients.lanes", &gradients_, Dtype::f32, {parameters().elements()});
  arena_.add("batch.loss", &loss_, Dtype::f64, {1});
  arena_.add("batch.squares", &squares_, Dtype::f64, {1});
  optimizer_.plan(arena_);
  model_.plan(arena_, B, T, ModelUse::training);
  arena_.commit(backend.memory());
  for (const Parameter& p : parameters().all()) {
    HostCopy part(backend, masters_.slice(0, p.offset, p.size), HostCopy::Contents::undefined);
    initialize(p, config.model, config.data.sequence_length, 1, part.tensor());
    part.upload();
  }
  model_.set_masters(masters_);
  const Rng rng(1, "bench");
  for (int64_t i = 0; i <= B * T; ++i) {
    tokens_.push_back(static_cast<int32_t>(
        rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(config.model.vocab))));
  }
}

double StepWorkload::step(int64_t micro_batches) {
  const double N = static_cast<double>(tokens_.size() - 1) * static_cast<double>(micro_batches);
  double loss = 0, squares = 0;
  steps_ == 0 ? model_.refresh() : model_.refresh_mechanisms();
  backend_.zero(gradients_);
  backend_.zero(loss_);
  for (int64_t m = 0; m < micro_batches; ++m) {
    model_.forward_backward(tokens_.data(), tokens_.data() + 1, config_.data.document_start, 1 / N,
                            gradients_, loss_);
  }
  backend_.squared_norm(squares_, gradients_);
  backend_.download(&loss, loss_);
  backend_.download(&squares, squares_);
  const double norm = std::sqrt(squares);
  optimizer_.step(++steps_, 1e-4, optimizer_.clip_factor(norm), masters_, model_.rounded_weights(),
                  gradients_);
  return loss / N;
}

}  // namespace bamtrain::bench
