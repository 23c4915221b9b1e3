#pragma once
// Biases by a formula of per-token numbers in the CPU attention: one number per key and one per
// query.

#include <cmath>

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// The math of formulas: for vectors, and (ScalarMath) for one logit of a decode step.
struct VectorMath {
  static Vec log1p(Vec a, Vec b) { return simd::log(1.0f + a * b); }
  static Vec divide(Vec a, Vec b) { return a * (1.0f / b); }
};
struct ScalarMath {
  static float log1p(float a, float b) { return std::log1p(a * b); }
  static float divide(float a, float b) { return a / b; }
};

template <class Of>
class TokenStage {
  static constexpr bool kExponential = requires(Vec x) {
    Of::template exponential<VectorMath>(x, x, x);
  };

 public:
  static constexpr bool kThere = true;

  TokenStage(const Attention& a, int64_t b, int64_t h, const BiasMemory& memory)
      : numbers_(numbers_of(a, b, h)), columns_(memory.columns), rows_(memory.rows) {}

  /// Converts the numbers of keys [j_first, j_end) and of the tile's queries to fp32. Formulas of
  /// differences use numbers relative to the tile's first query, so that fp32 resolves the
  /// differences near the diagonal.
  void set_tile(int64_t i0, int64_t i1, int64_t j_first, int64_t j_end) const {
    const double origin = Of::kRelative ? numbers_[i0] : 0;
    for (int64_t j = j_first; j < j_end; ++j) {
      columns_[j] = static_cast<float>(numbers_[j] - origin);
    }
    std::fill(columns_ + j_end, columns_ + padded_keys(j_end), 0.0f);
    for (int64_t i = i0; i < i1; ++i) rows_[i - i0] = static_cast<float>(numbers_[i] - origin);
    first_ = i0;
  }
  const float* of_keys(int64_t, int64_t j0) const { return columns_ + j0; }

  struct Row {
    Vec number;
    const float* own;  // the token's number as a key
  };
  Row of_row(int64_t r) const { return {simd::splat(rows_[r]), columns_ + first_ + r}; }

  template <ScaleMode kScale>
  class OfKeys {
    // Whether exp(z) is computed as exp(t s) exp(b), if exp(b) needs no logarithm. Row maxima are
    // then over t s.
    static constexpr bool kWeighted = kExponential && kScale != ScaleMode::both;

   public:
    OfKeys(const float* of_keys, const Row& row)
        : row_(row.number), key_(simd::load(of_keys)), ahead_(row.own - of_keys) {}
    Vec bias() const {
      if constexpr (kWeighted) return Vec{};
      return Of::template bias<VectorMath>(row_, key_, distance());
    }
    /// exp(z) from exp of the value that logits() returned.
    Vec weighted(Vec e) const {
      if constexpr (kWeighted)
        return e * Of::template exponential<VectorMath>(row_, key_, distance());
      return e;
    }
    /// db times the derivatives of the bias with respect to the numbers of row and keys.
    Vec to_row(Vec db) const {
      return db * Of::template of_row<VectorMath>(row_, key_, distance());
    }
    Vec to_keys(Vec db) const {
      return db * Of::template of_key<VectorMath>(row_, key_, distance());
    }

   private:
    Vec distance() const {
      const simd::IVec d = static_cast<int32_t>(ahead_) - simd::lanes();
      return __builtin_convertvector(d > 0 ? d : -d, Vec);
    }

    Vec row_, key_;
    int64_t ahead_;  // from the first of the keys to the row's token
  };

  template <class F>
  static void for_row(const Attention& a, int64_t b, int64_t h, const SeenKeys& row, F&& f) {
    const double* n = numbers_of(a, b, h);
    const double origin = Of::kRelative ? n[row.last] : 0;
    const auto own = static_cast<float>(n[row.last] - origin);
    for (int64_t j = row.first; j <= row.last; ++j) {
      f(j - row.first, Of::template bias<ScalarMath>(own, static_cast<float>(n[j] - origin),
                                                     static_cast<float>(row.last - j)));
    }
  }

  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s);

  class Adjoint;

 private:
  static const double* numbers_of(const Attention& a, int64_t b, int64_t h) {
    const Tensor& numbers = std::get<TokenBias>(a.bias).numbers;
    return numbers.ptr<double>() + b * numbers.stride[0] + h * numbers.stride[1];
  }

  const double* numbers_;      // (T)
  float *columns_, *rows_;     // of all keys, by position; of the tile's queries
  mutable int64_t first_ = 0;  // first query of the tile
};

/// The rows' gradients go into dnumbers itself, the keys' into a separate array: see key_numbers.
template <class Of>
class TokenStage<Of>::Adjoint : public PlainAdjoint {
 public:
  Adjoint(const BiasGradients& g, const Attention& a, const AttentionScratch& s, float*)
      : g_(g), a_(a), s_(s) {}

  void set_head(const TaskHead& head) {
    rows_ = head.of_rows(std::get<TokenBiasGradients>(g_).dnumbers, a_);
    keys_ = head.for_keys ? key_numbers(s_, a_, head.b, head.h) : head.other_keys;
    std::fill(keys_ + head.keys.begin, keys_ + padded_keys(head.keys.end), 0.0f);
  }

  struct Tile {
    Vec column[kV] = {}, row{};

    void begin_row() { row = Vec{}; }
    template <class OfKeys>
    void add(int64_t v, const OfKeys& keys, Vec db) {
      column[v] += keys.to_keys(db);
      row += keys.to_row(db);
    }
  };
  void end_row(const Tile& tile, const float*, int64_t i, int64_t, const TokenStage&) {
    rows_[i] += simd::sum(tile.row);
  }
  void end_tile(const Tile& tile, int64_t j0) {
    for (int64_t v = 0; v < kV; ++v) {
      float* const keys = keys_ + j0 + v * simd::kWidth;
      simd::store(keys, simd::load(keys) + tile.column[v]);
    }
  }

  void add_row(const TokenStage& stage, const float* dz, const RowSpan& row, float of_bias) {
    Vec of_row{};
    float* const to = keys_ + row.first;
    for_biases(stage, row, [&](int64_t n, const auto& b) {
      const Vec db = of_bias * simd::load(dz + n), to_keys = b.to_keys(db);
      const int64_t left = row.n - n;
      const Vec sum = left >= simd::kWidth ? simd::load(to + n) + to_keys
                                           : simd::load_partial(to + n, left) + to_keys;
      left >= simd::kWidth ? simd::store(to + n, sum) : simd::store_partial(to + n, sum, left);
      of_row += b.to_row(db);
    });
    rows_[row.i] += simd::sum(of_row);
  }

 private:
  const BiasGradients& g_;
  const Attention& a_;
  const AttentionScratch& s_;
  float *keys_ = nullptr, *rows_ = nullptr;
};

/// Adds the keys' gradients to the rows' gradients in dnumbers.
template <class Of>
void TokenStage<Of>::join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  const Tensor& dnumbers = std::get<TokenBiasGradients>(g).dnumbers;
  parallel_for(B * H, [&](int64_t n) {
    const float* of_keys = key_numbers(s, a, n / H, n % H);
    float* total = dnumbers.ptr<float>() + n * T;
    for (int64_t t = 0; t < T; ++t) total[t] += of_keys[t];
  });
}

template <class F>
inline void with_stage(const TokenBias& bias, F&& f) {
  with_formula(bias.formula, [&f]<class Of>() { f.template operator()<TokenStage<Of>>(); });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
