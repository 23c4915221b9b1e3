#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "rates.h"

namespace bamtrain::bench {

namespace {

double bytes_of(std::initializer_list<Tensor> tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += t ? t.bytes() : 0;
  return static_cast<double>(bytes);
}

/// The bytes of x's elements in another dtype.
double elements_in(const Tensor& x, Dtype dtype) {
  return static_cast<double>(x.size()) * static_cast<double>(size_of(dtype));
}

double product_flops(const Tensor& x, int64_t outputs) {
  return 2 * static_cast<double>(x.size()) * static_cast<double>(outputs);
}

/// Adds its own lifetime to a cost.
class Timed {
 public:
  Timed(OperationCost& cost, double flops, double bytes) : cost_(cost), start_(now()) {
    cost_.calls += 1;
    cost_.flops += flops;
    cost_.bytes += bytes;
  }
  ~Timed() { cost_.seconds += now() - start_; }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  OperationCost& cost_;
  double start_;
};

}  // namespace

double attention_flops(Backend& backend, const Attention& a) {
  std::vector<int32_t> first_key(static_cast<size_t>(a.first_key.size()));
  backend.download(first_key.data(), a.first_key);
  std::vector<int32_t> last_key(static_cast<size_t>(a.last_key.size()));
  if (a.last_key) backend.download(last_key.data(), a.last_key);
  const int64_t T = a.q.shape[1];
  int64_t pairs = 0;
  for (size_t n = 0; n < first_key.size(); ++n) {
    const int64_t last = a.causal() ? static_cast<int64_t>(n) % T : last_key[n];
    pairs += last - first_key[n] + 1;
  }
  return 2 * static_cast<double>(a.q.shape[2] * a.q.shape[3]) * static_cast<double>(pairs);
}

void ProfiledBackend::upload(Tensor dst, const void* src) {
  const Timed timed(costs_["upload"], 0, bytes_of({dst, dst}));
  inner_->upload(dst, src);
}
void ProfiledBackend::download(void* dst, Tensor src) {
  const Timed timed(costs_["download"], 0, bytes_of({src, src}));
  inner_->download(dst, src);
}
void ProfiledBackend::sum(Tensor total, Tensor x) {
  const Timed timed(costs_["sum"], 0, bytes_of({x}));
  inner_->sum(total, x);
}
void ProfiledBackend::run(const MechanismOperation& operation) {
  const auto [name, bytes] = std::visit(
      []<class Operation>(const Operation& of) {
        double all = 0;
        for_tensors(of, [&all](const char*, TensorUse, const Tensor& t) { all += bytes_of({t}); });
        return std::pair(Operation::kName, all);
      },
      operation);
  const Timed timed(costs_[name], 0, bytes);
  inner_->run(operation);
}
void ProfiledBackend::zero(Tensor x) {
  const Timed timed(costs_["zero"], 0, bytes_of({x}));
  inner_->zero(x);
}
void ProfiledBackend::add(Tensor dst, Tensor src) {
  const Timed timed(costs_["add"], 0, bytes_of({dst, dst, src}));
  inner_->add(dst, src);
}
void ProfiledBackend::copy(Tensor dst, Tensor src) {
  const Timed timed(costs_["copy"], 0, bytes_of({dst, src}));
  inner_->copy(dst, src);
}

void ProfiledBackend::convert(Tensor dst, Tensor src) {
  const Timed timed(costs_["convert"], 0, bytes_of({dst, src}));
  inner_->convert(dst, src);
}
void ProfiledBackend::squares(Tensor squares, Tensor x) {
  const Timed timed(costs_["squares"], 0, bytes_of({x}));
  inner_->squares(squares, x);
}
void ProfiledBackend::embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale,
                                        Tensor positions, Tensor position_table) {
  const double added = position_table ? elements_in(out, position_table.dtype) : 0;
  const Timed timed(costs_["embedding_forward"], 0,
                    bytes_of({out, tokens}) + elements_in(out, table.dtype) + added);
  inner_->embedding_forward(out, tokens, table, scale, positions, position_table);
}
void ProfiledBackend::embedding_backward(Tensor dtable, double scale, Tensor dposition_table,
                                         Tensor dout, Tensor tokens, Tensor positions) {
  // Each table is one pass over dout, whose rows are added to the table's rows.
  const auto pass = [&](const Tensor& into) {
    return into ? bytes_of({dout}) + 2 * elements_in(dout, into.dtype) : 0;
  };
  const Timed timed(costs_["embedding_backward"], 0, pass(dtable) + pass(dposition_table));
  inner_->embedding_backward(dtable, scale, dposition_table, dout, tokens, positions);
}
void ProfiledBackend::norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual,
                                   Tensor branch, Tensor weight, Tensor bias, NormKind kind,
                                   double eps) {
  const Timed timed(costs_["norm_forward"], 0, bytes_of({sum, y, residual, branch}));
  inner_->norm_forward(sum, y, stats, residual, branch, weight, bias, kind, eps);
}
void ProfiledBackend::norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy,
                                    Tensor sum, Tensor stats, Tensor weight, NormKind kind) {
  const Timed timed(costs_["norm_backward"], 0, bytes_of({dsum, dsum, dy, sum}));
  inner_->norm_backward(dsum, dweight, dbias, dy, sum, stats, weight, kind);
}
void ProfiledBackend::linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) {
  const Timed timed(costs_["linear_forward"], product_flops(x, y.shape[1]),
                    bytes_of({y, x, weight}));
  inner_->linear_forward(y, x, weight, bias);
}
void ProfiledBackend::linear_backward_input(Tensor dx, Tensor dy, Tensor weight) {
  const Timed timed(costs_["linear_backward_input"], product_flops(dx, dy.shape[1]),
                    bytes_of({dx, dy, weight}));
  inner_->linear_backward_input(dx, dy, weight);
}
void ProfiledBackend::linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) {
  const Timed timed(costs_["linear_backward_weight"], product_flops(x, dy.shape[1]),
                    bytes_of({dweight, dweight, dy, x}));
  inner_->linear_backward_weight(dweight, dbias, dy, x);
}
void ProfiledBackend::activation_forward(Tensor out, Tensor in, MlpKind kind) {
  const Timed timed(costs_["activation_forward"], 0, bytes_of({out, in}));
  inner_->activation_forward(out, in, kind);
}
void ProfiledBackend::activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) {
  const Timed timed(costs_["activation_backward"], 0, bytes_of({din, dout, in}));
  inner_->activation_backward(din, dout, in, kind);
}
void ProfiledBackend::rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) {
  const Timed timed(costs_["rotate"], 0, bytes_of({x, x}));
  inner_->rotate(x, positions, cosine, sine, inverse);
}
void ProfiledBackend::attention_forward(Tensor out, const AttentionSaved& saved,
                                        const Attention& a) {
  const Timed timed(costs_["attention_forward"], 2 * attention_flops(*inner_, a),
                    bytes_of({out, a.q, a.k, a.v}));
  inner_->attention_forward(out, saved, a);
}
void ProfiledBackend::attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                                         const AttentionSaved& saved, const Attention& a) {
  const Timed timed(costs_["attention_backward"], 5 * attention_flops(*inner_, a),
                    bytes_of({g.dq, g.dk, g.dv, dout, out, a.q, a.k, a.v}));
  inner_->attention_backward(g, dout, out, saved, a);
}
void ProfiledBackend::attention_entropy(Tensor entropy, const Attention& a) {
  const Timed timed(costs_["attention_entropy"], attention_flops(*inner_, a),
                    bytes_of({a.q, a.k, entropy}));
  inner_->attention_entropy(entropy, a);
}
void ProfiledBackend::attention_statistics(Tensor entropy, Tensor nonzero_keys,
                                           const AttentionSaved& saved, const Attention& a) {
  const Timed timed(costs_["attention_statistics"], attention_flops(*inner_, a),
                    bytes_of({a.q, a.k, entropy, nonzero_keys}));
  inner_->attention_statistics(entropy, nonzero_keys, saved, a);
}
void ProfiledBackend::cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                                    double scale) {
  const Timed timed(costs_["cross_entropy"], 0, bytes_of({dlogits, logits}));
  inner_->cross_entropy(losses, dlogits, logits, targets, scale);
}
void ProfiledBackend::argmax(Tensor places, Tensor x) {
  const Timed timed(costs_["argmax"], 0, bytes_of({places, x}));
  inner_->argmax(places, x);
}
void ProfiledBackend::clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) {
  const Timed timed(costs_["clip_factor"], 0, bytes_of({factor, squared_norm}));
  inner_->clip_factor(factor, squared_norm, clip, scale);
}
void ProfiledBackend::optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded,
                                     Tensor gradients, Tensor factor, Tensor factors,
                                     const OptimizerHyperparameters& rule) {
  const Timed timed(costs_["optimizer_step"], 0,
                    bytes_of({weights, weights, m, m, v, v, rounded, gradients}));
  inner_->optimizer_step(weights, m, v, rounded, gradients, factor, factors, rule);
}

std::string ProfiledBackend::table(double seconds, int64_t steps, const Limits& limits) const {
  std::vector<std::pair<std::string, OperationCost>> rows(costs_.begin(), costs_.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const auto per_step = 1e3 / static_cast<double>(steps);
  std::string out = fmt::format("{:<24} {:>8} {:>7} {:>10} {:>10}  {}\n", "operation", "ms/step",
                                "%", "GFLOP/s", "GB/s", "compared with");
  double accounted = 0;
  for (const auto& [name, cost] : rows) {
    accounted += cost.seconds;
    const double flops = cost.flops / cost.seconds, bytes = cost.bytes / cost.seconds;
    const bool attention = name.rfind("attention", 0) == 0;
    const double limit = attention ? limits.fp32 : limits.products;
    const std::string share =
        cost.flops > 0
            ? fmt::format("{:.0f} % of the {} rate", 100 * flops / limit,
                          attention ? "fp32" : "matrix")
            : fmt::format("{:.0f} % of the copy bandwidth", 100 * bytes / limits.bandwidth);
    out +=
        fmt::format("{:<24} {:>8.2f} {:>6.1f}% {:>10} {:>10.1f}  {}\n", name,
                    cost.seconds * per_step, 100 * cost.seconds / seconds,
                    cost.flops > 0 ? fmt::format("{:.1f}", flops * 1e-9) : "", bytes * 1e-9, share);
  }
  out += fmt::format("{:<24} {:>8.2f} {:>6.1f}%\n", "outside the backend",
                     (seconds - accounted) * per_step, 100 * (seconds - accounted) / seconds);
  out += "attention counts 7 products, 5 of them backward: the logits are recomputed there\n";
  return out;
}

}  // namespace bamtrain::bench
