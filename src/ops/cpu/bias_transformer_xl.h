#pragma once
// Transformer-XL's bias in the CPU attention (ops/mechanisms/transformer_xl.h). <q_i + w, r_d> of
// some rows is one product with the vectors of all their distances. In that product a row's keys
// are contiguous, and each row's keys start one place left of the previous row's. The adjoint uses
// the same layout.

#include <cmath>

#include "core/parallel.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/bias.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class RelativeRows final : public LogitBias {
 public:
  static int64_t floats(int64_t T, int64_t D, const ContentShape& content) {
    const int64_t Dp = padded(D), n = distances(T, content.causal);
    return D * stride(n) + n * Dp + 2 * (padded_keys(T) + kK) + 2 * kQ * Dp +
           2 * (most_strip_floats(T) + kQ * kK);
  }
  /// dr, reversed, then du and dw, (distances + 2, padded(D)).
  static int64_t partial_floats(int64_t T, int64_t D, const ContentShape& content) {
    return (distances(T, content.causal) + 2) * padded(D);
  }

  RelativeRows(const Attention& a, const AttentionScratch& s, const BiasGradients*, Pieces& pieces)
      : a_(a), bias_(std::get<RelativeBias>(a.bias)), s_(s) {
    const int64_t Tp = padded_keys(T_) + kK;
    transposed_ = pieces.take(D_ * stride(n_));
    reversed_ = pieces.take(n_ * Dp_);
    of_keys_ = pieces.take(Tp);
    dkeys_ = pieces.take(Tp);
    query_ = pieces.take(kQ * Dp_);
    dquery_ = pieces.take(kQ * Dp_);
    products_ = pieces.take(most_strip_floats(T_) + kQ * kK);
    dproducts_ = pieces.take(most_strip_floats(T_) + kQ * kK);
  }

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
    rows::dispatch_activation(a_.k.dtype, [&]<class A>() {
      for (int64_t c = 0; c < D_; ++c) query_[c] = root_ * of_head(bias_.u)[c];
      rows::dots(of_keys_, query_, D_, T_,
                 [this](int64_t j) { return row_of<A>(a_.k, b_, j, h_ / (H_ / a_.k.shape[2])); });
    });
    std::fill(of_keys_ + T_, of_keys_ + padded_keys(T_) + kK, 0.0f);
    if (few_rows()) return;
    for (int64_t n = 0; n < n_; ++n) {
      const float* const r = of_distance(n);
      for (int64_t c = 0; c < D_; ++c) transposed_[c * stride(n_) + n] = r[c];
      std::copy_n(r, D_, reversed_ + n * Dp_);
      std::fill(reversed_ + n * Dp_ + D_, reversed_ + (n + 1) * Dp_, 0.0f);
    }
    for (int64_t c = 0; c < D_; ++c) {
      std::fill(transposed_ + c * stride(n_) + n_, transposed_ + (c + 1) * stride(n_), 0.0f);
    }
  }

  void set_rows(int64_t i0, int64_t i1, int64_t j0, int64_t end) override {
    first_ = i0;
    from_ = j0;
    count_ = i1 - i0;
    begin_ = T_ - (i1 - j0);
    length_ = a_.causal() ? i1 - j0 : count_ - 1 + end - j0;
    const int64_t past = a_.past();
    pack_rows(query_, a_.q, b_, h_, i0 - past, i1 - past, Dp_, root_);
    for (int64_t r = 0; r < count_; ++r) {
      for (int64_t c = 0; c < D_; ++c) query_[r * Dp_ + c] += root_ * of_head(bias_.w)[c];
    }
    if (few_rows()) {
      for (int64_t row = 0; row < count_; ++row) {
        rows::dots(products_ + row * S_, query_ + row * Dp_, D_, length_,
                   [this](int64_t n) { return of_distance(begin_ + n); });
      }
    } else {
      tile::product<false>(count_, padded(length_) + simd::kWidth, D_, {query_, Dp_, 1},
                           transposed_ + begin_, stride(n_), products_, S_);
    }
  }

  /// Of a row.
  BiasRows form(const Block& x) override {
    return {products_ + (x.i0 - first_) * S_ + place(x), 0, of_keys_ + x.j0};
  }

  void set_gradients(const TaskHead& head) override {
    if (!head.clear) return;
    std::fill_n(dkeys_, padded_keys(T_) + kK, 0.0f);
    std::fill_n(content_partial(s_, a_, b_, h_), (n_ + 2) * Dp_, 0.0f);
  }
  /// Of a row.
  void add(const Block& dz, const RowFactors& f) override {
    float* const to = dproducts_ + (dz.i0 - first_) * S_;
    const int64_t at = place(dz);
    std::fill_n(to, padded(length_), 0.0f);
    for (int64_t n = 0; n < dz.keys(); n += simd::kWidth) {
      const Vec db = *f.bias * simd::load(dz.data + n);
      float* const of_key = dkeys_ + dz.j0 + n;
      simd::store(of_key, simd::load(of_key) + db);
      const int64_t left = dz.keys() - n;
      left >= simd::kWidth ? simd::store(to + at + n, db)
                           : simd::store_partial(to + at + n, db, left);
    }
  }

  void end_rows(float* dquery, float unit) override {
    float* const dr = content_partial(s_, a_, b_, h_);
    float* const dw = dr + (n_ + 1) * Dp_;
    tile::product<false>(count_, Dp_, length_, {dproducts_, S_, 1}, reversed_ + begin_ * Dp_, Dp_,
                         dquery_, Dp_);
    for (int64_t r = 0; r < count_; ++r) {
      for (int64_t c = 0; c < Dp_; c += simd::kWidth) {
        const Vec x = root_ * simd::load(dquery_ + r * Dp_ + c);
        float* const to = dquery + r * Dp_ + c;
        simd::store(to, simd::load(to) + (1 / unit) * x);
        simd::store(dw + c, simd::load(dw + c) + x);
      }
    }
    tile::product<true>(length_, Dp_, count_, {dproducts_, 1, S_}, query_, Dp_, dr + begin_ * Dp_,
                        Dp_);
  }

  void end_head(const float* keys, float* dkeys) override {
    float* const du = content_partial(s_, a_, b_, h_) + n_ * Dp_;
    const float* const u = of_head(bias_.u);
    for (int64_t j = 0; j < T_; ++j) {
      const float of_key = root_ * dkeys_[j];
      for (int64_t c = 0; c < D_; ++c) {
        du[c] += of_key * keys[j * Dp_ + c];
        dkeys[j * Dp_ + c] += of_key * u[c];
      }
    }
  }

  /// Sums the tasks' gradients over sequences, in order.
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
    const auto& [dr, du, dw] = std::get<RelativeBiasGradients>(g);
    const int64_t B = a.q.shape[0], H = a.q.shape[2], D = a.q.shape[3], Dp = padded(D);
    const int64_t n_all = distances(a.q.shape[1], a.causal());
    parallel_for(H, [&, &to_r = dr, &to_u = du, &to_w = dw](int64_t h) {
      for (int64_t n = 0; n < n_all + 2; ++n) {
        float* const to = n < n_all    ? to_r.ptr<float>() + ((n_all - 1 - n) * H + h) * D
                          : n == n_all ? to_u.ptr<float>() + h * D
                                       : to_w.ptr<float>() + h * D;
        std::fill_n(to, D, 0.0f);
        for (int64_t b = 0; b < B; ++b) {
          const float* const part = content_partial(s, a, b, h) + n * Dp;
          for (int64_t c = 0; c < D; ++c) to[c] += part[c];
        }
      }
    });
  }

 private:
  static int64_t distances(int64_t T, bool causal) { return causal ? T : 2 * T - 1; }
  static int64_t stride(int64_t n) { return padded(n) + 2 * simd::kWidth; }
  template <class A>
  static const A* row_of(const Tensor& x, int64_t b, int64_t t, int64_t h) {
    return static_cast<const A*>(x.data) + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
  }
  const float* of_head(const Tensor& x) const { return x.ptr<float>() + h_ * D_; }
  /// r of the head's n-th distance, the farthest first.
  const float* of_distance(int64_t n) const {
    const int64_t at_0 = a_.causal() ? 0 : (bias_.r.shape[0] - 1) / 2;
    return bias_.r.ptr<float>() + ((at_0 + T_ - 1 - n) * H_ + h_) * D_;
  }
  /// Rows for which reading r where it lies costs less than packing it.
  bool few_rows() const { return a_.past() > 0 && a_.q.shape[1] < kLeastPackedRows; }
  /// The place of a row's first key in its products.
  int64_t place(const Block& x) const { return x.j0 - from_ + count_ - 1 - (x.i0 - first_); }

  const Attention& a_;
  const RelativeBias& bias_;
  const AttentionScratch& s_;
  const int64_t T_ = a_.k.shape[1], H_ = a_.q.shape[2], D_ = a_.q.shape[3], Dp_ = padded(D_);
  const int64_t n_ = distances(T_, a_.causal());
  // Row stride of the products: the distances of all rows.
  const int64_t S_ = strip_stride(T_) + (a_.causal() ? 0 : kK);
  const float root_ = 1 / std::sqrt(static_cast<float>(D_));
  int64_t b_ = 0, h_ = 0;
  int64_t first_ = 0, from_ = 0, count_ = 0;  // of the rows: the first, its first key, and how many
  int64_t begin_ = 0, length_ = 0;  // of the rows: their distances, in r with the farthest first
  float *transposed_, *reversed_;   // r, farthest first: (D, stride), (distances, padded D)
  float *of_keys_, *dkeys_;         // by key: <u, k> / sqrt(D), and sums of db
  float *query_, *dquery_;          // (q + w) / sqrt(D) of the rows
  float *products_, *dproducts_;    // of the rows with r
};

template <class F>
inline void with_type_of(const RelativeBias&, F&& f) {
  f.template operator()<RelativeRows>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
