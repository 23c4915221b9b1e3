// The CPU backend for one instruction set (see isa.h).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/checked.h"
#include "core/clip_factor.h"
#include "core/ignore_index.h"
#include "core/parallel.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/matmul.h"
#include "ops/cpu/norm.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/skinny_gemm.h"
#include "ops/host_backend.h"
#include "ops/optimizer_math.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace rows;

namespace {

#define BAMTRAIN_QUOTED(x) #x
#define BAMTRAIN_QUOTED_VALUE(x) BAMTRAIN_QUOTED(x)
constexpr const char* kName = "cpu (" BAMTRAIN_QUOTED_VALUE(BAMTRAIN_ISA) ")";

constexpr int64_t kGrain = 1 << 14;          // elements per piece of a flat pass
constexpr float kGeluScale = 0.7978845608f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;
constexpr float kRootHalf = 0.7071067812f;       // sqrt(1 / 2)
constexpr float kNormalDensity = 0.3989422804f;  // 1 / sqrt(2 pi), at 0

Vec gelu(Vec x) {
  return 0.5f * x * (1.0f + simd::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}
Vec gelu_derivative(Vec x) {
  const Vec t = simd::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  return 0.5f * (1.0f + t) +
         0.5f * x * (1.0f - t * t) * kGeluScale * (1.0f + 3.0f * kGeluCubic * x * x);
}
Vec gelu_erf(Vec x) { return 0.5f * x * (1.0f + simd::erf(kRootHalf * x)); }
Vec gelu_erf_derivative(Vec x) {
  return 0.5f * (1.0f + simd::erf(kRootHalf * x)) + kNormalDensity * x * simd::exp(-0.5f * x * x);
}
Vec relu(Vec x) { return x < 0.0f ? Vec{} : x; }  // NaN stays NaN
Vec relu_derivative(Vec x) { return x > 0.0f ? simd::splat(1) : Vec{}; }
Vec silu(Vec x) { return x * simd::sigmoid(x); }
Vec silu_derivative(Vec x) {
  const Vec s = simd::sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

/// The activation without its gate.
Vec activated(MlpKind kind, Vec x) {
  switch (kind) {
    case MlpKind::swiglu:
      return silu(x);
    case MlpKind::geglu:
    case MlpKind::gelu:
      return gelu(x);
    case MlpKind::gelu_erf:
      return gelu_erf(x);
    case MlpKind::relu:
      return relu(x);
  }
  return x;
}
Vec activated_derivative(MlpKind kind, Vec x) {
  switch (kind) {
    case MlpKind::swiglu:
      return silu_derivative(x);
    case MlpKind::geglu:
    case MlpKind::gelu:
      return gelu_derivative(x);
    case MlpKind::gelu_erf:
      return gelu_erf_derivative(x);
    case MlpKind::relu:
      return relu_derivative(x);
  }
  return x;
}

class CpuBackend final : public HostBackend {
 public:
  explicit CpuBackend(const Bf16Gemm* bf16_gemm) { attention_.bf16_gemm = bf16_gemm; }
  const char* name() const override { return kName; }
  Dtype parameter_dtype() const override { return Dtype::f32; }

  void plan(Arena& arena, const WorkspaceShape& w) override {
    HostBackend::plan(arena, w);
    attention_.plan(arena, w);
    norm_.plan(arena, w);
  }

  // --- memory

  void zero(Tensor x) override {
    parallel_ranges(x.bytes(), 4 * kGrain, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(x.data) + begin, 0, static_cast<size_t>(end - begin));
    });
  }

  void add(Tensor dst, Tensor src) override {
    if (dst.dtype == Dtype::f64) {
      double* d = dst.ptr<double>();
      const double* s = src.ptr<double>();
      parallel_ranges(dst.size(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) d[i] += s[i];
      });
      return;
    }
    dispatch_activation(dst.dtype, [&]<class A>() {
      parallel_ranges(dst.size(), kGrain, [&](int64_t begin, int64_t end) {
        A* d = dst.ptr<A>() + begin;
        const A* s = src.ptr<A>() + begin;
        for_vectors(end - begin,
                    [&](int64_t i, auto n) { store(d + i, load(d + i, n) + load(s + i, n), n); });
      });
    });
  }

  void convert(Tensor dst, Tensor src) override {
    const float* s = src.ptr<float>();
    dispatch_activation(dst.dtype, [&]<class A>() {
      A* d = dst.ptr<A>();
      parallel_ranges(dst.size(), kGrain, [&](int64_t begin, int64_t end) {
        convert_range(d + begin, s + begin, end - begin);
      });
    });
  }

  void squares(Tensor squares, Tensor x) override {
    const int64_t n = x.size();
    const float* const p = x.ptr<float>();
    double* const sums = squares.ptr<double>();
    parallel_ranges(squares.size(), kGrain / kSquaresBlock, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * kSquaresBlock, end = std::min(n, begin + kSquaresBlock);
        double lanes[8] = {};
        int64_t i = begin;
        for (; i + 8 <= end; i += 8) {
          for (int l = 0; l < 8; ++l) {
            lanes[l] += static_cast<double>(p[i + l]) * static_cast<double>(p[i + l]);
          }
        }
        for (; i < end; ++i) {
          lanes[(i - begin) % 8] += static_cast<double>(p[i]) * static_cast<double>(p[i]);
        }
        sums[block] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                      ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
      }
    });
  }

  // --- embedding

  void embedding_forward(Tensor out, Tensor tokens, Tensor table, double scale, Tensor positions,
                         Tensor position_table) override {
    const int64_t N = out.shape[0], C = out.shape[1];
    const int32_t* token = tokens.ptr<int32_t>();
    const int32_t* position = position_table ? positions.ptr<int32_t>() : nullptr;
    const auto factor = static_cast<float>(scale);
    dispatch_activation(out.dtype, [&]<class A>() {
      parallel_ranges(N, 64, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const A* row = table.ptr<A>() + token[r] * C;
          const float* extra = position ? position_table.ptr<float>() + position[r] * C : nullptr;
          for_vectors(C, [&](int64_t c, auto n) {
            Vec x = factor * load(row + c, n);
            if (extra) x += load(extra + c, n);
            store(out.ptr<A>() + r * C + c, x, n);
          });
        }
      });
    });
  }

  /// Each thread owns a range of columns and adds the rows in order, so threads do not conflict.
  void embedding_backward(Tensor dtable, double scale, Tensor dposition_table, Tensor dout,
                          Tensor tokens, Tensor positions) override {
    const int64_t N = dout.shape[0], C = dout.shape[1];
    const auto scatter = [&]<class A>(float* table, float factor, const int32_t* index) {
      parallel_ranges(C, kColumns, [&](int64_t begin, int64_t end) {
        for (int64_t r = 0; r < N; ++r) {
          float* row = table + index[r] * C + begin;
          const A* d = dout.ptr<A>() + r * C + begin;
          for_vectors(end - begin, [&](int64_t c, auto n) {
            store(row + c, load(row + c, n) + factor * load(d + c, n), n);
          });
        }
      });
    };
    dispatch_activation(dout.dtype, [&]<class A>() {
      scatter.template operator()<A>(dtable.ptr<float>(), static_cast<float>(scale),
                                     tokens.ptr<int32_t>());
      if (dposition_table) {
        scatter.template operator()<A>(dposition_table.ptr<float>(), 1, positions.ptr<int32_t>());
      }
    });
  }

  // --- norm

  void norm_forward(Tensor sum, Tensor y, Tensor stats, Tensor residual, Tensor branch,
                    Tensor weight, Tensor bias, NormKind kind, double eps) override {
    cpu_norm_forward(sum, y, stats, residual, branch, weight, bias, kind, eps);
  }
  void norm_backward(Tensor dsum, Tensor dweight, Tensor dbias, Tensor dy, Tensor sum, Tensor stats,
                     Tensor weight, NormKind kind) override {
    cpu_norm_backward(dsum, dweight, dbias, dy, sum, stats, weight, kind, norm_);
  }

  // --- linear

  void linear_forward(Tensor y, Tensor x, Tensor weight, Tensor bias) override {
    if (x.shape[0] >= 1 && x.shape[0] <= kSkinnyGemmRows)
      return cpu_skinny_gemm(y, x, weight, bias);
    matmul_.run(matrix(y), matrix(x), matrix_transposed(weight), bias ? bias.ptr<float>() : nullptr,
                false);
  }
  void linear_backward_input(Tensor dx, Tensor dy, Tensor weight) override {
    matmul_.run(matrix(dx), matrix(dy), matrix(weight), nullptr, false);
  }
  void linear_backward_weight(Tensor dweight, Tensor dbias, Tensor dy, Tensor x) override {
    matmul_.run(matrix(dweight), matrix_transposed(dy), matrix(x), nullptr, true);
    if (!dbias) return;
    const int64_t N = dy.shape[0], O = dy.shape[1];
    dispatch_activation(dy.dtype, [&]<class A>() {
      parallel_ranges(O, kColumns, [&](int64_t begin, int64_t end) {
        for_vectors(end - begin, [&](int64_t c, auto n) {
          Vec total{};
          for (int64_t r = 0; r < N; ++r)
            total += load(dy.ptr<A>() + r * dy.stride[0] + begin + c, n);
          float* out = dbias.ptr<float>() + begin + c;
          store(out, load(out, n) + total, n);
        });
      });
    });
  }

  // --- mlp activation

  void activation_forward(Tensor out, Tensor in, MlpKind kind) override {
    const int64_t N = out.shape[0], F = out.shape[1], width = in.shape[1];
    dispatch_activation(out.dtype, [&]<class A>() {
      parallel_ranges(N, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const A* gate = in.ptr<A>() + r * width;
          const A* up = gate + F;
          A* y = out.ptr<A>() + r * F;
          for_vectors(F, [&](int64_t f, auto n) {
            const Vec act = activated(kind, load(gate + f, n));
            store(y + f, is_gated(kind) ? act * load(up + f, n) : act, n);
          });
        }
      });
    });
  }

  void activation_backward(Tensor din, Tensor dout, Tensor in, MlpKind kind) override {
    const int64_t N = dout.shape[0], F = dout.shape[1], width = in.shape[1];
    dispatch_activation(dout.dtype, [&]<class A>() {
      parallel_ranges(N, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const A* gate = in.ptr<A>() + r * width;
          A* dgate = din.ptr<A>() + r * width;
          const A* dy = dout.ptr<A>() + r * F;
          for_vectors(F, [&](int64_t f, auto n) {
            const Vec x = load(gate + f, n), d = load(dy + f, n);
            const Vec slope = activated_derivative(kind, x);
            if (!is_gated(kind)) return store(dgate + f, d * slope, n);
            const Vec up = load(gate + F + f, n);
            store(dgate + f, d * up * slope, n);
            store(dgate + F + f, d * activated(kind, x), n);
          });
        }
      });
    });
  }

  // --- rotation

  void rotate(Tensor x, Tensor positions, Tensor cosine, Tensor sine, bool inverse) override {
    const int64_t B = x.shape[0], T = x.shape[1], H = x.shape[2], half = x.shape[3] / 2;
    const float sign = inverse ? -1.0f : 1.0f;
    dispatch_activation(x.dtype, [&]<class A>() {
      parallel_ranges(B * T, 32, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t p = positions.ptr<int32_t>()[r];
          A* token = static_cast<A*>(x.data) + (r / T) * x.stride[0] + (r % T) * x.stride[1];
          for (int64_t h = 0; h < H; ++h) {
            A* low = token + h * x.stride[2];
            A* high = low + half;
            for_vectors(half, [&](int64_t c, auto n) {
              const Vec cs = load(cosine.ptr<float>() + p * half + c, n);
              const Vec sn = sign * load(sine.ptr<float>() + p * half + c, n);
              const Vec a = load(low + c, n), b = load(high + c, n);
              store(low + c, a * cs - b * sn, n);
              store(high + c, b * cs + a * sn, n);
            });
          }
        }
      });
    });
  }

  // --- attention

  void attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) override {
    require(attention_.general || a.mix || traits_of(a.form.normalizer.kind).fused,
            "a normalizer that was planned");
    cpu_attention_forward(out, saved, a, attention_);
  }
  void attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                          const AttentionSaved& saved, const Attention& a) override {
    require(a.past() == 0, "a backward pass over all rows");
    cpu_attention_backward(g, dout, out, saved, a, attention_);
  }
  void attention_entropy(Tensor entropy, const Attention& a) override {
    require(!a.scale, "logits without a scale");
    Attention by_softmax = a;
    by_softmax.form.normalizer = {};
    by_softmax.alphas = {};
    cpu_attention_entropy(entropy, by_softmax, attention_);
  }
  void attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                            const Attention& a) override {
    require(attention_.statistics && a.past() == 0, "statistics of all rows that were planned");
    cpu_attention_statistics(entropy, nonzero_keys, saved, a, attention_);
  }

  // --- loss

  void cross_entropy(Tensor losses, Tensor dlogits, Tensor logits, Tensor targets,
                     double scale) override {
    const int64_t R = logits.shape[0], V = logits.shape[1];
    const auto row = [&]<class A>(int64_t r) {
      const float* z = logits.ptr<float>() + r * logits.stride[0];
      const int64_t target = targets.ptr<int32_t>()[r];
      if (target == kIgnoreIndex) {
        losses.ptr<float>()[r] = 0;
        if (dlogits) std::fill_n(dlogits.ptr<A>() + r * dlogits.stride[0], V, A(0.0f));
        return;
      }
      const float picked = z[target];
      Vec highest = simd::splat(z[0]);
      for_vectors(V, [&](int64_t v, auto n) {
        const Vec x = load(z + v, n);
        highest = simd::max(
            highest, n < kWidth ? (simd::lanes() < static_cast<int32_t>(n) ? x : highest) : x);
      });
      const float m = simd::maximum(highest);
      // In segments, whose fp32 sums are added in fp64: one fp32 sum of 2^17 terms loses digits.
      double total = 0;
      for (int64_t begin = 0; begin < V; begin += kSegment) {
        Vec part{};
        for_vectors(std::min(kSegment, V - begin), [&](int64_t v, auto n) {
          Vec e = simd::exp(load(z + begin + v, n) - m);
          if (n < kWidth) e = (simd::lanes() < static_cast<int32_t>(n)) ? e : Vec{};
          part += e;
        });
        total += static_cast<double>(simd::sum(part));
      }
      losses.ptr<float>()[r] = static_cast<float>(static_cast<double>(m) + std::log(total) -
                                                  static_cast<double>(picked));
      if (!dlogits) return;
      A* d = dlogits.ptr<A>() + r * dlogits.stride[0];
      const float factor = static_cast<float>(scale / total);
      for_vectors(
          V, [&](int64_t v, auto n) { store(d + v, simd::exp(load(z + v, n) - m) * factor, n); });
      const double p = std::exp(static_cast<double>(picked) - static_cast<double>(m)) / total;
      d[target] = A(static_cast<float>(scale * (p - 1)));
    };
    dispatch_activation(dlogits ? dlogits.dtype : Dtype::f32, [&]<class A>() {
      parallel_ranges(R, 4, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) row.template operator()<A>(r);
      });
    });
  }

  // --- optimizer

  void argmax(Tensor places, Tensor x) override {
    const int64_t R = x.shape[0], V = x.shape[1];
    parallel_ranges(R, 4, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* row = x.ptr<float>() + r * x.stride[0];
        int64_t place = -1;
        for (int64_t v = 0; v < V; ++v) {
          if (!std::isnan(row[v]) && (place < 0 || row[v] > row[place])) place = v;
        }
        places.ptr<int32_t>()[r] = static_cast<int32_t>(std::max<int64_t>(place, 0));
      }
    });
  }

  void clip_factor(Tensor factor, Tensor squared_norm, double clip, Tensor scale) override {
    double& f = *factor.ptr<double>();
    f = next_clip_factor(f, *squared_norm.ptr<double>(), clip, *scale.ptr<double>());
  }
  void optimizer_step(Tensor weights, Tensor m, Tensor v, Tensor rounded, Tensor gradients,
                      Tensor factor, Tensor factors, const OptimizerHyperparameters& s) override {
    const auto g_scale = factor ? static_cast<float>(*factor.ptr<double>()) : 1;
    if (std::isnan(g_scale)) return;
    const OptimizerFactors f = read_factors(factors.ptr<double>());
    const auto decay = static_cast<float>(f.decay), step_size = static_cast<float>(f.step_size);
    const auto v_scale = static_cast<float>(f.v_scale), eps = static_cast<float>(s.eps);
    const auto b1 = static_cast<float>(s.beta1), b2 = static_cast<float>(s.beta2);
    const auto one_b1 = static_cast<float>(1 - s.beta1), one_b2 = static_cast<float>(1 - s.beta2);
    const auto minimum = static_cast<float>(s.minimum), maximum = static_cast<float>(s.maximum);
    float *all_w = weights.ptr<float>(), *all_m = m.ptr<float>(), *all_v = v.ptr<float>();
    const float* all_g = gradients.ptr<float>();
    const bool adaptive = f.adaptive;
    // Captured by value and without aliases: otherwise a store to a float could change every other
    // operand, and the loop would not be vectorised.
    parallel_ranges(weights.size(), kGrain, [=](int64_t begin, int64_t end) {
      float* __restrict pw = all_w;
      float* __restrict pm = all_m;
      float* __restrict pv = all_v;
      const float* __restrict pg = all_g;
      for (int64_t i = begin; i < end; ++i) {
        const float g = pg[i] * g_scale;
        const float first = b1 * pm[i] + one_b1 * g;
        const float second = b2 * pv[i] + one_b2 * g * g;
        const float step = adaptive ? first / (std::sqrt(second) * v_scale + eps) : first;
        const float w = pw[i] - decay * pw[i];
        pw[i] = limited(w - step_size * step, minimum, maximum);
        pm[i] = first;
        pv[i] = second;
      }
      if (!rounded) return;
      // The range is still in the cache.
      dispatch_activation(rounded.dtype, [&]<class A>() {
        convert_range(rounded.ptr<A>() + begin, pw + begin, end - begin);
      });
    });
  }

 private:
  template <class A>
  static void convert_range(A* dst, const float* src, int64_t size) {
    for_vectors(size, [=](int64_t i, auto n) { store(dst + i, load(src + i, n), n); });
  }

  static constexpr int64_t kSegment = 1024;  // logits per fp32 partial sum
  static constexpr int64_t kColumns = 64;    // columns per piece of a column sum

  Matmul matmul_;
  AttentionScratch attention_;
  NormScratch norm_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Bf16Gemm* bf16_gemm) {
  return std::make_unique<CpuBackend>(bf16_gemm);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
