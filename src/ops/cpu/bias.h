#pragma once
// A bias in the CPU attention. For each bias of ops/mechanisms/all.h, bias_NAME.h has
//
//   class Stage, what is read of one head of a sequence:
//     Stage(a, b, h, memory);
//     static constexpr bool kThere;                  whether there is a bias
//     void set_tile(i0, i1, j_first, j_end) const;   called before a tile of queries reads
//                                                    keys [j_first, j_end); a tile starts at
//                                                    j_first
//     const float* of_keys(i, j0) const;             for row i and the keys from j0: entries of a
//                                                    table, numbers of keys, or biases that the
//                                                    next call overwrites
//     Row of_row(r) const;                           for row r of the tile: Vec, or what OfKeys
//                                                    takes
//     template <ScaleMode> struct OfKeys;            what a vector of logits needs of both
//     static void for_row(a, b, h, keys, f);         f(n, bias) for the n-th key of a row, keys
//                                                    of the past included
//     static void join(g, a, s);                     the gradients, from the tasks' partial sums
//   class Stage::Adjoint, the gradients' destination in a task:
//     Adjoint(g, a, s, row);                         row: (kK), its own
//     void set_head(head);                           clears gradients of the head
//     void set_part(part, mine);                     clears gradients of the part if it is `mine`
//     struct Tile;                                   what a tile's rows keep in registers
//     void end_row(tile, db, i, j0, stage);          after row i of a tile
//     void end_tile(tile, j0);
//     void add_tile(db, rows, i0, j0);               for all its rows, by tasks that own queries
//     void add_row(stage, dz, row, of_bias);         for a whole row, db = of_bias dz
//
//   with_stage(bias, f), which calls f.template operator()<Stage>().
//
// A bias that reads queries and keys (kReadsContent) is supported only on the general path. It has
// a RowBias (attention_bias_rows.h) with
//
//   static int64_t floats(T, D, content);          of its scratch, the constructor's last argument
//   static int64_t partial_floats(T, D, content);  of AttentionScratch::of_content
//   for_row and join as above
//
//   with_rows(bias, f), which calls f.template operator()<that RowBias>().
//
// This header has what they share.

#include <algorithm>
#include <cstdint>

#include "ops/cpu/attention_bias_rows.h"
#include "ops/cpu/attention_partials.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Memory for what stages read.
struct BiasMemory {
  float *table, *more_table, *columns, *rows;

  BiasMemory(Pieces& pieces, int64_t T)
      : table(pieces.take(table_length(T, false))),
        more_table(pieces.take(table_length(T, false))),
        columns(pieces.take(padded_keys(T))),
        rows(pieces.take(std::max(kQ, kK))) {}
};

/// A head of a task (attention_tasks.h): queries by keys. The task writes the gradients of the
/// keys, of the queries, or of both.
struct TaskHead {
  int64_t b = 0, h = 0;
  Span queries, keys;
  bool for_keys = true, for_queries = true;
  float *elsewhere = nullptr, *other_keys = nullptr;  // by position, for what another task writes

  /// The head's rows in a (B, H, T) tensor, or `elsewhere`; clears the task's own.
  float* of_rows(const Tensor& x, const Attention& a) const {
    float* const rows =
        for_queries ? x.ptr<float>() + (b * a.q.shape[2] + h) * a.q.shape[1] : elsewhere;
    std::fill_n(rows + queries.begin, queries.end - queries.begin, 0.0f);
    return rows;
  }
};

/// The keys that row i of a head sees; the last is its own.
struct SeenKeys {
  int64_t i, first, last;
};

/// A bias that is added to the logits.
struct AddedBias {
  Vec x{};

  Vec bias() const { return x; }
  /// exp(z) from exp of the value that logits() returned.
  Vec weighted(Vec e) const { return e; }
};

/// A stage without per-row values.
struct StageOfKeys {
  static constexpr bool kThere = true;
  void set_tile(int64_t, int64_t, int64_t, int64_t) const {}
  Vec of_row(int64_t) const { return Vec{}; }
  template <ScaleMode>
  struct OfKeys : AddedBias {
    OfKeys(const float* of_keys, Vec) : AddedBias{simd::load(of_keys)} {}
  };
};

/// An adjoint with none of the gradients below.
struct PlainAdjoint {
  struct Tile {
    void begin_row() {}
    template <class OfKeys>
    void add(int64_t, const OfKeys&, Vec) {}
  };
  void set_head(const TaskHead&) {}
  void set_part(int64_t, bool) {}
  template <class Tile, class Stage>
  void end_row(const Tile&, const float*, int64_t, int64_t, const Stage&) {}
  template <class Tile>
  void end_tile(const Tile&, int64_t) {}
  void add_tile(const float*, int64_t, int64_t, int64_t) {}
  template <class Stage>
  void add_row(const Stage&, const float*, const RowSpan&, float) {}
};

/// Calls f(n, keys) for the vectors of a row, from n = 0: the bias itself, never as a factor of
/// exp(z).
template <class Stage, class F>
inline void for_biases(const Stage& stage, const RowSpan& row, F&& f) {
  using Of = typename Stage::template OfKeys<ScaleMode::both>;
  const auto of_row = stage.of_row(row.r);
  for (int64_t tile = 0; tile < row.n; tile += kK) {
    const float* of_keys = stage.of_keys(row.i, row.first + tile);
    for (int64_t n = tile; n < std::min(row.n, tile + kK); n += simd::kWidth) {
      f(n, Of(of_keys + (n - tile), of_row));
    }
  }
}

class NoBias {
 public:
  static constexpr bool kThere = false;
  NoBias(const Attention&, int64_t, int64_t, const BiasMemory&) {}
  void set_tile(int64_t, int64_t, int64_t, int64_t) const {}
  const float* of_keys(int64_t, int64_t) const { return nullptr; }
  Vec of_row(int64_t) const { return Vec{}; }
  template <ScaleMode>
  struct OfKeys : AddedBias {
    OfKeys(const float*, Vec) {}
  };
  template <class F>
  static void for_row(const Attention&, int64_t, int64_t, const SeenKeys&, F&&) {}
  static void join(const BiasGradients&, const Attention&, const AttentionScratch&) {}

  struct Adjoint : PlainAdjoint {
    Adjoint(const BiasGradients&, const Attention&, const AttentionScratch&, float*) {}
  };
};

template <class F>
inline void with_stage(const Nothing&, F&& f) {
  f.template operator()<NoBias>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
