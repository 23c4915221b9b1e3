#pragma once
// Contextual position encoding in the CPU attention (ops/mechanisms/cope.h), in strips of rows.
// <q_i, E> of a strip is one product. A row is then processed from its own key to the left with the
// running sum of the gates. Once the sum exceeds the last position, all earlier keys share one
// bias. The adjoint goes to the right with the running sum of the counts' gradients; a gate's
// gradient sums those of all keys up to its own.
// of all keys up to its own.

#include <algorithm>
#include <cmath>

#include "ops/cpu/attention_strips.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class ContextualRows final : public RowBias {
 public:
  static int64_t floats(int64_t T, int64_t D, const ContentShape& content) {
    const int64_t Dp = padded(D), n = padded(content.columns);
    return n * (D + Dp) + 2 * kQ * (Dp + stride(n)) + stride(n) + 3 * padded(T) + 10 * simd::kWidth;
  }
  static int64_t partial_floats(int64_t, int64_t D, const ContentShape& content) {
    return D * padded(content.columns);
  }

  ContextualRows(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                 float* scratch)
      : a_(a),
        positions_(std::get<ContextualBias>(a.bias).positions),
        s_(s),
        backward_(g != nullptr) {
    require(n_ <= s.content.columns && a.causal(), "as many positions as were planned, causal");
    Pieces pieces(scratch);
    columns_ = pieces.take(D_ * np_);
    rows_ = pieces.take(n_ * Dp_);
    query_ = pieces.take(kQ * Dp_);
    dquery_ = pieces.take(kQ * Dp_);
    products_ = pieces.take(kQ * stride(n_));
    dproducts_ = pieces.take(kQ * stride(n_));
    slopes_ = pieces.take(stride(n_));
    gates_ = pieces.take(T_);
    counts_ = pieces.take(T_);
    scores_ = pieces.take(T_);
    const float* const E = positions_.ptr<float>();
    std::fill_n(rows_, n_ * Dp_, 0.0f);
    for (int64_t c = 0; c < D_; ++c) {
      std::copy_n(E + c * n_, n_, columns_ + c * np_);
      std::fill(columns_ + c * np_ + n_, columns_ + (c + 1) * np_, 0.0f);
      for (int64_t m = 0; m < n_; ++m) rows_[m * Dp_ + c] = E[c * n_ + m];
    }
  }

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
  }
  void clear_head() override { std::fill_n(partial(s_, a_, b_, h_), D_ * np_, 0.0f); }

  void set_tile(int64_t i0, int64_t i1, int64_t, int64_t) override {
    queries_ = i1 - i0;
    rows::dispatch_activation(
        a_.q.dtype, [&]<class A>() { pack_rows<A>(query_, a_.q, b_, h_, i0, i1, Dp_, 1); });
    tile::product<false>(queries_, np_, D_, {query_, Dp_, 1}, columns_, np_, products_, stride(n_));
  }

  bool reads_scores() const override { return true; }

  void add(float* z, const RowSpan& row, float t, float of_bias) override {
    const float* const of_positions = products_ + row.r * stride(n_);
    for (int64_t m = 0; m < np_; m += simd::kWidth) {
      simd::store(slopes_ + m, simd::load(of_positions + m + 1) - simd::load(of_positions + m));
    }
    slopes_[n_ - 1] = 0;
    const auto most = static_cast<float>(n_ - 1);
    float right = 0;  // the sum of the gates to the right
    int64_t j = padded(row.n);
    while (j > 0 && !(right >= most)) {
      j -= simd::kWidth;
      Vec s = simd::load(z + j), gates = simd::sigmoid(s);
      if (j + simd::kWidth > row.n) {
        const simd::IVec inside = simd::lanes() < static_cast<int32_t>(row.n - j);
        s = inside ? s : Vec{};
        gates = inside ? gates : Vec{};
      }
      const Vec sums = right + simd::running_sums<1>(gates);
      right = simd::first_lane(sums);
      const Vec count = sums < most ? sums : simd::splat(most);
      const Place at(count);
      const Vec b = simd::gather(of_positions, at.low) + at.share * simd::gather(slopes_, at.low);
      simd::store(gates_ + j, gates);
      simd::store(counts_ + j, count);
      if (keeps_scores()) simd::store(scores_ + j, s);
      simd::store(z + j, t * s + of_bias * b);
    }
    counted_ = j;
    const Vec far = simd::splat(of_bias * of_positions[n_ - 1]);
    for (j = 0; j < counted_; j += simd::kWidth) {
      const Vec s = simd::load(z + j);
      if (keeps_scores()) simd::store(scores_ + j, s);
      simd::store(z + j, t * s + far);
    }
  }

  float adjoint(float* dz, const RowSpan& row, float t, float of_bias, bool scaled) override {
    float* const sums = dproducts_ + row.r * stride(n_);
    std::fill_n(sums, stride(n_), 0.0f);
    Vec dt{}, far{};
    for (int64_t j = 0; j < counted_; j += simd::kWidth) {
      const Vec x = simd::load(dz + j);
      far += x;
      if (keeps_scores()) dt += x * simd::load(scores_ + j);
      simd::store(dz + j, t * x);
    }
    sums[n_ - 1] = simd::sum(far);
    float left = 0;  // the sum of the counts' gradients to the left
    for (int64_t j = counted_; j < row.n; j += simd::kWidth) {
      const int64_t keys = row.n - j;
      const Vec x = keys >= simd::kWidth ? simd::load(dz + j) : simd::load_partial(dz + j, keys);
      if (keeps_scores()) dt += x * simd::load(scores_ + j);
      const Place at(simd::load(counts_ + j));
      at.scatter(sums, x);
      const Vec dcounts =
          left + simd::running_sums<-1>(of_bias * x * simd::gather(slopes_, at.low));
      left = simd::last_lane(dcounts);
      const Vec gates = simd::load(gates_ + j);
      const Vec ds = t * x + dcounts * gates * (1.0f - gates);
      keys >= simd::kWidth ? simd::store(dz + j, ds) : simd::store_partial(dz + j, ds, keys);
    }
    // The sum of dz b equals the sum over positions of `sums` times <q, E>.
    const float* const of_positions = products_ + row.r * stride(n_);
    for (int64_t m = 0; m < np_; m += simd::kWidth) {
      const Vec x = simd::load(sums + m);
      if (scaled) dt += x * simd::load(of_positions + m);
      simd::store(sums + m, of_bias * x);
    }
    return simd::sum(dt);
  }

  void end_tile(float* dquery, float unit) override {
    const int64_t S = stride(n_);
    tile::product<false>(queries_, Dp_, n_, {dproducts_, S, 1}, rows_, Dp_, dquery_, Dp_);
    for (int64_t e = 0; e < queries_ * Dp_; e += simd::kWidth) {
      simd::store(dquery + e, simd::load(dquery + e) + (1 / unit) * simd::load(dquery_ + e));
    }
    tile::product<true>(D_, np_, queries_, {query_, 1, Dp_}, dproducts_, S, partial(s_, a_, b_, h_),
                        np_);
  }

  /// Calls f(n, bias) for the n-th key of a row, from the last backwards, including keys of the
  /// past.
  template <class F>
  static void for_row(const Attention& a, int64_t b, int64_t h, const SeenKeys& row, F&& f) {
    const Tensor& positions = std::get<ContextualBias>(a.bias).positions;
    const int64_t D = a.q.shape[3], n = positions.shape[1], kh = h / (a.q.shape[2] / a.k.shape[2]);
    const float root = 1 / a.content_divisor<float>();
    rows::dispatch_activation(a.q.dtype, [&]<class A>() {
      const auto row_of = [&](const Tensor& x, int64_t t, int64_t head) {
        return static_cast<const A*>(x.data) + b * x.stride[0] + t * x.stride[1] +
               head * x.stride[2];
      };
      const A* const query = row_of(a.q, row.i, h);
      const auto of_position = [&](int64_t m) {
        float sum = 0;
        for (int64_t c = 0; c < D; ++c) {
          sum += static_cast<float>(query[c]) * positions.ptr<float>()[c * n + m];
        }
        return sum;
      };
      const auto most = static_cast<float>(n - 1);
      int64_t low = 0;
      float at_low = of_position(0), at_high = n > 1 ? of_position(1) : at_low, count = 0;
      for (int64_t j = row.last; j >= row.first; --j) {
        if (!(count >= most)) {
          const A* const key = row_of(a.k, j, kh);
          float s = 0;
          for (int64_t c = 0; c < D; ++c) {
            s += static_cast<float>(query[c]) * static_cast<float>(key[c]);
          }
          count += 1 / (1 + std::exp(-root * s));
        }
        const float at = count < most ? count : most;
        for (; static_cast<float>(low + 1) <= at; ++low) {
          at_low = at_high;
          if (low + 2 < n) at_high = of_position(low + 2);
        }
        f(j - row.first, at_low + (at - static_cast<float>(low)) * (at_high - at_low));
      }
    });
  }

  /// Sums the tasks' gradients over heads and sequences, in order.
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
    const Tensor& to = std::get<ContextualBiasGradients>(g).dpositions;
    const int64_t B = a.q.shape[0], H = a.q.shape[2], n = to.shape[1];
    parallel_for(to.shape[0], [&](int64_t c) {
      float* const row = to.ptr<float>() + c * n;
      std::fill_n(row, n, 0.0f);
      for (int64_t head = 0; head < B * H; ++head) {
        const float* const part = partial(s, a, head / H, head % H) + c * padded(n);
        for (int64_t m = 0; m < n; ++m) row[m] += part[m];
      }
    });
  }

 private:
  /// Row stride of values by position. Padded, since loads also read the vector one place further
  /// on.
  static int64_t stride(int64_t n) { return padded(n) + simd::kWidth; }
  /// dE of one head of a sequence, (D, padded(n)).
  static float* partial(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h) {
    return s.of_content.ptr<float>() + (b * a.q.shape[2] + h) * s.of_content.stride[0];
  }
  /// The scale's gradient needs the scores.
  bool keeps_scores() const { return backward_ && a_.scale.t; }

  /// Where counts lie: the position below, and the distance from it.
  struct Place {
    simd::IVec low;
    Vec share;

    explicit Place(Vec count)
        : low(__builtin_convertvector(count, simd::IVec)),
          share(count - __builtin_convertvector(low, Vec)) {}
    /// Adds x to the two positions, by their weights.
    void scatter(float* to, Vec x) const {
      const Vec high = share * x;
      const Vec rest = x - high;
      for (int l = 0; l < simd::kWidth; ++l) {
        to[low[l]] += rest[l];
        to[low[l] + 1] += high[l];
      }
    }
  };

  const Attention& a_;
  const Tensor& positions_;
  const AttentionScratch& s_;
  const bool backward_;
  const int64_t T_ = a_.q.shape[1], D_ = a_.q.shape[3], Dp_ = padded(D_);
  const int64_t n_ = positions_.shape[1], np_ = padded(n_);
  int64_t b_ = 0, h_ = 0, queries_ = 0;  // the head, and the rows of the strip
  int64_t counted_ = 0;                  // of the row: gates are counted from this key on
  float *columns_, *rows_;               // E (D, np), (n, padded D)
  float *query_, *dquery_;               // q of the strip, and its gradient from E
  float *products_, *dproducts_;         // <q, E> of the strip's rows, and sums of db by position
  float* slopes_;                        // of the row: differences between neighbouring positions
  float *gates_, *counts_, *scores_;     // of the row's keys, from counted_ on; scores: of all keys
};

template <class F>
inline void with_rows(const ContextualBias&, F&& f) {
  f.template operator()<ContextualRows>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
