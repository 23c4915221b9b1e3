#pragma once
// Contextual position encoding in the CPU attention (ops/mechanisms/cope.h). <q_i, E> of some rows
// is one product. A row is then processed from its own key to the left with the running sum of the
// gates. Once the sum exceeds the last position, all earlier keys share one bias. The adjoint goes
// to the right with the running sum of the counts' gradients; a gate's gradient sums those of all
// keys up to its own.

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class ContextualRows final : public LogitBias {
 public:
  static int64_t floats(int64_t T, int64_t D, const ContentShape& content) {
    const int64_t Dp = padded(D), n = padded(content.columns);
    return n * (D + Dp) + 2 * kQ * (Dp + stride(n)) + stride(n) + 3 * padded(T);
  }
  /// dE, (D, padded(n)).
  static int64_t partial_floats(int64_t, int64_t D, const ContentShape& content) {
    return D * padded(content.columns);
  }

  ContextualRows(const Attention& a, const AttentionScratch& s, const BiasGradients*,
                 Pieces& pieces)
      : a_(a), positions_(std::get<ContextualBias>(a.bias).positions), s_(s) {
    require(n_ <= s.content.columns && a.causal(), "as many positions as were planned, causal");
    columns_ = pieces.take(D_ * np_);
    rows_ = pieces.take(n_ * Dp_);
    query_ = pieces.take(kQ * Dp_);
    dquery_ = pieces.take(kQ * Dp_);
    products_ = pieces.take(kQ * stride(n_));
    dproducts_ = pieces.take(kQ * stride(n_));
    slopes_ = pieces.take(stride(n_));
    gates_ = pieces.take(a.k.shape[1]);
    counts_ = pieces.take(a.k.shape[1]);
    formed_ = pieces.take(a.k.shape[1]);
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
  void set_rows(int64_t i0, int64_t i1, int64_t, int64_t) override {
    first_ = i0;
    count_ = i1 - i0;
    const int64_t past = a_.past();
    pack_rows(query_, a_.q, b_, h_, i0 - past, i1 - past, Dp_, 1);
    tile::product<false>(count_, np_, D_, {query_, Dp_, 1}, columns_, np_, products_, stride(n_));
  }

  bool reads_scores() const override { return true; }

  /// Of a row.
  BiasRows form(const Block& x) override {
    const float* const of_positions = products_ + (x.i0 - first_) * stride(n_);
    for (int64_t m = 0; m < np_; m += simd::kWidth) {
      simd::store(slopes_ + m, simd::load(of_positions + m + 1) - simd::load(of_positions + m));
    }
    slopes_[n_ - 1] = 0;
    const auto most = static_cast<float>(n_ - 1);
    float right = 0;  // the sum of the gates to the right
    int64_t j = padded(x.keys());
    while (j > 0 && !(right >= most)) {
      j -= simd::kWidth;
      Vec gates = simd::sigmoid(simd::load(x.data + j));
      if (j + simd::kWidth > x.keys()) {
        gates = simd::lanes() < static_cast<int32_t>(x.keys() - j) ? gates : Vec{};
      }
      const Vec sums = right + simd::running_sums<1>(gates);
      right = simd::first_lane(sums);
      const Vec count = sums < most ? sums : simd::splat(most);
      const Place at(count);
      simd::store(gates_ + j, gates);
      simd::store(counts_ + j, count);
      simd::store(formed_ + j,
                  simd::gather(of_positions, at.low) + at.share * simd::gather(slopes_, at.low));
    }
    counted_ = j;
    std::fill_n(formed_, counted_, of_positions[n_ - 1]);
    return {formed_, 0};
  }

  void set_gradients(const TaskHead& head) override {
    if (head.clear) std::fill_n(content_partial(s_, a_, b_, h_), D_ * np_, 0.0f);
  }
  /// Of a row: dz becomes ds.
  void add(const Block& dz, const RowFactors& f) override {
    float* const sums = dproducts_ + (dz.i0 - first_) * stride(n_);
    std::fill_n(sums, stride(n_), 0.0f);
    const float t = *f.content, of_bias = *f.bias;
    Vec far{};
    for (int64_t j = 0; j < counted_; j += simd::kWidth) {
      const Vec x = simd::load(dz.data + j);
      far += x;
      simd::store(dz.data + j, t * x);
    }
    sums[n_ - 1] = of_bias * simd::sum(far);
    float left = 0;  // the sum of the counts' gradients to the left
    for (int64_t j = counted_; j < dz.keys(); j += simd::kWidth) {
      const Vec x = simd::load(dz.data + j), db = of_bias * x;
      const Place at(simd::load(counts_ + j));
      at.scatter(sums, db);
      const Vec dcounts = left + simd::running_sums<-1>(db * simd::gather(slopes_, at.low));
      left = simd::last_lane(dcounts);
      const Vec gates = simd::load(gates_ + j);
      simd::store(dz.data + j, t * x + dcounts * gates * (1.0f - gates));
    }
  }

  void end_rows(float* dquery, float unit) override {
    const int64_t S = stride(n_);
    tile::product<false>(count_, Dp_, n_, {dproducts_, S, 1}, rows_, Dp_, dquery_, Dp_);
    for (int64_t e = 0; e < count_ * Dp_; e += simd::kWidth) {
      simd::store(dquery + e, simd::load(dquery + e) + (1 / unit) * simd::load(dquery_ + e));
    }
    tile::product<true>(D_, np_, count_, {query_, 1, Dp_}, dproducts_, S,
                        content_partial(s_, a_, b_, h_), np_);
  }

  /// Sums the tasks' gradients over heads and sequences, in order.
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
    const Tensor& to = std::get<ContextualBiasGradients>(g).dpositions;
    const int64_t B = a.q.shape[0], H = a.q.shape[2], n = to.shape[1];
    parallel_for(to.shape[0], [&](int64_t c) {
      float* const row = to.ptr<float>() + c * n;
      std::fill_n(row, n, 0.0f);
      for (int64_t head = 0; head < B * H; ++head) {
        const float* const part = content_partial(s, a, head / H, head % H) + c * padded(n);
        for (int64_t m = 0; m < n; ++m) row[m] += part[m];
      }
    });
  }

 private:
  /// Row stride of values by position. Padded, since loads also read the vector one place further
  /// on.
  static int64_t stride(int64_t n) { return padded(n) + simd::kWidth; }

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
  const int64_t D_ = a_.q.shape[3], Dp_ = padded(D_);
  const int64_t n_ = positions_.shape[1], np_ = padded(n_);
  int64_t b_ = 0, h_ = 0, first_ = 0, count_ = 0;  // the head, its first row, and the rows
  int64_t counted_ = 0;                            // of the row: gates are counted from this key on
  float *columns_, *rows_;                         // E (D, np), (n, padded D)
  float *query_, *dquery_;                         // q of the rows, and its gradient from E
  float *products_, *dproducts_;                   // <q, E> of the rows, and sums of db by position
  float* slopes_;           // of the row: differences between neighbouring positions
  float *gates_, *counts_;  // of the row's keys, from counted_ on
  float* formed_;           // the row's biases
};

template <class F>
inline void with_type_of(const ContextualBias&, F&& f) {
  f.template operator()<ContextualRows>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
