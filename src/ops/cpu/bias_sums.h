#pragma once
// Biases from running sums in the CPU attention: one number per key and one per query.

#include <cmath>

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

template <SumBias kForm>
class SumsStage {
  static constexpr bool kLogSquare = kForm == SumBias::log_square;

 public:
  static constexpr bool kThere = true;

  SumsStage(const Attention& a, int64_t b, int64_t h, const BiasMemory& memory)
      : S_(sums_of(a, b, h)), columns_(memory.columns), rows_(memory.rows) {}

  /// The sums relative to that of the first of the tile's queries, so that fp32 holds the
  /// differences near the diagonal: of keys from j_first <= i0 on, to the end of the last tile.
  void set_tile(int64_t i0, int64_t i1, int64_t j_first) const {
    for (int64_t j = j_first; j < i1; ++j) columns_[j] = static_cast<float>(S_[j] - S_[i0]);
    std::fill(columns_ + i1, columns_ + padded_keys(i1), 0.0f);
    std::copy_n(columns_ + i0, i1 - i0, rows_);
  }
  const float* of_keys(int64_t, int64_t j0) const { return columns_ + j0; }
  Vec of_row(int64_t r) const { return simd::splat(rows_[r]); }

  template <ScaleMode kScale>
  struct OfKeys {
    // Whether exp(z) is formed as exp(t s) (1 / (1 + x^2)) in place of exp(t s - log(1 + x^2)): a
    // division instead of a logarithm. Maxima are then over t s, which is as safe: no factor is
    // above 1, and none below 10^-14, while exp spans 10^76.
    static constexpr bool kWeighted = kLogSquare && kScale != ScaleMode::both;

    Vec x{};       // S_j - S_i
    Vec weight{};  // 1 / (1 + x^2), of log_square

    OfKeys(const float* of_keys, Vec of_row) {
      x = simd::load(of_keys) - of_row;
      if constexpr (kLogSquare) weight = 1.0f / (1.0f + x * x);
    }
    Vec bias() const {
      if constexpr (kWeighted) return Vec{};
      if constexpr (kLogSquare) return -simd::log(1.0f + x * x);
      return x;
    }
    /// exp(z) from exp of what logits() gave.
    Vec weighted(Vec e) const {
      if constexpr (kWeighted) return e * weight;
      return e;
    }
    /// db times the derivative of the bias with respect to the keys' sums.
    Vec adjoint(Vec db) const { return kLogSquare ? db * (-2.0f * x * weight) : db; }
  };

  template <class F>
  static void for_row(const Attention& a, int64_t b, int64_t h, const SeenKeys& row, F&& f) {
    const double* S = sums_of(a, b, h);
    for (int64_t j = row.first; j <= row.last; ++j) {
      const auto x = static_cast<float>(S[j] - S[row.last]);
      f(j - row.first, kLogSquare ? -std::log1p(x * x) : x);
    }
  }

  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s);

  class Adjoint;

 private:
  static const double* sums_of(const Attention& a, int64_t b, int64_t h) {
    const Tensor& sums = std::get<SumsBias>(a.bias).sums;
    return sums.ptr<double>() + b * sums.stride[0] + h * sums.stride[1];
  }

  const double* S_;         // (T)
  float *columns_, *rows_;  // of all keys, by position; of the tile's queries
};

/// The rows' part into dsums itself, the keys' beside it: see key_sums.
template <SumBias kForm>
class SumsStage<kForm>::Adjoint : public PlainAdjoint {
 public:
  Adjoint(const BiasGradients& g, const Attention& a, const AttentionScratch& s, float*)
      : g_(g), a_(a), s_(s) {}

  void set_head(const TaskHead& head) {
    rows_ = head.of_rows(std::get<SumsBiasGradients>(g_).dsums, a_);
    keys_ = head.for_keys ? key_sums(s_, a_, head.b, head.h) : head.other_keys;
    std::fill(keys_ + head.keys.begin, keys_ + padded_keys(head.keys.end), 0.0f);
  }

  struct Tile {
    Vec column[kV] = {}, row{};

    void begin_row() { row = Vec{}; }
    template <class OfKeys>
    void add(int64_t v, const OfKeys& keys, Vec db) {
      const Vec dx = keys.adjoint(db);
      column[v] += dx;
      row -= dx;
    }
  };
  void end_row(const Tile& tile, const float*, int64_t i, int64_t, const SumsStage&) {
    rows_[i] += simd::sum(tile.row);
  }
  void end_tile(const Tile& tile, int64_t j0) {
    for (int64_t v = 0; v < kV; ++v) {
      float* const keys = keys_ + j0 + v * simd::kWidth;
      simd::store(keys, simd::load(keys) + tile.column[v]);
    }
  }

  void add_row(const SumsStage& stage, const float* dz, const RowSpan& row, float of_bias) {
    Vec of_row{};
    float* const to = keys_ + row.first;
    for_biases(stage, row, [&](int64_t n, const auto& b) {
      const Vec dx = b.adjoint(of_bias * simd::load(dz + n));
      const int64_t left = row.n - n;
      const Vec sum =
          left >= simd::kWidth ? simd::load(to + n) + dx : simd::load_partial(to + n, left) + dx;
      left >= simd::kWidth ? simd::store(to + n, sum) : simd::store_partial(to + n, sum, left);
      of_row -= dx;
    });
    rows_[row.i] += simd::sum(of_row);
  }

 private:
  const BiasGradients& g_;
  const Attention& a_;
  const AttentionScratch& s_;
  float *keys_ = nullptr, *rows_ = nullptr;
};

/// Adds the keys' part to that of the rows, which is in dsums.
template <SumBias kForm>
void SumsStage<kForm>::join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  const Tensor& dsums = std::get<SumsBiasGradients>(g).dsums;
  parallel_for(B * H, [&](int64_t n) {
    const float* of_keys = key_sums(s, a, n / H, n % H);
    float* total = dsums.ptr<float>() + n * T;
    for (int64_t t = 0; t < T; ++t) total[t] += of_keys[t];
  });
}

template <class F>
inline void with_stage(const SumsBias& bias, F&& f) {
  switch (bias.form) {
    case SumBias::difference:
      return f.template operator()<SumsStage<SumBias::difference>>();
    case SumBias::log_square:
      return f.template operator()<SumsStage<SumBias::log_square>>();
  }
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
