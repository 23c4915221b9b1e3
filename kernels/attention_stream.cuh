#pragma once
// Tiles of keys and values that stream past a block's queries through shared memory, with the
// slices of biases that they need.

#include "attention_rows.cuh"

namespace bamtrain::kernels {

/// Tiles that are in shared memory at a time: one is read while the next arrives, where both fit
/// beside the others into 99 KiB.
template <int D, class Form>
constexpr int kStages = Form::kOnline || D * sizeof(typename Form::Element) <= 128 ? 2 : 1;

/// A tile of keys that is in shared memory.
struct StreamedTile {
  int tile;
  uint32_t step;  // 0 and 1 in turn
};

/// Block: a QueryRows. kDerivatives: fire has slices of psi_dc too.
template <int D, class Form, class Block, bool kDerivatives = false>
struct KeyStream {
  using Element = typename Form::Element;
  using Inputs = typename Form::Inputs;
  static constexpr int kKeys = Block::kKeys, kBuffers = kStages<D, Form>;
  static constexpr uint32_t kBytes = kTileBytes<D, kKeys, Element>;
  static constexpr int kSlicesFloats = 2 * Block::kSliceFloats;

  SharedAddress keys, values;  // kBuffers tiles each
  float* slices;               // kSlicesFloats
  float* derivatives;          // likewise, with kDerivatives
  int key_head;                // that its queries read

  /// Softmax's kernels spare registers, the others instructions.
  template <int kRows>
  BAMTRAIN_DEVICE static void copy(SharedAddress to, const Rows<const Element>& x, int b, int head,
                                   int t0, int T) {
    if constexpr (Form::kOnline) {
      copy_tile<D, kRows>(to, x, b, head, t0, T);
    } else {
      copy_tile_by_rows<D, kRows>(to, x, row_of(x, b, 0, head), t0, T);
    }
  }

  BAMTRAIN_DEVICE static uint32_t buffer(const StreamedTile& of) { return of.step % kBuffers; }
  BAMTRAIN_DEVICE float* slice(const StreamedTile& of) const {
    return slices + of.step * Block::kSliceFloats;
  }
  BAMTRAIN_DEVICE float* derivative(const StreamedTile& of) const {
    return derivatives + of.step * Block::kSliceFloats;
  }

  /// f(StreamedTile) of `tile` and those after it, as next() says, while they are among the block's
  /// tiles of keys and ended() says no. All threads of the block call f. Values are there
  /// `with_values` alone.
  template <class Next, class F, class Ended>
  BAMTRAIN_DEVICE void walk(const Block& own, const Inputs& a, int tile, bool with_values,
                            const Next& next, const F& f, const Ended& ended) const {
    const int thread = static_cast<int>(device::thread_index().x);
    const auto inside = [&](int n) { return n >= own.first_tile && n <= own.last_tile; };
    const auto copy_keys = [&](int n, uint32_t buffer) {
      const int kh = Form::kOnline ? key_head : own.h / (a.H / a.K);  // for AnyForm's registers
      copy<kKeys>(keys + buffer * kBytes, a.k, own.b, kh, n * kKeys, a.T);
      if (with_values) copy<kKeys>(values + buffer * kBytes, a.v, own.b, kh, n * kKeys, a.T);
      device::copy_async_commit();
    };
    // The slices of a tile, online loaded while products of the tile before are formed.
    constexpr int kLoads = Block::kSliceLoads;
    float loaded[kLoads], of_psi_dc[kLoads];
    const bool of_fire = kDerivatives && Form::bias(a) == BiasSource::fire;
    const auto load = [&](int n) {
      BAMTRAIN_UNROLL
      for (int at = 0; Form::kOnline && at < kLoads; ++at) {
        loaded[at] = own.slice_entry(a, n * kKeys, thread, at);
        if (of_fire) of_psi_dc[at] = own.derivative_entry(a, n * kKeys, thread, at);
      }
    };
    const auto store = [&](int n, uint32_t step) {
      if (!Block::has_slice(a)) return;
      const uint32_t to = step * Block::kSliceFloats + static_cast<uint32_t>(thread);
      if constexpr (Form::kOnline) {
        BAMTRAIN_UNROLL
        for (int at = 0; at < kLoads; ++at) {
          slices[to + at * kThreads] = loaded[at];
          if (of_fire) derivatives[to + at * kThreads] = of_psi_dc[at];
        }
      } else {
        BAMTRAIN_NO_UNROLL
        for (int at = 0; thread + at * kThreads < Block::kSliceFloats; ++at) {
          slices[to + at * kThreads] = own.slice_entry(a, n * kKeys, thread, at);
          if (of_fire) {
            derivatives[to + at * kThreads] = own.derivative_entry(a, n * kKeys, thread, at);
          }
        }
      }
    };
    uint32_t step = 0;
    if (inside(tile)) {
      copy_keys(tile, 0);
      load(tile);
      store(tile, 0);
    }
    while (inside(tile)) {
      const int after = next(tile);
      const bool more = inside(after);
      if (kBuffers > 1 && more) {
        copy_keys(after, (step ^ 1) % kBuffers);
        load(after);
        device::copy_async_wait<1>();
      } else {
        device::copy_async_wait<0>();
      }
      device::barrier();
      f(StreamedTile{tile, step});
      if (more) store(after, step ^ 1);
      device::barrier();
      if (ended()) break;
      step ^= 1;
      if (kBuffers == 1 && more) copy_keys(after, 0);
      tile = after;
    }
    device::copy_async_wait<0>();
    device::barrier();
  }

  /// f(z, j0, part) for each part of a tile that the warp sees, with line_of(r) of the logits of
  /// row r. `queries`: the block's. kMoves: as QueryRows::logits().
  template <bool kMoves = false, class LineOf, class F>
  BAMTRAIN_DEVICE void with_logits(const Block& own, const Inputs& a, SharedAddress queries,
                                   const StreamedTile& of, bool leftwards, const LineOf& line_of,
                                   const Lane& l, const F& f) const {
    for_parts<kKeys>(leftwards, [&](int part) {
      const int j0 = of.tile * kKeys + part * kPart;
      if (!own.warp_sees(j0, kPart)) return;
      GroupsOfLogits<Block::kGroups> z;
      multiply_part<D, Element>(z, queries,
                                keys + buffer(of) * kBytes + part_bytes<D, Element>(part), l);
      own.template logits<kMoves>(z, line_of, a, own.slice_of(a, slice(of), part), j0, l);
      f(z, j0, part);
    });
  }
  /// The products of the block's rows, such as dO, with the values of a part.
  template <int M>
  BAMTRAIN_DEVICE void multiply_values(GroupsOfLogits<M>& to, SharedAddress rows,
                                       const StreamedTile& of, int part, const Lane& l) const {
    multiply_part<D, Element>(to, rows, values + buffer(of) * kBytes + part_bytes<D, Element>(part),
                              l);
  }
  /// sum += x times the keys, or the values, of a part.
  template <int M>
  BAMTRAIN_DEVICE static void add_products(float (&sum)[M][D / 8][4],
                                           const Operand<Element, kColumns> (&x)[M],
                                           SharedAddress of, uint32_t buffer, int part,
                                           const Lane& l) {
    multiply<D>(sum, x, of + buffer * kBytes + part_bytes<D, Element>(part), l);
  }
};

/// Row r's sums times `by`.
template <int D, class A, class Block>
BAMTRAIN_DEVICE void store_row(const Rows<A>& to, const Block& own, int r,
                               const float (&sum)[D / 8][4], float by, const Lane& l) {
  A* const row = row_of(to, own.b, own.rows[r], own.h);
  BAMTRAIN_UNROLL
  for (int n = 0; n < D / 8; ++n) {
    store_pair(row, n, l, sum[n][r % 2 * 2] * by, sum[n][r % 2 * 2 + 1] * by);
  }
}

}  // namespace bamtrain::kernels
