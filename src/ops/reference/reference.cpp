#include "ops/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "core/clip_factor.h"
#include "core/ignore_index.h"
#include "ops/optimizer_math.h"
#include "ops/reference/attention.h"
#include "ops/reference/attention_row.h"
#include "ops/reference/autodiff.h"

namespace bamtrain {

namespace {

using namespace reference;

/// The activation without its gate.
Var activated(MlpKind kind, Var x) {
  switch (kind) {
    case MlpKind::swiglu:
      return x * sigmoid(x);
    case MlpKind::geglu:
    case MlpKind::gelu:
      return 0.5 * x * (1 + tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case MlpKind::gelu_erf:
      return 0.5 * x * erfc(-x * std::sqrt(0.5));
    case MlpKind::relu:
      return x.x <= 0 ? 0 : x;
  }
  return x;
}

/// Element n of an activation (N, F). Derivatives go to din.
Var activation(MlpKind kind, const Tensor& in, int64_t n, int64_t F, Tape* tape = nullptr,
               const Tensor& din = {}) {
  const int64_t at = n / F * in.shape[1] + n % F;
  const Var y = activated(kind, element(tape, in, at, din, at));
  return is_gated(kind) ? y * element(tape, in, at + F, din, at + F) : y;
}

class ReferenceBackend final : public ReferenceAttention {
 public:
  const char* name() const override { return "reference"; }
  Dtype parameter_dtype() const override { return Dtype::f64; }

  void zero(Tensor x) override { std::memset(x.data, 0, static_cast<size_t>(x.bytes())); }

  void add(Tensor dst, Tensor src) override {
    for (int64_t i = 0; i < dst.size(); ++i) f64(dst)[i] += f64(src)[i];
  }

  void convert(Tensor dst, Tensor src) override { std::copy_n(f64(src), src.size(), f64(dst)); }

  /// Sums in long double: 11 bits more than backends that sum in fp64.
  void sum(Tensor total, Tensor x) override {
    long double sum = *f64(total);
    for (int64_t i = 0; i < x.size(); ++i) sum += f64(x)[i];
    *f64(total) = static_cast<double>(sum);
  }

  void squares(Tensor squares, Tensor x) override {
    for (int64_t block = 0; block < squares.size(); ++block) {
      long double sum = 0;
      const int64_t end = std::min(x.size(), (block + 1) * kSquaresBlock);
      for (int64_t i = block * kSquaresBlock; i < end; ++i) {
        sum += static_cast<long double>(f64(x)[i]) * f64(x)[i];
      }
      f64(squares)[block] = static_cast<double>(sum);
    }
  }

  void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale, Tensor positions,
                         Tensor position_table) override {
    const int64_t N = out.shape[0], C = out.shape[1];
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t c = 0; c < C; ++c) {
        double x = scale * f64(table)[i32(tokens)[n] * C + c];
        if (position_table) x += f64(position_table)[i32(positions)[n] * C + c];
        f64(out)[n * C + c] = x;
      }
    }
  }

  void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                          Tensor tokens, Tensor positions) override {
    const int64_t N = dout.shape[0], C = dout.shape[1];
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t c = 0; c < C; ++c) {
        const double d = f64(dout)[n * C + c];
        f64(dtable)[i32(tokens)[n] * C + c] += scale * d;
        if (dposition_table) f64(dposition_table)[i32(positions)[n] * C + c] += d;
      }
    }
  }

  void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                    Tensor weight, Tensor bias, NormKind kind, double eps) override {
    const int64_t N = sum.shape[0], C = sum.shape[1];
    for (int64_t n = 0; n < N; ++n) {
      double* x = f64(sum) + n * C;
      double mean = 0, square = 0;
      for (int64_t c = 0; c < C; ++c) {
        x[c] = f64(residual)[n * C + c] + (branch ? f64(branch)[n * C + c] : 0);
        mean += x[c] / static_cast<double>(C);
      }
      if (kind == NormKind::rmsnorm) mean = 0;
      for (int64_t c = 0; c < C; ++c) square += (x[c] - mean) * (x[c] - mean);
      const double rstd = 1 / std::sqrt(square / static_cast<double>(C) + eps);
      for (int64_t c = 0; c < C; ++c) {
        f64(y)[n * C + c] = (x[c] - mean) * rstd * f64(weight)[c] + (bias ? f64(bias)[c] : 0);
      }
      f64(stats)[2 * n] = mean;
      f64(stats)[2 * n + 1] = rstd;
    }
  }

  void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum, Tensor stats,
                     Tensor weight, NormKind kind) override {
    const int64_t N = sum.shape[0], C = sum.shape[1];
    const double inverse_C = 1 / static_cast<double>(C);
    for (int64_t n = 0; n < N; ++n) {
      const double mean = f64(stats)[2 * n], rstd = f64(stats)[2 * n + 1];
      const double* x = f64(sum) + n * C;
      const double* g = f64(dy) + n * C;
      double mean_u = 0, mean_ux = 0;  // of u = dy w, and of u x_hat
      for (int64_t c = 0; c < C; ++c) {
        const double x_hat = (x[c] - mean) * rstd, u = g[c] * f64(weight)[c];
        mean_u += u * inverse_C;
        mean_ux += u * x_hat * inverse_C;
        f64(dweight)[c] += g[c] * x_hat;
        if (dbias) f64(dbias)[c] += g[c];
      }
      if (kind == NormKind::rmsnorm) mean_u = 0;
      for (int64_t c = 0; c < C; ++c) {
        const double x_hat = (x[c] - mean) * rstd, u = g[c] * f64(weight)[c];
        f64(dsum)[n * C + c] += rstd * (u - mean_u - x_hat * mean_ux);
      }
    }
  }

  void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) override {
    const int64_t N = x.shape[0], I = x.shape[1], O = weight.shape[0];
    for (int64_t n = 0; n < N; ++n) {
      const double* const row = f64(x) + n * I;
      for (int64_t o = 0; o < O; ++o) {
        const double sum = dot(row, f64(weight) + o * I, I);
        f64(y)[n * y.stride[0] + o] = bias ? f64(bias)[o] + sum : sum;
      }
    }
  }

  void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) override {
    const int64_t N = dx.shape[0], I = dx.shape[1], O = weight.shape[0];
    zero(dx);
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t o = 0; o < O; ++o) {
        const double d = f64(dy)[n * dy.stride[0] + o];
        for (int64_t i = 0; i < I; ++i) f64(dx)[n * I + i] += d * f64(weight)[o * I + i];
      }
    }
  }

  void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) override {
    const int64_t N = x.shape[0], I = x.shape[1], O = dweight.shape[0];
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t o = 0; o < O; ++o) {
        const double d = f64(dy)[n * dy.stride[0] + o];
        for (int64_t i = 0; i < I; ++i) f64(dweight)[o * I + i] += d * f64(x)[n * I + i];
        if (dbias) f64(dbias)[o] += d;
      }
    }
  }

  void activation_forward(Tensor out, Tensor in, MlpKind kind) override {
    for (int64_t n = 0; n < out.size(); ++n) {
      f64(out)[n] = activation(kind, in, n, out.shape[1]).x;
    }
  }

  void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) override {
    const int64_t F = dout.shape[1], I = in.shape[1];
    Tape tape;
    for (int64_t n = 0; n < dout.size(); ++n) {
      const Var y = activation(kind, in, n, F, &tape, din);
      for (int64_t f = n % F; f < I; f += F) f64(din)[n / F * I + f] = 0;  // may be in's memory
      tape.seed(y, f64(dout)[n]);
      tape.backward();
    }
  }

  void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) override {
    const int64_t B = x.shape[0], T = x.shape[1], H = x.shape[2], half = x.shape[3] / 2;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T; ++t) {
        const int64_t p = i32(positions)[b * T + t];
        for (int64_t h = 0; h < H; ++h) {
          double* row = f64(x) + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
          for (int64_t c = 0; c < half; ++c) {
            const double cs = f64(cosine)[p * half + c];
            const double sn = (inverse ? -1 : 1) * f64(sine)[p * half + c];
            const double first = row[c], second = row[c + half];
            row[c] = first * cs - second * sn;
            row[c + half] = second * cs + first * sn;
          }
        }
      }
    }
  }

  /// No formula and no adjoint is shared with the fast backends.
  void run(const MechanismOperation& operation) override {
    std::visit([](const auto& of) { of.in_reference(); }, operation);
  }

  void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                     double scale) override {
    const int64_t R = logits.shape[0], V = logits.shape[1];
    for (int64_t r = 0; r < R; ++r) {
      const double* z = f64(logits) + r * logits.stride[0];
      double* d = dlogits ? f64(dlogits) + r * dlogits.stride[0] : nullptr;
      const int64_t target = i32(targets)[r];
      if (target == kIgnoreIndex) {
        f64(losses)[r] = 0;
        if (d) std::fill_n(d, V, 0.0);
        continue;
      }
      const double m = *std::max_element(z, z + V);
      double sum = 0;
      for (int64_t v = 0; v < V; ++v) sum += std::exp(z[v] - m);
      f64(losses)[r] = m + std::log(sum) - z[target];
      if (!d) continue;
      for (int64_t v = 0; v < V; ++v) {
        d[v] = scale * (std::exp(z[v] - m) / sum - (v == target ? 1 : 0));
      }
    }
  }

  void argmax(Tensor places, Tensor x) override {
    const int64_t R = x.shape[0], V = x.shape[1];
    for (int64_t r = 0; r < R; ++r) {
      const double* row = f64(x) + r * x.stride[0];
      int64_t place = -1;
      for (int64_t v = 0; v < V; ++v) {
        if (!std::isnan(row[v]) && (place < 0 || row[v] > row[place])) place = v;
      }
      places.ptr<int32_t>()[r] = static_cast<int32_t>(std::max<int64_t>(place, 0));
    }
  }

  void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) override {
    *f64(factor) = next_clip_factor(*f64(factor), *f64(squared_norm), clip, *f64(scale));
  }
  void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                      Tensor factor, Tensor factors, const OptimizerHyperparameters& s) override {
    const double g_scale = factor ? *f64(factor) : 1;
    if (std::isnan(g_scale)) return;
    const OptimizerFactors f = read_factors(f64(factors));
    for (int64_t i = 0; i < weights.size(); ++i) {
      const double g = f64(gradients)[i] * g_scale;
      double& w = f64(weights)[i];
      double& first = f64(m)[i];
      double& second = f64(v)[i];
      w -= f.decay * w;
      first = s.beta1 * first + (1 - s.beta1) * g;
      second = s.beta2 * second + (1 - s.beta2) * g * g;
      w -= f.step_size * (f.adaptive ? first / (std::sqrt(second) * f.v_scale + s.eps) : first);
      w = limited(w, s.minimum, s.maximum);
    }
    if (rounded) convert(rounded, weights);
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace bamtrain
