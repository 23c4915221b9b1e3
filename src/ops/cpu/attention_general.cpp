// The general path of the CPU attention: any bias with any normalizer. A task takes some rows of
// queries at a time and keeps their logits of all keys, O(T); stages run one after another on whole
// rows (bias, normalizer) and on tiles (products). What a row gives to dz is then exact: D_i comes
// from the row's own weights and dP. Tiles without any weight are marked and skipped.

#include <algorithm>

#include "ops/cpu/attention.h"
#include "ops/cpu/attention_bias_rows.h"
#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_partials.h"
#include "ops/cpu/attention_row_sums.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

static_assert(kLiveKeys == kK);

constexpr int64_t kStripLogits = int64_t{1} << 16;

/// Rows at a time: as many as keep three such arrays near the processor, and whole groups.
int64_t strip_rows(int64_t T) {
  return T <= kStripLogits / 64 ? 64 : T <= kStripLogits / 32 ? 32 : kLiveRows;
}
int64_t strip_stride(int64_t T) { return padded_keys(T) + simd::kWidth; }
int64_t strip_floats(int64_t T) { return strip_rows(T) * strip_stride(T); }
/// The most of any length up to T.
int64_t most_strip_floats(int64_t T) {
  int64_t most = strip_floats(T);
  for (int64_t rows = 64; rows > kLiveRows; rows /= 2) {
    most = std::max(most, strip_floats(std::min(T, kStripLogits / rows)));
  }
  return most;
}

/// AttentionSaved::live of one head; without it every tile is live.
class LiveTiles {
 public:
  LiveTiles(const Tensor& live, int64_t b, int64_t h) {
    if (!live) return;
    words_ = live.ptr<int32_t>() + b * live.stride[0] + h * live.stride[1];
    per_group_ = live.shape[3];
  }
  void clear(int64_t i0, int64_t i1) const {
    if (!words_) return;
    const int64_t begin = i0 / kLiveRows, end = ceil_div(i1, kLiveRows);
    std::fill_n(words_ + begin * per_group_, (end - begin) * per_group_, 0);
  }
  void mark(int64_t i, int64_t j) const {
    if (words_) word(i / kLiveRows, j) |= bit(j);
  }
  /// Whether any of the groups of rows [i0, i1) gives weight to the tile of key j.
  bool any(int64_t i0, int64_t i1, int64_t j) const {
    if (!words_) return true;
    for (int64_t g = i0 / kLiveRows; g < ceil_div(i1, kLiveRows); ++g) {
      if (word(g, j) & bit(j)) return true;
    }
    return false;
  }

 private:
  static int32_t bit(int64_t j) { return static_cast<int32_t>(uint32_t{1} << (j / kK % 32)); }
  int32_t& word(int64_t group, int64_t j) const { return words_[group * per_group_ + j / kK / 32]; }

  int32_t* words_ = nullptr;
  int64_t per_group_ = 0;
};

/// The rows of queries [i0, i1) and the keys [from, to) of whole tiles that any of them sees:
/// arrays of (rows, strip_stride) floats.
struct Strip {
  const Attention& a;
  const int32_t* first;  // of the sequence
  int64_t i0, i1, from, to;

  Strip(const Attention& of, int64_t b, int64_t begin, int64_t end)
      : a(of),
        first(first_keys(of, b)),
        i0(begin),
        i1(end),
        from(first[begin] / kK * kK),
        to(padded_keys(end)) {}

  int64_t rows() const { return i1 - i0; }
  float* at(float* array, int64_t i, int64_t j) const {
    return array + (i - i0) * strip_stride(a.q.shape[1]) + (j - from);
  }
  RowSpan row(int64_t i) const { return {i, i - i0, first[i], i - first[i] + 1}; }

  /// What lies beside a row's own keys becomes `x`.
  void fill_beside(float* array, const RowSpan& row, float x) const {
    std::fill(at(array, row.i, from), at(array, row.i, row.first), x);
    std::fill(at(array, row.i, row.first + row.n), at(array, row.i, to) + simd::kWidth, x);
  }
  template <class F>
  void for_tiles(F&& f) const {
    for (int64_t j0 = from; j0 < to; j0 += kK) f(j0);
  }
};

/// t and what the bias is multiplied by, of a row.
struct Factors {
  const float* t;  // of the head; null: 1
  bool on_bias;

  Factors(const Attention& a, int64_t b, int64_t h)
      : t(a.scale.t ? a.scale.t.ptr<float>() + (b * a.q.shape[2] + h) * a.q.shape[1] : nullptr),
        on_bias(a.scale.on_bias) {}
  float of_content(int64_t i) const { return t ? t[i] : 1; }
  float of_bias(int64_t i) const { return on_bias ? of_content(i) : 1; }
};

/// A row's numbers of AttentionSaved.
SavedRow saved_row(const AttentionSaved& s, int64_t at) {
  SavedRow row;
  if (s.level) row.level = s.level.ptr<float>()[at];
  if (s.threshold) row.threshold = s.threshold.ptr<float>()[at];
  if (s.last) row.last = s.last.ptr<int32_t>()[at];
  return row;
}
void save_row(const AttentionSaved& s, int64_t at, const SavedRow& row) {
  if (s.level) s.level.ptr<float>()[at] = row.level;
  if (s.threshold) s.threshold.ptr<float>()[at] = row.threshold;
  if (s.last) s.last.ptr<int32_t>()[at] = row.last;
}

template <class A>
void forward_part(Tensor out, const AttentionSaved& saved, const Attention& a, float* scratch,
                  int64_t b, Span heads, Span queries, RowBias& bias, RowNormalizer& normalizer) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / a.content_divisor<float>();
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);
  float* values = pieces.take(Tp * Dp);
  float* query = pieces.take(kQ * Dp);
  float* sum = pieces.take(kQ * Dp);
  float* z = pieces.take(strip_floats(T));

  const int64_t from = first_keys(a, b)[queries.begin] / kK * kK, to = queries.end;
  pack_rows<A>(values + from * Dp, a.k, b, kh, from, to, Dp, 1);  // on their way to `keys`
  transpose_tiles(keys, values, from, to, D, Dp);
  pack_rows<A>(values + from * Dp, a.v, b, kh, from, to, Dp, 1);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    bias.set_head(b, h);
    normalizer.set_head(h);
    const Factors t(a, b, h);
    const LiveTiles live(saved.live, b, h);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += strip_rows(T)) {
      const Strip s(a, b, i0, std::min(i0 + strip_rows(T), queries.end));
      pack_rows<A>(query, a.q, b, h, s.i0, s.i1, Dp, root);
      bias.set_tile(s.i0, s.i1, s.from);
      live.clear(s.i0, s.i1);
      s.for_tiles([&](int64_t j0) {
        tile::product<false>(s.rows(), kK, D, {query, Dp, 1}, keys + j0 * D, kK, s.at(z, s.i0, j0),
                             strip_stride(T));
      });
      for (int64_t i = s.i0; i < s.i1; ++i) {
        const RowSpan row = s.row(i);
        float* const own = s.at(z, i, row.first);
        bias.add(own, row, t.of_content(i), t.of_bias(i));
        s.fill_beside(z, row, row::kMinusInfinity);
        SavedRow of_row;
        normalizer.weights(own, row.n, of_row);
        of_row.last += static_cast<int32_t>(row.first);
        save_row(saved, (b * H + h) * T + i, of_row);
        s.fill_beside(z, row, 0);
        s.for_tiles([&](int64_t j0) {
          // NaN is weight too.
          if (!(row::maximum(s.at(z, i, j0), kK) <= 0)) live.mark(i, j0);
        });
      }
      std::fill_n(sum, s.rows() * Dp, 0.0f);
      s.for_tiles([&](int64_t j0) {
        if (!live.any(s.i0, s.i1, j0)) return;
        tile::product<true>(s.rows(), Dp, std::min(kK, s.i1 - j0),
                            {s.at(z, s.i0, j0), strip_stride(T), 1}, values + j0 * Dp, Dp, sum, Dp);
      });
      unpack_rows<A>(out, b, h, s.i0, s.i1, sum, Dp, 1);
    }
  }
}

/// The query heads in `heads`, which read one key head.
template <class A>
void backward_part(const AttentionGradients& g, Tensor dout, const AttentionSaved& saved,
                   const Attention& a, float* scratch, int64_t b, Span heads, RowBias& bias,
                   RowNormalizer& normalizer) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = heads.begin / (H / a.k.shape[2]), Dp = padded(D), Tp = padded_keys(T);
  const int64_t S = strip_stride(T);
  const float root = 1 / a.content_divisor<float>();
  const bool stick = a.normalizer.form.kind == NormalizerKind::stick_breaking;
  Pieces pieces(scratch);
  float* keys = pieces.take(Tp * Dp);      // rows
  float* keys_t = pieces.take(Tp * Dp);    // transposed tiles
  float* values_t = pieces.take(Tp * Dp);  // transposed tiles
  float* dkeys = pieces.take(Tp * Dp);
  float* dvalues = pieces.take(Tp * Dp);
  float* query = pieces.take(kQ * Dp);
  float* dquery = pieces.take(kQ * Dp);
  float* d_o = pieces.take(kQ * Dp);
  float* p = pieces.take(strip_floats(T));
  float* u = pieces.take(strip_floats(T));
  float* dz = pieces.take(strip_floats(T));

  pack_rows<A>(keys, a.v, b, kh, 0, T, Dp, 1);  // on the way to `values_t`
  transpose_tiles(values_t, keys, 0, T, D, Dp);
  pack_rows<A>(keys, a.k, b, kh, 0, T, Dp, 1);
  transpose_tiles(keys_t, keys, 0, T, D, Dp);
  std::fill_n(dkeys, T * Dp, 0.0f);
  std::fill_n(dvalues, T * Dp, 0.0f);

  for (int64_t h = heads.begin; h < heads.end; ++h) {
    bias.set_head(b, h);
    bias.clear_head();
    normalizer.set_head(h);
    const Factors t(a, b, h);
    const LiveTiles live(saved.live, b, h);
    const int64_t of_head = (b * H + h) * T;
    for (int64_t part = 0; part < parts_of(T); ++part) {
      bias.set_part(part);
      const Span queries = query_part(T, part);
      for (int64_t i0 = queries.begin; i0 < queries.end; i0 += strip_rows(T)) {
        const Strip s(a, b, i0, std::min(i0 + strip_rows(T), queries.end));
        const auto for_live = [&](auto&& f) {
          s.for_tiles([&](int64_t j0) {
            if (live.any(s.i0, s.i1, j0)) f(j0);
          });
        };
        pack_rows<A>(query, a.q, b, h, s.i0, s.i1, Dp, root);
        pack_rows<A>(d_o, dout, b, h, s.i0, s.i1, Dp, 1);
        bias.set_tile(s.i0, s.i1, s.from);
        s.for_tiles([&](int64_t j0) {
          float *const scores = s.at(p, s.i0, j0), *const products = s.at(dz, s.i0, j0);
          if (live.any(s.i0, s.i1, j0)) {
            tile::product<false>(s.rows(), kK, D, {query, Dp, 1}, keys_t + j0 * D, kK, scores, S);
            tile::product<false>(s.rows(), kK, D, {d_o, Dp, 1}, values_t + j0 * D, kK, products, S);
            return;
          }
          for (int64_t r = 0; r < s.rows(); ++r) {
            std::fill_n(scores + r * S, kK, row::kMinusInfinity);
            std::fill_n(products + r * S, kK, 0.0f);
          }
        });
        for (int64_t i = s.i0; i < s.i1; ++i) {
          const RowSpan row = s.row(i);
          float* const own = s.at(p, i, row.first);
          float* const gradient = s.at(dz, i, row.first);
          bias.add(own, row, t.of_content(i), t.of_bias(i));
          s.fill_beside(p, row, row::kMinusInfinity);
          s.fill_beside(dz, row, 0);
          SavedRow of_row = saved_row(saved, of_head + i);
          of_row.last -= static_cast<int32_t>(row.first);
          normalizer.recall(own, s.at(u, i, row.first), row.n, of_row);
          s.fill_beside(p, row, 0);
          float dalpha = 0;
          if (row.n > 1) {
            dalpha = normalizer.adjoint(gradient, own, s.at(u, i, row.first), row.n);
          } else {  // one visible key: its weight is a constant
            if (!stick) *own = 1;
            *gradient = 0;
          }
          if (g.dalpha) g.dalpha.ptr<float>()[of_head + i] = dalpha;
          const bool scaled = t.t && t.on_bias;
          const float of_bias = bias.adjoint(gradient, row, t.of_bias(i), scaled);
          if (g.dscale) g.dscale.ptr<float>()[of_head + i] = of_bias;
        }
        std::fill_n(dquery, s.rows() * Dp, 0.0f);
        for_live([&](int64_t j0) {
          const int64_t keys_here = std::min(kK, s.i1 - j0);
          tile::product<true>(s.rows(), Dp, keys_here, {s.at(dz, s.i0, j0), S, 1}, keys + j0 * Dp,
                              Dp, dquery, Dp);
          tile::product<true>(keys_here, Dp, s.rows(), {s.at(p, s.i0, j0), 1, S}, d_o, Dp,
                              dvalues + j0 * Dp, Dp);
        });
        // dquery is sum dz k: with q it makes the content's part of dt, times t it is dq.
        for (int64_t i = s.i0; i < s.i1 && t.t; ++i) {
          float *const q = query + (i - s.i0) * Dp, *const dq = dquery + (i - s.i0) * Dp;
          simd::Vec product{};
          for (int64_t c = 0; c < Dp; c += simd::kWidth) {
            product += simd::load(q + c) * simd::load(dq + c);
          }
          g.dscale.ptr<float>()[of_head + i] += simd::sum(product);
          row::scale(q, Dp, t.t[i]);
          row::scale(dq, Dp, t.t[i]);
        }
        for_live([&](int64_t j0) {
          tile::product<true>(std::min(kK, s.i1 - j0), Dp, s.rows(), {s.at(dz, s.i0, j0), 1, S},
                              query, Dp, dkeys + j0 * Dp, Dp);
        });
        unpack_rows<A>(g.dq, b, h, s.i0, s.i1, dquery, Dp, root);
      }
    }
  }
  unpack_rows<A>(g.dk, b, kh, 0, T, dkeys, Dp, 1);  // q carried the content scale
  unpack_rows<A>(g.dv, b, kh, 0, T, dvalues, Dp, 1);
}

/// work(bias, normalizer, scratch that is left) for a task.
template <class F>
void with_stages(const Attention& a, const AttentionScratch& s, int64_t slot,
                 const BiasGradients* g, F&& work) {
  const int64_t T = a.q.shape[1];
  float* const scratch = s.of_slot(slot);
  float* const rest = scratch + padded(row_bias_floats(T)) + simd::kWidth;
  const auto with_bias = [&](RowBias& bias) {
    const auto with_both = [&](RowNormalizer& normalizer) { work(bias, normalizer, rest); };
    with_row_normalizer(a.normalizer, T, std::ref(with_both));
  };
  with_row_bias(a, s, g, scratch, std::ref(with_bias));
}

}  // namespace

int64_t general_forward_floats(int64_t T, int64_t D) {
  return row_bias_floats(T) + 2 * simd::kWidth + 2 * padded_keys(T) * padded(D) +
         2 * kQ * padded(D) + most_strip_floats(T);
}
int64_t general_backward_floats(int64_t T, int64_t D) {
  return row_bias_floats(T) + 2 * simd::kWidth + 5 * padded_keys(T) * padded(D) +
         3 * kQ * padded(D) + 3 * most_strip_floats(T);
}

void cpu_attention_general_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                                   const AttentionScratch& s) {
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
      if (queries.begin == queries.end) return;
      with_stages(a, s, slot, nullptr,
                  [&](RowBias& bias, RowNormalizer& normalizer, float* scratch) {
                    forward_part<A>(out, saved, a, scratch, b, heads, queries, bias, normalizer);
                  });
    });
  });
}

void cpu_attention_general_backward(const AttentionGradients& g, Tensor dout,
                                    const AttentionSaved& saved, const Attention& a,
                                    const AttentionScratch& s) {
  const int64_t H = a.q.shape[2], K = a.k.shape[2], group = H / K;
  dispatch_activation(a.q.dtype, [&]<class A>() {
    parallel_for_slots(a.q.shape[0] * K, [&](int64_t n, int64_t slot) {
      const int64_t kh = n % K;
      with_stages(a, s, slot, &g.bias,
                  [&](RowBias& bias, RowNormalizer& normalizer, float* scratch) {
                    backward_part<A>(g, dout, saved, a, scratch, n / K,
                                     {kh * group, (kh + 1) * group}, bias, normalizer);
                  });
    });
  });
  join_partials(g.bias, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
