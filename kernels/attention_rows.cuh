#pragma once
// The rows of queries that a block of the attention kernels owns, and their logits. Those of
// AnyForm are formed alike in every kernel, with every rounding written down, so that each finds
// the same.
//
// A warp has one or two groups of 16 rows by 32 keys at a time, half of a tile of 64, which is what
// a bit of SavedRows::live is about.

#include "attention.cuh"
#include "attention_fire.cuh"
#include "attention_forms.cuh"
#include "attention_live.cuh"
#include "attention_search.cuh"

namespace bamtrain::kernels {

/// Keys that a warp has in registers at a time: half a tile.
constexpr int kPart = kCarriedKeys, kParts = kTile / kPart;
constexpr int kColumns = kPart / 8;  // of eight keys each

/// Logits, weights or gradients of 16 rows and kPart keys, an accumulator; and of M such groups.
using Logits = float[kColumns][4];
template <int M>
using GroupsOfLogits = float[M][kColumns][4];

/// f(part) of a tile, from the last to the first where `leftwards`.
template <int kKeys = kTile, class F>
BAMTRAIN_DEVICE void for_parts(bool leftwards, const F& f) {
  constexpr int kOfTile = kKeys / kPart;
  BAMTRAIN_NO_UNROLL
  for (int n = 0; n < kOfTile; ++n) f(leftwards ? kOfTile - 1 - n : n);
}
/// Bytes from a tile of keys to its part.
template <int D, class A = bf16>
BAMTRAIN_DEVICE uint32_t part_bytes(int part) {
  return static_cast<uint32_t>(part) * kTileBytes<D, kPart, A>;
}

/// What formulas compute with.
template <bool kExact>
struct DeviceMath {
  BAMTRAIN_DEVICE static float log1p(float a, float b) {
    return kExact ? log1pf(a * b) : kLn2 * device::log2_approx(fmaf(a, b, 1.0f));
  }
  BAMTRAIN_DEVICE static float divide(float a, float b) { return a / b; }
};
/// Distances below 0.
template <class Form>
BAMTRAIN_DEVICE int distances_behind(const typename Form::Inputs& a) {
  return Form::kCausal ? 0 : a.distances_behind();
}
/// The last key that query i of sequence b sees.
template <class Form>
BAMTRAIN_DEVICE int last_of(const typename Form::Inputs& a, int b, int i) {
  return Form::kCausal || a.causal ? i : a.last_key[static_cast<int64_t>(b) * a.T + i];
}
/// |i - j| for a formula.
BAMTRAIN_DEVICE float distance_of(int d) { return static_cast<float>(d > 0 ? d : -d); }

/// Whether the weights of a row that sees `seen` keys are constants: one of them alone has any.
template <class A>
BAMTRAIN_DEVICE bool constant_weights(const AttentionInputs<A>& a, int seen) {
  if (!traits_of(a.normalizer.kind).constant_alone()) return false;
  if (a.normalizer.kind != NormalizerKind::topk) return seen <= 1;
  return a.normalizer.keys.of(seen, a.T) <= 1;
}

/// A thread's rows of groups that follow each other: 2 m + r is row r of group m.
struct GroupRows {
  int first;
  BAMTRAIN_DEVICE int operator[](int n) const { return first + kWarpRows * (n / 2) + 8 * (n % 2); }
};

/// The queries [i0, i0 + 64 M) of one head, M groups a warp, and the tiles of kOfTile keys that
/// they see; a thread has parts of two rows of each group: index 2 m + r is row r of group m.
template <int M, class Form = AnyForm, int kOfTile = kTile, int kOriginTile = M* kTile>
struct QueryRows {
  using Inputs = typename Form::Inputs;
  using Math = DeviceMath<Form::kExact>;
  static constexpr int kGroups = M, kQueries = M * kTile, kRows = 2 * M, kKeys = kOfTile;
  // Floats of the biases of a tile of keys that a thread loads, and those of a slice.
  static constexpr int kSliceLoads = (kQueries + kKeys - 1 + kThreads - 1) / kThreads;
  static constexpr int kSliceFloats = Form::kOnline ? kSliceLoads * kThreads : kQueries + kKeys;

  int b, h, i0;
  int end;                    // T
  int first_tile, last_tile;  // of keys

  int warp_begin, warp_end;  // what keys the warp's rows see at most: [warp_begin, warp_end)
  int all_begin, all_end;    // and all of them
  GroupRows rows;            // those past T see nothing
  float factor[kRows];       // z = factor <q, k> + u b
  // Online: where the next tile of keys begins, with fire. Others look it up anew, for the
  // registers.
  static constexpr bool kKeepsPlaces = Form::kOnline && Form::kFire;
  mutable FirePlace places[kKeepsPlaces ? kRows : 1];
  float* numbers;    // (kQueries), in shared memory: n_i less origin()
  int numbers_from;  // origin's token

  /// All lanes of the warp call, which alone reads and writes what is in `numbers` of its rows.
  /// `root`: 1 / a.content_divisor.
  BAMTRAIN_DEVICE QueryRows(const Inputs& a, int of_b, int of_h, int of_i0, float root,
                            float* shared_numbers, const Lane& l)
      : b(of_b),
        h(of_h),
        i0(of_i0),
        end(a.T),
        rows{of_i0 + group_row(l, 0) + l.row},
        numbers(shared_numbers) {
    const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
    const int last_row = i0 + kQueries <= a.T ? i0 + kQueries - 1 : a.T - 1;
    first_tile = first_key[i0] / kKeys;
    last_tile = last_of<Form>(a, b, last_row) / kKeys;

    const int warp_row = i0 + group_row(l, 0);
    warp_begin = warp_row < end ? first_key[warp_row] : end;
    const bool all_inside = i0 + group_row(l, M) <= end;
    warp_end = last_of<Form>(a, b, all_inside ? i0 + group_row(l, M) - 1 : end - 1) + 1;
    all_begin = first_key[last_row];
    all_end = all_inside ? last_of<Form>(a, b, warp_row) + 1 : 0;
    numbers_from = kQueries % kOriginTile == 0 ? i0 : i0 / kOriginTile * kOriginTile;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      factor[r] = root * load_scale(a, r);
      if (Form::bias(a) == BiasSource::formula && l.pair == 0) {
        numbers[rows[r] - i0] =
            inside(r) ? static_cast<float>(a.numbers_of(b, h)[rows[r]] - origin(a)) : 0.0f;
      }
    }
    if (Form::bias(a) == BiasSource::formula) device::sync_warp();
    if constexpr (kKeepsPlaces) {
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        places[r] = FirePlace(a, b, h, rows[r], rows[r] - first_tile * kKeys, l.pair);
      }
    }
  }

  /// Where in the block's tile of queries the m-th group of this warp begins.
  BAMTRAIN_DEVICE static int group_row(const Lane& l, int m) {
    return (l.warp * M + m) * kWarpRows;
  }
  BAMTRAIN_DEVICE int64_t of_head(const Inputs& a) const {
    return (static_cast<int64_t>(b) * a.H + h) * a.T;
  }
  /// What numbers are less, where a formula is of differences: that of the first query of a tile of
  /// the kernels that own queries, kOriginTile of them.
  BAMTRAIN_DEVICE double origin(const Inputs& a) const {
    return is_relative(a.formula) ? a.numbers_of(b, h)[numbers_from] : 0.0;
  }
  /// Where row r is in a (B, H, T) array.
  BAMTRAIN_DEVICE int64_t of_row(const Inputs& a, int r) const { return of_head(a) + rows[r]; }
  BAMTRAIN_DEVICE bool inside(int r) const { return rows[r] < end; }
  BAMTRAIN_DEVICE float load_scale(const Inputs& a, int r) const {
    return Form::scales(a) && inside(r) ? a.scale[of_row(a, r)] : 1.0f;
  }
  /// t of row r, and u. Softmax's may be off by a rounding: that spares a register a row.
  BAMTRAIN_DEVICE float scale(const Inputs& a, int r) const {
    return Form::kOnline ? factor[r] * a.content_divisor : load_scale(a, r);
  }
  BAMTRAIN_DEVICE float bias_scale(const Inputs& a, int r) const {
    return Form::scales_bias(a) ? scale(a, r) : 1.0f;
  }
  /// The first and the last key that row r sees; of rows past T the first is past the last.
  BAMTRAIN_DEVICE int first(const Inputs& a, int r) const {
    return inside(r) ? a.first_key[static_cast<int64_t>(b) * a.T + rows[r]] : rows[r] + 1;
  }
  BAMTRAIN_DEVICE int last(const Inputs& a, int r) const {
    return inside(r) ? last_of<Form>(a, b, rows[r]) : rows[r];
  }
  BAMTRAIN_DEVICE int keys(const Inputs& a, int r) const { return last(a, r) - first(a, r) + 1; }

  /// Whether any row of the warp may see any of the `keys` keys at j0: the same for all lanes.
  BAMTRAIN_DEVICE bool warp_sees(int j0, int keys) const {
    return j0 < warp_end && j0 + keys > warp_begin;
  }
  /// Whether every row of the warp sees every key of the part at j0.
  BAMTRAIN_DEVICE bool warp_sees_all(int j0) const {
    return j0 >= all_begin && j0 + kPart <= all_end;
  }

  BAMTRAIN_DEVICE static bool has_slice(const Inputs& a) {
    return Form::bias(a) != BiasSource::none && !Form::kFormed;
  }
  /// Entry n kThreads + thread of the slice of biases of the tile of keys at j0: of the table
  /// (online: in base 2) or of psi by distance, or the number of a key.
  BAMTRAIN_DEVICE float slice_entry(const Inputs& a, int j0, int thread, int n) const {
    const BiasSource source = Form::bias(a);
    if (source == BiasSource::formula) {
      const int j = j0 + thread;
      const bool is_key = n == 0 && thread < kKeys && j < end;
      return is_key ? static_cast<float>(a.numbers_of(b, h)[j] - origin(a)) : 0.0f;
    }
    if (source == BiasSource::table) {
      const float x = by_distance(a, a.table + h * a.table_head, j0, thread, n);
      return Form::kOnline ? kLog2e * x : x;
    }
    return source == BiasSource::fire ? by_distance(a, a.fire.psi, j0, thread, n) : 0.0f;
  }
  /// Likewise of psi_dc.
  BAMTRAIN_DEVICE float derivative_entry(const Inputs& a, int j0, int thread, int n) const {
    return by_distance(a, a.fire.psi_dc, j0, thread, n);
  }
  BAMTRAIN_DEVICE float by_distance(const Inputs& a, const float* values, int j0, int thread,
                                    int n) const {
    const int d = i0 - j0 + thread + n * kThreads - (kKeys - 1);
    return d >= -distances_behind<Form>(a) && d < end ? values[d] : 0.0f;
  }
  /// The first query of the n-th block.
  BAMTRAIN_DEVICE static int block_begin(const Inputs& a, int n) {
    return a.formed.first + kQueries * n;
  }
  /// What was formed of the head, and where of it row r and the keys from j0 on are: in 32 bits,
  /// for the registers.
  BAMTRAIN_DEVICE int64_t formed_head(const Inputs& a) const {
    return a.formed.row(static_cast<int64_t>(b) * a.H + h, i0);
  }
  BAMTRAIN_DEVICE int formed_row(const Inputs& a, int r, int j0) const {
    return (rows[r] - i0) * static_cast<int>(a.formed.stride) + j0;
  }
  /// From a tile's slice to that of its part.
  BAMTRAIN_DEVICE static const float* slice_of(const Inputs& a, const float* slice, int part) {
    return Form::bias(a) == BiasSource::formula ? slice + kPart * part : slice - kPart * part;
  }
  /// Where in a slice the distance of row r and a key of the part is.
  BAMTRAIN_DEVICE int slice_index(int r, int key) const { return rows[r] - i0 - key + kKeys - 1; }
  /// f(row, key, d) of a formula, of row r and a key of the part at j0.
  template <class F>
  BAMTRAIN_DEVICE float by_formula(const float* slice, int r, int j0, int key, const F& f) const {
    return f(numbers[rows[r] - i0], slice[key], distance_of(rows[r] - j0 - key));
  }
  /// db/dn_j there.
  BAMTRAIN_DEVICE float of_key(const Inputs& a, const float* slice, int r, int j0, int key) const {
    float derivative = 0;
    Form::with_formula(a, [&]<class Of>() {
      derivative = by_formula(slice, r, j0, key, [](float row, float own, float d) {
        return Of::template of_key<Math>(row, own, d);
      });
    });
    return derivative;
  }
  /// Where row r's part of the keys at j0 begins, with fire. All lanes of the warp call.
  BAMTRAIN_DEVICE FirePlace place(const Inputs& a, int r, int j0, const Lane& l) const {
    if constexpr (kKeepsPlaces) return places[r];
    return FirePlace(a, b, h, rows[r], rows[r] - j0, l.pair);
  }

  /// f(r, n, e, b) with the bias of each key of the part at j0. All lanes of the warp call. kMoves:
  /// places that are kept move on to the next part.
  template <bool kMoves = false, class F>
  BAMTRAIN_DEVICE void with_biases(const Inputs& a, const float* slice, int j0, const Lane& l,
                                   const F& f) const {
    switch (Form::bias(a)) {
      case BiasSource::none:
        return;
      case BiasSource::table:
        return for_elements(
            [&](int r, int n, int e) { f(r, n, e, slice[slice_index(r, l.column(n, e))]); });
      case BiasSource::formula:
        return Form::with_formula(a, [&]<class Of>() {
          for_elements([&](int r, int n, int e) {
            f(r, n, e, by_formula(slice, r, j0, l.column(n, e), [](float row, float key, float d) {
                return Of::template bias<Math>(row, key, d);
              }));
          });
        });
      case BiasSource::fire:
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          FirePlace at = place(a, r, j0, l);
          float bias[kColumns][2] = {};
          fire_biases(bias, at, a, *this, r, j0, slice, l);
          if constexpr (kMoves && kKeepsPlaces) places[r] = at;
          for_row(r, [&](int n, int e) { f(r, n, e, bias[n][e % 2]); });
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
  /// Whether with_biases() gives b in base 2, or b.
  BAMTRAIN_DEVICE static bool in_base_2(const Inputs& a) {
    return Form::kOnline && Form::bias(a) == BiasSource::table;
  }
  /// Products <q, k> become slope z + offset of their logits, with line_of(r) of row r; those of
  /// keys that a row does not see minus infinity, with stick-breaking of its own too. kMoves: no
  /// offset is added, and places move on.
  template <bool kMoves = false, class LineOf>
  BAMTRAIN_DEVICE void logits(GroupsOfLogits<M>& z, const LineOf& line_of, const Inputs& a,
                              const float* slice, int j0, const Lane& l) const {
    if (Form::kUnscaledBias && Form::bias(a) == BiasSource::table) {  // u = 1, b in base 2
      with_biases<kMoves>(a, slice, j0, l, [&](int r, int n, int e, float bias) {
        const WeightLine line = line_of(r);
        float& x = z[r / 2][n][e];
        x = fmaf(factor[r] * line.slope, x, kMoves ? bias : bias + line.offset);
      });
    } else {
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const WeightLine line = line_of(r);
        const float by = factor[r] * line.slope;
        for_row(r, [&](int n, int e) {
          float& x = z[r / 2][n][e];
          x = kMoves ? by * x : fmaf(by, x, line.offset);
        });
      }
      if (Form::bias(a) != BiasSource::none) {
        float u[kRows];
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          u[r] = bias_scale(a, r) * (in_base_2(a) ? 1.0f : line_of(r).slope);
        }
        with_biases<kMoves>(a, slice, j0, l, [&](int r, int n, int e, float bias) {
          z[r / 2][n][e] = fmaf(u[r], bias, z[r / 2][n][e]);
        });
      }
    }
    const bool stick = Form::kSticks && a.normalizer.kind == NormalizerKind::stick_breaking;
    if (!stick && warp_sees_all(j0)) return;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int from = first(a, r), to = stick ? rows[r] : last(a, r) + 1;
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
template <int D, class A = bf16, int M>
BAMTRAIN_DEVICE void multiply_part(GroupsOfLogits<M>& c, SharedAddress a, SharedAddress x,
                                   const Lane& l) {
  QueryRows<M>::for_elements([&](int r, int n, int e) { c[r / 2][n][e] = 0; });
  const auto rows = [&](int m) {
    return a + static_cast<uint32_t>(QueryRows<M>::group_row(l, m)) * kRowBytes<D, A>;
  };
  BAMTRAIN_UNROLL
  for (int step = 0; step < D / 16; ++step) multiply_step<D, A>(c, rows, x, step, l);
}

}  // namespace bamtrain::kernels
