#pragma once
// Biases by a formula of per-token numbers in the CPU attention: one number per key and one per
// query.

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// The math of formulas, of vectors.
struct VectorMath {
  static Vec log1p(Vec a, Vec b) { return simd::log(1.0f + a * b); }
  static Vec divide(Vec a, Vec b) { return a * (1.0f / b); }
};

template <class Of_>
class TokenRows final : public LogitBias {
 public:
  using Of = Of_;
  static int64_t floats(int64_t T, int64_t, const ContentShape&) {
    return padded_keys(T) + kQ + std::max(padded_keys(T), kQ * kK) + simd::kWidth;
  }

  TokenRows(const Attention& a, const AttentionScratch& s, const BiasGradients* g, Pieces& pieces)
      : a_(a),
        s_(s),
        g_(g),
        keys_(pieces.take(padded_keys(a.k.shape[1]) + simd::kWidth)),
        rows_(pieces.take(kQ)),
        formed_(pieces.take(std::max(padded_keys(a.k.shape[1]), kQ * kK))) {}

  void set_head(int64_t b, int64_t h) override {
    const Tensor& numbers = std::get<TokenBias>(a_.bias).numbers;
    numbers_ = numbers.ptr<double>() + b * numbers.stride[0] + h * numbers.stride[1];
  }
  /// The numbers of keys and rows in fp32. Formulas of differences take them relative to the first
  /// row's, so that fp32 resolves the differences near the diagonal.
  void set_rows(int64_t i0, int64_t i1, int64_t j0, int64_t end) override {
    const double origin = Of::kRelative ? numbers_[i0] : 0;
    for (int64_t j = j0; j < end; ++j) keys_[j] = static_cast<float>(numbers_[j] - origin);
    std::fill(keys_ + end, keys_ + padded_keys(end) + simd::kWidth, 0.0f);
    for (int64_t i = i0; i < i1; ++i) rows_[i - i0] = static_cast<float>(numbers_[i] - origin);
    first_ = i0;
  }

  /// A vector of keys of a row.
  struct Keys {
    Vec row, key, distance;
    Vec bias() const { return Of::template bias<VectorMath>(row, key, distance); }
    Vec exponential() const { return Of::template exponential<VectorMath>(row, key, distance); }
  };
  Vec of_row(int64_t i) const { return simd::splat(rows_[i - first_]); }
  Keys keys(Vec of_row, int64_t i, int64_t j) const {
    const simd::IVec d = static_cast<int32_t>(i - j) - simd::lanes();
    return {of_row, simd::load(keys_ + j), __builtin_convertvector(d > 0 ? d : -d, Vec)};
  }

  BiasRows form(const Block& x) override {
    for (int64_t i = x.i0; i < x.i1; ++i) {
      float* const to = formed_ + (i - x.i0) * kK;
      const Vec row = of_row(i);
      for (int64_t n = 0; n < x.keys(); n += simd::kWidth) {
        simd::store(to + n, keys(row, i, x.j0 + n).bias());
      }
    }
    return {formed_, kK};
  }

  void add_to(const Block& x, float content, float bias) override {
    const Vec row = of_row(x.i0);
    for (int64_t n = 0; n < x.keys(); n += simd::kWidth) {
      simd::store(x.data + n,
                  content * simd::load(x.data + n) + bias * keys(row, x.i0, x.j0 + n).bias());
    }
  }

  /// The rows' gradients go into dnumbers, those of keys into a partial table until join().
  void set_gradients(const TaskHead& head) override {
    drows_ = head.of_rows(std::get<TokenBiasGradients>(*g_).dnumbers, a_);
    dkeys_ = head.for_keys ? partial_table(s_, a_, head.b, head.h, 0) : head.other_keys;
    if (head.clear) {
      std::fill(dkeys_ + head.keys.begin, dkeys_ + padded_keys(head.keys.end), 0.0f);
    }
  }
  void add(const Block& dz, const RowFactors& f) override {
    Vec sums[kQ];
    std::fill_n(sums, dz.rows(), Vec{});
    for (int64_t n = 0; n < dz.keys(); n += simd::kWidth) {
      const int64_t j = dz.j0 + n;
      Vec column{};
      for (int64_t i = dz.i0; i < dz.i1; ++i) {
        const int64_t r = i - dz.i0;
        const Keys x = keys(of_row(i), i, j);
        const Vec db = f.bias[r] * simd::load(dz.at(i, j));
        column += db * Of::template of_key<VectorMath>(x.row, x.key, x.distance);
        sums[r] += db * Of::template of_row<VectorMath>(x.row, x.key, x.distance);
      }
      simd::store(dkeys_ + j, simd::load(dkeys_ + j) + column);
    }
    for (int64_t i = dz.i0; i < dz.i1; ++i) drows_[i] += simd::sum(sums[i - dz.i0]);
  }

  /// Adds the keys' gradients to the rows' gradients in dnumbers.
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
    const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
    const Tensor& dnumbers = std::get<TokenBiasGradients>(g).dnumbers;
    parallel_for(B * H, [&](int64_t n) {
      const float* of_keys = partial_table(s, a, n / H, n % H, 0);
      float* total = dnumbers.ptr<float>() + n * T;
      for (int64_t t = 0; t < T; ++t) total[t] += of_keys[t];
    });
  }

 private:
  const Attention& a_;
  const AttentionScratch& s_;
  const BiasGradients* g_;
  const double* numbers_ = nullptr;            // (keys)
  int64_t first_ = 0;                          // of the rows
  float *keys_, *rows_;                        // by position; by row
  float* formed_;                              // a tile, or a row
  float *drows_ = nullptr, *dkeys_ = nullptr;  // by position
};

template <class F>
inline void with_type_of(const TokenBias& bias, F&& f) {
  with_formula(bias.formula, [&f]<class Of>() { f.template operator()<TokenRows<Of>>(); });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
