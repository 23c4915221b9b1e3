#pragma once
// Transformer-XL's bias in the CPU attention (ops/mechanisms/transformer_xl.h), in strips of rows.
// <q_i + w, r_d> of a strip is one product with the vectors of all its distances. In that product a
// row's keys are contiguous, and each row's keys start one place left of the previous row's. The
// adjoint uses the same layout.

#include <algorithm>
#include <cmath>

#include "ops/cpu/attention_strips.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class RelativeRows final : public RowBias {
 public:
  static int64_t floats(int64_t T, int64_t D, const ContentShape& content) {
    const int64_t Dp = padded(D), n = distances(T, content.causal);
    return D * stride(n) + n * Dp + 2 * (padded_keys(T) + kK) + 2 * kQ * Dp +
           2 * (most_strip_floats(T) + kQ * kK) + 10 * simd::kWidth;
  }
  static int64_t partial_floats(int64_t T, int64_t D, const ContentShape& content) {
    return (distances(T, content.causal) + 2) * padded(D);
  }

  RelativeRows(const Attention& a, const AttentionScratch& s, const BiasGradients*, float* scratch)
      : a_(a), bias_(std::get<RelativeBias>(a.bias)), s_(s) {
    const int64_t Tp = padded_keys(T_) + kK;
    Pieces pieces(scratch);
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
    const int64_t at_0 = a_.causal() ? 0 : (bias_.r.shape[0] - 1) / 2;
    for (int64_t n = 0; n < n_; ++n) {
      const float* const r = bias_.r.ptr<float>() + ((at_0 + T_ - 1 - n) * H_ + h) * D_;
      for (int64_t c = 0; c < D_; ++c) transposed_[c * stride(n_) + n] = r[c];
      std::copy_n(r, D_, reversed_ + n * Dp_);
      std::fill(reversed_ + n * Dp_ + D_, reversed_ + (n + 1) * Dp_, 0.0f);
    }
    for (int64_t c = 0; c < D_; ++c) {
      std::fill(transposed_ + c * stride(n_) + n_, transposed_ + (c + 1) * stride(n_), 0.0f);
    }
    rows::dispatch_activation(a_.k.dtype, [&]<class A>() {
      for (int64_t j = 0; j < T_; ++j) {
        const A* const key = row_of<A>(a_.k, b_, j, h_ / (H_ / a_.k.shape[2]));
        of_keys_[j] = root_ * dot(of_head(bias_.u), key);
      }
    });
    std::fill(of_keys_ + T_, of_keys_ + padded_keys(T_) + kK, 0.0f);
  }
  void clear_head() override {
    std::fill_n(dkeys_, padded_keys(T_) + kK, 0.0f);
    std::fill_n(partial(s_, a_, b_, h_), (n_ + 2) * Dp_, 0.0f);
  }

  void set_tile(int64_t i0, int64_t i1, int64_t j_first, int64_t j_end) override {
    from_ = j_first;
    count_ = i1 - i0;
    begin_ = T_ - (i1 - j_first);
    length_ = a_.causal() ? i1 - j_first : count_ - 1 + j_end - j_first;
    rows::dispatch_activation(
        a_.q.dtype, [&]<class A>() { pack_rows<A>(query_, a_.q, b_, h_, i0, i1, Dp_, root_); });
    for (int64_t r = 0; r < count_; ++r) {
      for (int64_t c = 0; c < D_; ++c) query_[r * Dp_ + c] += root_ * of_head(bias_.w)[c];
    }
    tile::product<false>(count_, padded(length_) + simd::kWidth, D_, {query_, Dp_, 1},
                         transposed_ + begin_, stride(n_), products_, S_);
  }

  void add(float* z, const RowSpan& row, float t, float of_bias) override {
    for_biases(row,
               [&](int64_t n, Vec b) { simd::store(z + n, t * simd::load(z + n) + of_bias * b); });
  }

  float adjoint(float* dz, const RowSpan& row, float, float of_bias, bool scaled) override {
    float* const to = dproducts_ + row.r * S_;
    const int64_t at = place(row);
    std::fill_n(to, padded(length_), 0.0f);
    Vec dscale{};
    for_biases(row, [&](int64_t n, Vec b) {
      const int64_t left = row.n - n;
      const Vec x = left >= simd::kWidth ? simd::load(dz + n) : simd::load_partial(dz + n, left);
      if (scaled) dscale += x * b;
      const Vec db = of_bias * x;
      float* const of_key = dkeys_ + row.first + n;
      simd::store(of_key, simd::load(of_key) + db);
      left >= simd::kWidth ? simd::store(to + at + n, db)
                           : simd::store_partial(to + at + n, db, left);
    });
    return simd::sum(dscale);
  }

  void end_tile(float* dquery, float unit) override {
    float* const dr = partial(s_, a_, b_, h_);
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
    float* const du = partial(s_, a_, b_, h_) + n_ * Dp_;
    const float* const u = of_head(bias_.u);
    for (int64_t j = 0; j < T_; ++j) {
      const float of_key = root_ * dkeys_[j];
      for (int64_t c = 0; c < D_; ++c) {
        du[c] += of_key * keys[j * Dp_ + c];
        dkeys[j * Dp_ + c] += of_key * u[c];
      }
    }
  }

  /// Calls f(n, bias) for the n-th key of a row, including keys of the past.
  template <class F>
  static void for_row(const Attention& a, int64_t b, int64_t h, const SeenKeys& row, F&& f) {
    const RelativeBias& bias = std::get<RelativeBias>(a.bias);
    const int64_t H = a.q.shape[2], D = a.q.shape[3];
    const float root = 1 / std::sqrt(static_cast<float>(D));
    const float *const u = bias.u.ptr<float>() + h * D, *const w = bias.w.ptr<float>() + h * D;
    rows::dispatch_activation(a.q.dtype, [&]<class A>() {
      const A* const query = row_of<A>(a.q, b, row.i, h);
      for (int64_t j = row.first; j <= row.last; ++j) {
        const float* const r = bias.r.ptr<float>() + ((row.last - j) * H + h) * D;
        const A* const key = row_of<A>(a.k, b, j, h / (H / a.k.shape[2]));
        Vec sum{};
        rows::for_vectors(D, [&](int64_t c, auto lanes) {
          sum +=
              (rows::load(query + c, lanes) + rows::load(w + c, lanes)) * rows::load(r + c, lanes) +
              rows::load(u + c, lanes) * rows::load(key + c, lanes);
        });
        f(j - row.first, root * simd::sum(sum));
      }
    });
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
          const float* const part = partial(s, a, b, h) + n * Dp;
          for (int64_t c = 0; c < D; ++c) to[c] += part[c];
        }
      }
    });
  }

 private:
  static int64_t distances(int64_t T, bool causal) { return causal ? T : 2 * T - 1; }
  static int64_t stride(int64_t n) { return padded(n) + 2 * simd::kWidth; }
  /// For one head of a sequence: dr, reversed, then du and dw, (distances + 2, padded(D)).
  static float* partial(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h) {
    return s.of_content.ptr<float>() + (b * a.q.shape[2] + h) * s.of_content.stride[0];
  }
  template <class A>
  static const A* row_of(const Tensor& x, int64_t b, int64_t t, int64_t h) {
    return static_cast<const A*>(x.data) + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
  }
  template <class A>
  float dot(const float* x, const A* y) const {
    Vec sum{};
    rows::for_vectors(D_, [&](int64_t c, auto lanes) {
      sum += rows::load(x + c, lanes) * rows::load(y + c, lanes);
    });
    return simd::sum(sum);
  }
  const float* of_head(const Tensor& x) const { return x.ptr<float>() + h_ * D_; }

  /// The place of the row's first key in its products.
  int64_t place(const RowSpan& row) const { return row.first - from_ + count_ - 1 - row.r; }
  /// Calls f(n, biases) for the vectors of a row.
  template <class F>
  void for_biases(const RowSpan& row, F&& f) const {
    const float* const products = products_ + row.r * S_ + place(row);
    for (int64_t n = 0; n < row.n; n += simd::kWidth) {
      f(n, simd::load(products + n) + simd::load(of_keys_ + row.first + n));
    }
  }

  const Attention& a_;
  const RelativeBias& bias_;
  const AttentionScratch& s_;
  const int64_t T_ = a_.q.shape[1], H_ = a_.q.shape[2], D_ = a_.q.shape[3], Dp_ = padded(D_);
  const int64_t n_ = distances(T_, a_.causal());
  // Row stride of the products: the distances of all rows of a strip.
  const int64_t S_ = strip_stride(T_) + (a_.causal() ? 0 : kK);
  const float root_ = 1 / std::sqrt(static_cast<float>(D_));
  int64_t b_ = 0, h_ = 0;
  int64_t from_ = 0, count_ = 0;    // of the strip: first key, rows
  int64_t begin_ = 0, length_ = 0;  // of the strip: its distances, in r with the farthest first
  float *transposed_, *reversed_;   // r, farthest first: (D, stride), (distances, padded D)
  float *of_keys_, *dkeys_;         // by key: <u, k> / sqrt(D), and sums of db
  float *query_, *dquery_;          // (q + w) / sqrt(D) of the strip
  float *products_, *dproducts_;    // of a strip's rows with r
};

template <class F>
inline void with_rows(const RelativeBias&, F&& f) {
  f.template operator()<RelativeRows>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
