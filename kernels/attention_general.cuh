#pragma once
// The general path of attention on a device: any bias, scale and normalizer, chosen at run time, so
// that there is one set of kernels per head dimension. Products of tiles are those of the fused
// kernels; between them logits lie in the registers of the warp that owns their rows.
//
// A warp has one or two groups of 16 rows and whole tiles of 64 keys: what a bit of SavedRows::live
// is about. Logits are formed by the same code everywhere, with every rounding written down, so
// that each kernel finds the same.

#include "attention.cuh"
#include "attention_fire.cuh"
#include "attention_general_live.cuh"
#include "attention_search.cuh"

namespace bamtrain::kernels {

/// Stages of the tiles that a kernel streams: as many as fit beside the others into 99 KiB.
template <int D>
constexpr int kGeneralStages = D > 64 ? 1 : 2;

/// Keys that a warp has in registers at a time: half a tile.
constexpr int kPart = kCarriedKeys, kParts = kTile / kPart;
constexpr int kColumns = kPart / 8;  // of eight keys each

/// Logits, weights or gradients of 16 rows and kPart keys, an accumulator; and of M such groups.
using Logits = float[kColumns][4];
template <int M>
using GroupsOfLogits = float[M][kColumns][4];

/// f(part) of a tile, from the last to the first where `leftwards`.
template <class F>
BAMTRAIN_DEVICE void for_parts(bool leftwards, const F& f) {
  BAMTRAIN_NO_UNROLL
  for (int n = 0; n < kParts; ++n) f(leftwards ? kParts - 1 - n : n);
}
/// Bytes from a tile of keys to its part.
template <int D>
BAMTRAIN_DEVICE uint32_t part_bytes(int part) {
  return static_cast<uint32_t>(part) * kTileBytes<D, kPart>;
}

/// As copy_tile(), in fewer instructions and more registers than the fused kernels can spare.
/// `head`: row_of(x, b, 0, h).
template <int D, int kRows = kTile>
BAMTRAIN_DEVICE void copy_tile_by_rows(SharedAddress to, const Rows<const bf16>& x,
                                       const bf16* head, int t0, int T) {
  constexpr int kChunks = D / 8, kStep = kThreads / kChunks;  // a thread has every kStep-th row
  if constexpr (kThreads % kChunks != 0 || kRows % kStep != 0) {
    copy_tile<D, kRows>(to, {head, 0, x.row, 0}, 0, 0, t0, T);
  } else {
    const int thread = static_cast<int>(device::thread_index().x);
    const int first = thread / kChunks, c = thread % kChunks;
    const bf16* from = head + (t0 + first) * x.row + 8 * c;
    to += static_cast<uint32_t>(first) * kRowBytes<D> + 16u * static_cast<uint32_t>(c);
    if (t0 + kRows <= T) {
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; r += kStep) {
        device::copy_async_16(to, from);
        from += kStep * x.row;
        to += kStep * kRowBytes<D>;
      }
    } else {
      BAMTRAIN_NO_UNROLL
      for (int r = 0; r < kRows; r += kStep) {
        const bool inside = t0 + first + r < T;
        device::copy_async_16(to, inside ? from : x.data, inside);
        from += kStep * x.row;
        to += kStep * kRowBytes<D>;
      }
    }
  }
}

/// Where b comes from.
enum class BiasSource { none, table, formula, fire, formed };
BAMTRAIN_DEVICE BiasSource bias_source(const AttentionInputs<bf16>& a) {
  return a.table != nullptr      ? BiasSource::table
         : a.fire.psi != nullptr ? BiasSource::fire
         : a.numbers != nullptr  ? BiasSource::formula
                                 : BiasSource::none;
}

/// What formulas compute with.
struct GeneralMath {
  BAMTRAIN_DEVICE static float log1p(float a, float b) {
    return kLn2 * device::log2_approx(fmaf(a, b, 1.0f));
  }
  BAMTRAIN_DEVICE static float divide(float a, float b) { return a / b; }
};
/// i - j for a formula: of keys behind the row, which it does not see, 0.
BAMTRAIN_DEVICE float distance_of(int d) { return static_cast<float>(d > 0 ? d : 0); }

/// Whether the weights of a row that sees `seen` keys are constants: one of them alone has any.
BAMTRAIN_DEVICE bool constant_weights(const AttentionInputs<bf16>& a, int seen) {
  if (!traits_of(a.normalizer.kind).constant_alone()) return false;
  if (a.normalizer.kind != NormalizerKind::topk) return seen <= 1;
  return a.normalizer.keys.of(seen, a.T) <= 1;
}

/// A thread's rows of groups that follow each other: 2 m + r is row r of group m.
struct GroupRows {
  int first;
  BAMTRAIN_DEVICE int operator[](int n) const { return first + kWarpRows * (n / 2) + 8 * (n % 2); }
};

/// The queries [i0, i0 + 64 M) of one head, M groups a warp; a thread has parts of two rows of
/// each: index 2 m + r is row r of group m. kFormed: their biases were formed before.
template <int M, bool kFormed = false>
struct GeneralRows {
  static constexpr int kQueries = M * kTile, kRows = 2 * M;
  static constexpr int kSliceFloats = kQueries + kTile;  // of the biases of a tile of keys

  int b, h, i0;
  int end;                    // T
  int first_tile, last_tile;  // of keys

  int warp_begin, warp_end;  // what keys the warp's rows see at most: [warp_begin, warp_end)
  int all_begin, all_end;    // and all of them
  GroupRows rows;            // those past T see nothing
  float factor[kRows];       // z = factor <q, k> + u b
  float* numbers;            // (kQueries), in shared memory: n_i less origin()
  int numbers_from;          // origin's token

  /// All lanes of the warp call, which alone reads and writes what is in `numbers` of its rows.
  /// `query_tile`: kQueryTile<D>. `root`: 1 / a.content_divisor.
  BAMTRAIN_DEVICE GeneralRows(const AttentionInputs<bf16>& a, int of_b, int of_h, int of_i0,
                              int query_tile, float root, float* shared_numbers, const Lane& l)
      : b(of_b),
        h(of_h),
        i0(of_i0),
        end(a.T),
        rows{of_i0 + group_row(l, 0) + l.row},
        numbers(shared_numbers) {
    const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
    const int last_row = i0 + kQueries <= a.T ? i0 + kQueries - 1 : a.T - 1;
    first_tile = first_key[i0] / kTile;
    last_tile = last_row / kTile;

    const int warp_row = i0 + group_row(l, 0);
    warp_begin = warp_row < end ? first_key[warp_row] : end;
    warp_end = i0 + group_row(l, M) < end ? i0 + group_row(l, M) : end;
    all_begin = first_key[last_row];
    all_end = i0 + group_row(l, M) <= end ? warp_row + 1 : 0;
    numbers_from = i0 / query_tile * query_tile;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      factor[r] = root * scale(a, r);
      if (!kFormed && a.numbers != nullptr && l.pair == 0) {
        numbers[rows[r] - i0] =
            inside(r) ? static_cast<float>(a.numbers_of(b, h)[rows[r]] - origin(a)) : 0.0f;
      }
    }
    device::sync_warp();
  }

  /// Where in the block's tile of queries the m-th group of this warp begins.
  BAMTRAIN_DEVICE static int group_row(const Lane& l, int m) {
    return (l.warp * M + m) * kWarpRows;
  }
  BAMTRAIN_DEVICE int64_t of_head(const AttentionInputs<bf16>& a) const {
    return (static_cast<int64_t>(b) * a.H + h) * a.T;
  }
  /// What numbers are less, where a formula is of differences: that of the first query of a tile of
  /// the kernels that own queries.
  BAMTRAIN_DEVICE double origin(const AttentionInputs<bf16>& a) const {
    return is_relative(a.formula) ? a.numbers_of(b, h)[numbers_from] : 0.0;
  }
  /// Where row r is in a (B, H, T) array.
  BAMTRAIN_DEVICE int64_t of_row(const AttentionInputs<bf16>& a, int r) const {
    return of_head(a) + rows[r];
  }
  BAMTRAIN_DEVICE bool inside(int r) const { return rows[r] < end; }
  /// t of row r, and u. Loaded where they are needed, for the registers.
  BAMTRAIN_DEVICE float scale(const AttentionInputs<bf16>& a, int r) const {
    return a.scale != nullptr && inside(r) ? a.scale[of_row(a, r)] : 1.0f;
  }
  BAMTRAIN_DEVICE float bias_scale(const AttentionInputs<bf16>& a, int r) const {
    return a.scale_bias ? scale(a, r) : 1.0f;
  }
  /// The first key that row r sees; of rows past T it is past the row.
  BAMTRAIN_DEVICE int first(const AttentionInputs<bf16>& a, int r) const {
    return inside(r) ? a.first_key[static_cast<int64_t>(b) * a.T + rows[r]] : rows[r] + 1;
  }
  BAMTRAIN_DEVICE int keys(const AttentionInputs<bf16>& a, int r) const {
    return rows[r] - first(a, r) + 1;
  }

  /// Whether any row of the warp may see any of the `keys` keys at j0: the same for all lanes.
  BAMTRAIN_DEVICE bool warp_sees(int j0, int keys) const {
    return j0 < warp_end && j0 + keys > warp_begin;
  }
  /// Whether every row of the warp sees every key of the part at j0.
  BAMTRAIN_DEVICE bool warp_sees_all(int j0) const {
    return j0 >= all_begin && j0 + kPart <= all_end;
  }

  /// The slice of biases of the tile of keys at j0, by all threads: of the table or of psi by
  /// distance, or the numbers of keys.
  BAMTRAIN_DEVICE void fill_slice(float* slice, const AttentionInputs<bf16>& a, int j0,
                                  int thread) const {
    if (kFormed) return;
    if (a.numbers != nullptr) {
      const int j = j0 + thread;
      if (thread >= kTile) return;
      slice[thread] = j < a.T ? static_cast<float>(a.numbers_of(b, h)[j] - origin(a)) : 0.0f;
    } else if (a.table != nullptr) {
      fill_by_distance(slice, a.table + h * a.table_head, j0, thread);
    } else if (a.fire.psi != nullptr) {
      fill_by_distance(slice, a.fire.psi, j0, thread);
    }
  }
  /// Of a function of the distance.
  BAMTRAIN_DEVICE void fill_by_distance(float* slice, const float* values, int j0,
                                        int thread) const {
    for (int n = thread; n < kSliceFloats; n += kThreads) {
      const int d = i0 - j0 + n - (kTile - 1);
      slice[n] = d >= 0 && d < end ? values[d] : 0.0f;
    }
  }
  BAMTRAIN_DEVICE static BiasSource source(const AttentionInputs<bf16>& a) {
    return kFormed ? BiasSource::formed : bias_source(a);
  }
  /// The first query of the n-th block.
  BAMTRAIN_DEVICE static int block_begin(const AttentionInputs<bf16>& a, int n) {
    return a.formed.first + kQueries * n;
  }
  /// What was formed of the head, and where of it row r and the keys from j0 on are: in 32 bits,
  /// for the registers.
  BAMTRAIN_DEVICE int64_t formed_head(const AttentionInputs<bf16>& a) const {
    return a.formed.row(static_cast<int64_t>(b) * a.H + h, i0);
  }
  BAMTRAIN_DEVICE int formed_row(const AttentionInputs<bf16>& a, int r, int j0) const {
    return (rows[r] - i0) * static_cast<int>(a.formed.stride) + j0;
  }
  /// From a tile's slice to that of its part.
  BAMTRAIN_DEVICE static const float* slice_of(const AttentionInputs<bf16>& a, const float* slice,
                                               int part) {
    return a.numbers != nullptr ? slice + kPart * part : slice - kPart * part;
  }
  /// Where in a slice the distance of row r and a key of the part is.
  BAMTRAIN_DEVICE int slice_index(int r, int key) const { return rows[r] - i0 - key + kTile - 1; }
  /// f(row, key, d) of a formula, of row r and a key of the part at j0.
  template <class F>
  BAMTRAIN_DEVICE float by_formula(const float* slice, int r, int j0, int key, const F& f) const {
    return f(numbers[rows[r] - i0], slice[key], distance_of(rows[r] - j0 - key));
  }
  /// db/dn_j there.
  BAMTRAIN_DEVICE float of_key(const AttentionInputs<bf16>& a, const float* slice, int r, int j0,
                               int key) const {
    float derivative = 0;
    with_formula(a.formula, [&]<class Of>() {
      derivative = by_formula(slice, r, j0, key, [](float row, float own, float d) {
        return Of::template of_key<GeneralMath>(row, own, d);
      });
    });
    return derivative;
  }
  /// Where row r's part of the keys at j0 begins, with fire. All lanes of the warp call.
  BAMTRAIN_DEVICE FirePlace place(const AttentionInputs<bf16>& a, int r, int j0,
                                  const Lane& l) const {
    return FirePlace(a, b, h, rows[r], rows[r] - j0, l.pair);
  }

  /// f(r, n, e, b) with the bias of each key of the part at j0. All lanes of the warp call.
  template <class F>
  BAMTRAIN_DEVICE void with_biases(const AttentionInputs<bf16>& a, const float* slice, int j0,
                                   const Lane& l, const F& f) const {
    switch (source(a)) {
      case BiasSource::none:
        return;
      case BiasSource::table:
        return for_elements(
            [&](int r, int n, int e) { f(r, n, e, slice[slice_index(r, l.column(n, e))]); });
      case BiasSource::formula:
        return with_formula(a.formula, [&]<class Of>() {
          for_elements([&](int r, int n, int e) {
            f(r, n, e, by_formula(slice, r, j0, l.column(n, e), [](float row, float key, float d) {
                return Of::template bias<GeneralMath>(row, key, d);
              }));
          });
        });
      case BiasSource::fire:
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          FirePlace at = place(a, r, j0, l);
          float bias[kColumns][2] = {};
          fire_biases(bias, at, a, *this, r, j0, slice, l);
          for_row(r, [&](int n, int e) { f(r, n, e, kLn2 * bias[n][e % 2]); });
        }
        return;
      case BiasSource::formed:
        const float* const of_head = a.formed.b + formed_head(a);
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          const int of_row = formed_row(a, r, j0);
          BAMTRAIN_UNROLL
          for (int n = 0; n < kColumns; ++n) {
            const auto two = *reinterpret_cast<const TwoFloats*>(of_head + of_row + l.column(n, 0));
            f(r, n, r % 2 * 2, two.x);
            f(r, n, r % 2 * 2 + 1, two.y);
          }
        }
    }
  }
  /// Products <q, k> become slope z + offset of their logits, with line_of(r) of row r; those of
  /// keys that a row does not see minus infinity, with stick-breaking of its own too.
  template <class LineOf>
  BAMTRAIN_DEVICE void logits(GroupsOfLogits<M>& z, const LineOf& line_of,
                              const AttentionInputs<bf16>& a, const float* slice, int j0,
                              const Lane& l) const {
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const WeightLine line = line_of(r);
      const float by = factor[r] * line.slope;
      for_row(r, [&](int n, int e) { z[r / 2][n][e] = fmaf(by, z[r / 2][n][e], line.offset); });
    }
    if (source(a) != BiasSource::none) {
      float u[kRows];
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; ++r) u[r] = bias_scale(a, r) * line_of(r).slope;
      with_biases(a, slice, j0, l, [&](int r, int n, int e, float bias) {
        z[r / 2][n][e] = fmaf(u[r], bias, z[r / 2][n][e]);
      });
    }
    const bool stick = a.normalizer.kind == NormalizerKind::stick_breaking;
    if (!stick && warp_sees_all(j0)) return;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int from = first(a, r), to = stick ? rows[r] : rows[r] + 1;
      for_row(r, [&](int n, int e) {
        const int j = j0 + l.column(n, e);
        if (j < from || j >= to) z[r / 2][n][e] = kMinusInfinity;
      });
    }
  }

  /// f(n, e) of each element of row r of its group.
  template <class F>
  BAMTRAIN_DEVICE static void for_row(int r, const F& f) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      f(n, r % 2 * 2);
      f(n, r % 2 * 2 + 1);
    }
  }
  /// f(r, n, e) of each element.
  template <class F>
  BAMTRAIN_DEVICE static void for_elements(const F& f) {
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      for_row(r, [&](int n, int e) { f(r, n, e); });
    }
  }
};

/// The products of the warp's M groups of rows of A (64 M, D) with kPart rows X of a tile.
template <int D, int M>
BAMTRAIN_DEVICE void multiply_part(GroupsOfLogits<M>& c, SharedAddress a, SharedAddress x,
                                   const Lane& l) {
  GeneralRows<M>::for_elements([&](int r, int n, int e) { c[r / 2][n][e] = 0; });
  BAMTRAIN_UNROLL
  for (int step = 0; step < D / 16; ++step) {
    uint32_t rows[M][4];
    BAMTRAIN_UNROLL
    for (int m = 0; m < M; ++m) {
      const auto row = static_cast<uint32_t>(GeneralRows<M>::group_row(l, m));
      load_a<D>(rows[m], a + row * kRowBytes<D>, step, l);
    }
    multiply_transposed<D>(c, rows, x, step, l);
  }
}

/// What the weights and dz of a block's rows need, in shared memory while products are formed, for
/// the registers: LineWeights, and D. The four lanes of a row alone touch what is of it.
class NumbersOfRows {
 public:
  static constexpr int kFloats = 5;  // of a row

  /// `memory`: aligned to 16 bytes.
  BAMTRAIN_DEVICE NumbersOfRows(float* memory, int rows)
      : fours_(reinterpret_cast<Four*>(memory)), thirds_(memory + 4 * rows) {}

  BAMTRAIN_DEVICE void set(int row, const LineWeights& w, float centre) const {
    fours_[row] = {w.slope, w.offset, w.threshold, centre};
    thirds_[row] = w.third;
  }
  BAMTRAIN_DEVICE void set_line(int row, const WeightLine& line) const {
    fours_[row].slope = line.slope;
    fours_[row].offset = line.offset;
  }
  /// That of weights(), of what set_line() writes alone.
  BAMTRAIN_DEVICE WeightLine line(int row, bool takes_logits) const {
    LineWeights w;
    w.slope = fours_[row].slope;
    w.offset = fours_[row].offset;
    return w.line(takes_logits);
  }
  BAMTRAIN_DEVICE LineWeights weights(int row) const {
    LineWeights w;
    w.slope = fours_[row].slope;
    w.offset = fours_[row].offset;
    w.threshold = fours_[row].threshold;
    w.third = thirds_[row];
    return w;
  }
  /// D.
  BAMTRAIN_DEVICE float& centre(int row) const { return fours_[row].centre; }

 private:
  struct alignas(16) Four {
    float slope, offset, threshold, centre;
  };
  Four* fours_;
  float* thirds_;
};

/// Logits of topk with the threshold that have no weight become minus infinity, in row r's part of
/// the keys at j0.
template <class Block, int M>
BAMTRAIN_DEVICE void drop_ties(GroupsOfLogits<M>& z, const LineWeights& weights, const Block& own,
                               int r, int j0, const Lane& l) {
  if (!weights.cuts_ties(own.rows[r], j0 + kPart - 1)) return;
  own.for_row(r, [&](int n, int e) {
    if (weights.drops_tie(z[r / 2][n][e], j0 + l.column(n, e))) z[r / 2][n][e] = kMinusInfinity;
  });
}

/// What the backward kernels read and leave to each other.
struct GeneralSaved {
  Rows<const bf16> out, dout;
  SavedRows rows;
  float *centre, *factor;  // (B, H, T) each: D, and what weights are multiplied by
  float* third;            // (B, H, T): of RowWeights
  float* carries;          // (heads in flight, parts of keys, T, 2): `broken` and `before` of a row

  /// Of a row of the n-th head in flight and the keys from j0 on.
  BAMTRAIN_DEVICE float* carry(const AttentionInputs<bf16>& a, int n, int j0, int row) const {
    const int parts = (a.T + kTile - 1) / kTile * kParts;
    return carries + ((static_cast<int64_t>(n) * parts + j0 / kPart) * a.T + row) * 2;
  }
};

}  // namespace bamtrain::kernels
