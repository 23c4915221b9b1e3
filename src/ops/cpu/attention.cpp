#include "ops/cpu/attention.h"

#include <vector>

#include "core/parallel.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Hands out pieces of one thread's scratch.
class Pieces {
 public:
  explicit Pieces(float* memory) : next_(memory) {}
  float* take(int64_t floats) {
    float* p = next_;
    next_ += padded(floats);
    return p;
  }

 private:
  float* next_;
};

int64_t forward_floats(int64_t T, int64_t D) {
  const int64_t Tp = padded_keys(T), Dp = padded(D);
  return 2 * Tp * Dp + table_length(T) + 2 * kQ * Dp + kTile + 4 * kQ;
}
int64_t backward_floats(int64_t T, int64_t D) {
  const int64_t Tp = padded_keys(T), Dp = padded(D);
  return 9 * Tp * Dp + table_length(T) + Tp + 2 * kTile;
}

float* thread_scratch(const AttentionScratch& s) {
  require(thread_index() < s.packed.shape[0], "no more threads than when the scratch was planned");
  return s.packed.ptr<float>() + thread_index() * s.packed.stride[0];
}

// --- forward ------------------------------------------------------------------------------------

/// The running softmax of one tile of queries.
struct Running {
  float *out, *maximum, *sum;  // (kQ, Dp), (kQ), (kQ)
};

/// Turns the content scores of one tile into probabilities relative to the running maximum and
/// rescales what the rows have gathered so far.
template <bool kTable, ScaleMode kScale>
void online_softmax(float* tile, const Running& run, const float* table, const float* t,
                    const int32_t* first, int64_t T, int64_t i0, int64_t i1, int64_t j0, int64_t Dp,
                    bool all_visible) {
  for (int64_t i = i0; i < i1; ++i) {
    const int64_t r = i - i0;
    float* row = tile + r * kStride + kMargin;
    const float* bias = kTable ? table + table_offset(T, i, j0) : nullptr;
    const Vec scale = simd::splat(kScale == ScaleMode::none ? 1.0f : t[i]);
    Vec z[kV];
    Vec highest = simd::splat(kMinusInfinity);
    for (int64_t v = 0; v < kV; ++v) {
      const int64_t j = v * simd::kWidth;
      z[v] = logits<kTable, kScale>(simd::load(row + j), kTable ? bias + j : nullptr, scale);
      if (!all_visible) {
        z[v] = visible(j0 + j, first[i], i) ? z[v] : simd::splat(kMinusInfinity);
      }
      highest = simd::max(highest, z[v]);
    }
    const float m = std::max(run.maximum[r], simd::maximum(highest));
    if (m == kMinusInfinity) {  // the row sees no key of this tile, nor of any before it
      for (int64_t v = 0; v < kV; ++v) simd::store(row + v * simd::kWidth, Vec{});
      continue;
    }
    Vec total{};
    for (int64_t v = 0; v < kV; ++v) {
      Vec p = simd::exp(z[v] - m);
      if (!all_visible) p = z[v] == kMinusInfinity ? Vec{} : p;
      simd::store(row + v * simd::kWidth, p);
      total += p;
    }
    const float keep = run.maximum[r] == m ? 1.0f : std::exp(run.maximum[r] - m);
    run.maximum[r] = m;
    run.sum[r] = run.sum[r] * keep + simd::sum(total);
    if (keep != 1.0f) {
      float* o = run.out + r * Dp;
      for (int64_t c = 0; c < Dp; c += simd::kWidth) simd::store(o + c, simd::load(o + c) * keep);
    }
  }
}

template <class A, bool kTable, ScaleMode kScale>
void forward_head_group(Tensor out, Tensor lse, const Attention& a, const AttentionScratch& s,
                        int64_t b, int64_t kh) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t group = H / a.k.shape[2], Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / std::sqrt(static_cast<float>(D));
  const int32_t* first = first_keys(a, b);
  Pieces pieces(thread_scratch(s));
  float* keys = pieces.take(Tp * Dp);
  float* values = pieces.take(Tp * Dp);
  float* table = pieces.take(table_length(T));
  float* query = pieces.take(kQ * Dp);
  const Running run{pieces.take(kQ * Dp), pieces.take(kQ), pieces.take(kQ)};
  float* tile = pieces.take(kTile);

  pack_rows<A>(values, a.k, b, kh, 0, T, Dp, 1);  // on their way to `keys`
  transpose_tiles(keys, values, T, D, Dp);
  pack_rows<A>(values, a.v, b, kh, 0, T, Dp, 1);
  std::fill_n(values + T * Dp, (Tp - T) * Dp, 0.0f);

  for (int64_t h = kh * group; h < (kh + 1) * group; ++h) {
    if (kTable) reverse_table(table, a.table.ptr<float>() + h * a.table.stride[0], T);
    const float* t = kScale == ScaleMode::none ? nullptr : a.scale.ptr<float>() + (b * H + h) * T;
    for (int64_t i0 = 0; i0 < T; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T), rows = i1 - i0;
      pack_rows<A>(query, a.q, b, h, i0, i1, Dp, root);
      std::fill_n(run.out, kQ * Dp, 0.0f);
      std::fill_n(run.maximum, kQ, kMinusInfinity);
      std::fill_n(run.sum, kQ, 0.0f);
      for (int64_t j0 = first[i0] / kK * kK; j0 < i1; j0 += kK) {
        tile::product<false>(rows, kK, D, {query, Dp, 1}, keys + j0 * D, kK, tile + kMargin,
                             kStride);
        online_softmax<kTable, kScale>(tile, run, table, t, first, T, i0, i1, j0, Dp,
                                       whole(first, i0, i1, j0));
        const int64_t live = std::min(kK, i1 - j0);
        tile::product<true>(rows, Dp, live, {tile + kMargin, kStride, 1}, values + j0 * Dp, Dp,
                            run.out, Dp);
      }
      for (int64_t r = 0; r < rows; ++r) {
        const float inverse = 1 / run.sum[r];
        for (int64_t c = 0; c < Dp; ++c) run.out[r * Dp + c] *= inverse;
        lse.ptr<float>()[(b * H + h) * T + i0 + r] = run.maximum[r] + std::log(run.sum[r]);
      }
      unpack_rows<A>(out, b, h, i0, i1, run.out, Dp, 1);
    }
  }
}

// --- backward -----------------------------------------------------------------------------------

/// Reads the content scores in `p` and dP in `dz`; leaves p and ds = t dz there, and adds to dt.
/// db (dz, or ds with ScaleMode::both) is what the table receives; where it differs from ds, the
/// diagonals are summed before the factor t is applied (see backward_head_group).
template <bool kTable, ScaleMode kScale>
void softmax_adjoint(float* p, float* dz, float* dt, const float* table, const float* t,
                     const float* lse, const float* D_i, const int32_t* first, int64_t T,
                     int64_t i0, int64_t i1, int64_t j0, bool all_visible) {
  for (int64_t i = i0; i < i1; ++i) {
    float* p_row = p + (i - i0) * kStride + kMargin;
    float* dz_row = dz + (i - i0) * kStride + kMargin;
    const float* bias = kTable ? table + table_offset(T, i, j0) : nullptr;
    const Vec scale = simd::splat(kScale == ScaleMode::none ? 1.0f : t[i]);
    const bool one = first[i] == i;  // one visible key: p = 1 and dz = 0 exactly
    const float alone = one ? 0.0f : 1.0f;
    Vec dscale{};
    for (int64_t v = 0; v < kV; ++v) {
      const int64_t j = v * simd::kWidth;
      const Vec s = simd::load(p_row + j);
      const Vec z = logits<kTable, kScale>(s, kTable ? bias + j : nullptr, scale);
      Vec prob = simd::exp(z - lse[i]);
      if (!all_visible) {
        prob = visible(j0 + j, first[i], i) ? (one ? simd::splat(1.0f) : prob) : Vec{};
      }
      Vec d = prob * (simd::load(dz_row + j) - D_i[i]) * alone;
      if constexpr (kScale == ScaleMode::content) dscale += d * s;
      if constexpr (kScale == ScaleMode::both) {
        dscale += d * (kTable ? s + simd::load(bias + j) : s);
        d *= scale;
      }
      simd::store(p_row + j, prob);
      simd::store(dz_row + j, d);
    }
    if constexpr (kScale != ScaleMode::none) dt[i] += simd::sum(dscale);
  }
}

/// Adds the diagonals of one tile to the reversed table: lane n of the tile's 2 kK - 1 distances is
/// the sum over rows r of element (r, n - (kQ - 1) + r).
void add_diagonals(float* dtable, const float* dz, int64_t rows, int64_t T, int64_t i0,
                   int64_t j0) {
  float* out = dtable + table_offset(T, i0 + kQ - 1, j0);
  for (int64_t n0 = 0; n0 < kQ + kK; n0 += simd::kWidth) {
    const int64_t from = std::max<int64_t>(0, kQ - 1 - n0 - (simd::kWidth - 1));
    const int64_t to = std::min<int64_t>(rows, kQ - 1 - n0 + kK);
    Vec sum{};
    for (int64_t r = from; r < to; ++r) {
      sum += simd::load(dz + r * kStride + kMargin + n0 - (kQ - 1) + r);
    }
    simd::store(out + n0, simd::load(out + n0) + sum);
  }
}

template <class A, bool kTable, ScaleMode kScale>
void backward_head_group(const AttentionGradients& g, Tensor dout, Tensor out, Tensor lse,
                         const Attention& a, const AttentionScratch& s, int64_t b, int64_t kh) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t group = H / a.k.shape[2], Dp = padded(D), Tp = padded_keys(T);
  const float root = 1 / std::sqrt(static_cast<float>(D));
  const int32_t* first = first_keys(a, b);
  Pieces pieces(thread_scratch(s));
  float* keys = pieces.take(Tp * Dp);      // rows
  float* keys_t = pieces.take(Tp * Dp);    // transposed tiles
  float* values_t = pieces.take(Tp * Dp);  // transposed tiles
  float* dkeys = pieces.take(Tp * Dp);
  float* dvalues = pieces.take(Tp * Dp);
  float* query = pieces.take(Tp * Dp);
  float* dquery = pieces.take(Tp * Dp);
  float* d_o = pieces.take(Tp * Dp);
  float* o_tile = pieces.take(kQ * Dp);
  float* D_i = pieces.take(Tp);
  float* table = pieces.take(table_length(T));
  float* p = pieces.take(kTile);
  float* dz = pieces.take(kTile);
  std::fill_n(dz, kTile, 0.0f);  // the margins stay zero

  pack_rows<A>(keys, a.v, b, kh, 0, T, Dp, 1);  // on their way to `values_t`
  transpose_tiles(values_t, keys, T, D, Dp);
  pack_rows<A>(keys, a.k, b, kh, 0, T, Dp, 1);
  std::fill_n(keys + T * Dp, (Tp - T) * Dp, 0.0f);
  transpose_tiles(keys_t, keys, T, D, Dp);
  std::fill_n(dkeys, Tp * Dp, 0.0f);
  std::fill_n(dvalues, Tp * Dp, 0.0f);

  for (int64_t h = kh * group; h < (kh + 1) * group; ++h) {
    const float* row_lse = lse.ptr<float>() + (b * H + h) * T;
    const float* t = kScale == ScaleMode::none ? nullptr : a.scale.ptr<float>() + (b * H + h) * T;
    float* dt = kScale == ScaleMode::none ? nullptr : g.dscale.ptr<float>() + (b * H + h) * T;
    float* dtable = nullptr;
    if constexpr (kTable) {
      reverse_table(table, a.table.ptr<float>() + h * a.table.stride[0], T);
      dtable = s.dtable.ptr<float>() + (b * H + h) * s.dtable.stride[1];
      std::fill_n(dtable, table_length(T), 0.0f);
    }
    if (dt) std::fill_n(dt, T, 0.0f);
    pack_rows<A>(query, a.q, b, h, 0, T, Dp, root);
    pack_rows<A>(d_o, dout, b, h, 0, T, Dp, 1);
    std::fill_n(dquery, Tp * Dp, 0.0f);
    for (int64_t i0 = 0; i0 < T; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T);
      pack_rows<A>(o_tile, out, b, h, i0, i1, Dp, 1);
      for (int64_t i = i0; i < i1; ++i) {
        Vec sum{};
        for (int64_t c = 0; c < Dp; c += simd::kWidth) {
          sum += simd::load(d_o + i * Dp + c) * simd::load(o_tile + (i - i0) * Dp + c);
        }
        D_i[i] = simd::sum(sum);
      }
    }

    for (int64_t i0 = 0; i0 < T; i0 += kQ) {
      const int64_t i1 = std::min(i0 + kQ, T), rows = i1 - i0;
      const float* q = query + i0 * Dp;
      const float* go = d_o + i0 * Dp;
      for (int64_t j0 = first[i0] / kK * kK; j0 < i1; j0 += kK) {
        tile::product<false>(rows, kK, D, {q, Dp, 1}, keys_t + j0 * D, kK, p + kMargin, kStride);
        tile::product<false>(rows, kK, D, {go, Dp, 1}, values_t + j0 * D, kK, dz + kMargin,
                             kStride);
        softmax_adjoint<kTable, kScale>(p, dz, dt, table, t, row_lse, D_i, first, T, i0, i1, j0,
                                        whole(first, i0, i1, j0));
        if constexpr (kTable) add_diagonals(dtable, dz, rows, T, i0, j0);
        if constexpr (kScale == ScaleMode::content) {
          for (int64_t r = 0; r < rows; ++r) {
            float* row = dz + r * kStride + kMargin;
            for (int64_t c = 0; c < kK; c += simd::kWidth) {
              simd::store(row + c, simd::load(row + c) * t[i0 + r]);
            }
          }
        }
        const int64_t live = std::min(kK, i1 - j0);
        tile::product<true>(live, Dp, rows, {p + kMargin, 1, kStride}, go, Dp, dvalues + j0 * Dp,
                            Dp);
        tile::product<true>(live, Dp, rows, {dz + kMargin, 1, kStride}, q, Dp, dkeys + j0 * Dp, Dp);
        tile::product<true>(rows, Dp, live, {dz + kMargin, kStride, 1}, keys + j0 * Dp, Dp,
                            dquery + i0 * Dp, Dp);
      }
    }
    unpack_rows<A>(g.dq, b, h, 0, T, dquery, Dp, root);
  }
  unpack_rows<A>(g.dk, b, kh, 0, T, dkeys, Dp, 1);  // q carried 1 / sqrt(D)
  unpack_rows<A>(g.dv, b, kh, 0, T, dvalues, Dp, 1);
}

/// Sums the reversed partial tables over sequences, in order, into g.dtable (H, T).
void reduce_tables(const AttentionGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  parallel_for(H, [&](int64_t h) {
    float* total = g.dtable.ptr<float>() + h * g.dtable.stride[0];
    for (int64_t d = 0; d < T; ++d) {
      float sum = 0;
      for (int64_t b = 0; b < B; ++b) {
        const float* part = s.dtable.ptr<float>() + (b * H + h) * s.dtable.stride[1];
        sum += part[table_offset(T, d, 0)];
      }
      total[d] = sum;
    }
  });
}

template <class F>
void dispatch_dtype(Dtype t, F&& f) {
  if (t == Dtype::f32) return f.template operator()<float>();
  require(t == Dtype::bf16, "f32 or bf16 activations in the CPU attention");
  f.template operator()<bf16>();
}

}  // namespace

void AttentionScratch::plan(Arena& arena, const WorkspaceShape& w) {
  const int64_t floats = w.backward ? std::max(backward_floats(w.T, w.D), forward_floats(w.T, w.D))
                                    : forward_floats(w.T, w.D);
  arena.add("scratch.attention", &packed, Dtype::f32, {max_threads(), padded(floats) + 256});
  if (w.backward) {
    arena.add("scratch.attention_tables", &dtable, Dtype::f32, {w.B, w.H, table_length(w.T)});
  }
}

void cpu_attention_forward(Tensor out, Tensor lse, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], K = a.k.shape[2];
  dispatch_dtype(a.q.dtype, [&]<class A>() {
    dispatch_form(a, [&]<bool kTable, ScaleMode kScale>() {
      parallel_for(B * K, [&](int64_t n) {
        forward_head_group<A, kTable, kScale>(out, lse, a, s, n / K, n % K);
      });
    });
  });
}

void cpu_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out, Tensor lse,
                            const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], K = a.k.shape[2];
  dispatch_dtype(a.q.dtype, [&]<class A>() {
    dispatch_form(a, [&]<bool kTable, ScaleMode kScale>() {
      parallel_for(B * K, [&](int64_t n) {
        backward_head_group<A, kTable, kScale>(g, dout, out, lse, a, s, n / K, n % K);
      });
    });
  });
  if (a.table) reduce_tables(g, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
