// The bias of contextual position encoding (ops/mechanisms/cope.h) from a row's scores, and back: a
// warp owns a row. Keys come 32 at a time from the row's own to the left, a key per lane, until the
// gates have counted to the last position; to the keys before that the row's bias is one number.

#include "attention_content.h"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

}  // namespace

/// Between which positions a sum of gates lies, and how far from the first.
struct Position {
  bool counts;  // below the last
  int low, high;
  float share;  // of the second

  BAMTRAIN_DEVICE Position(float sum, int count) {
    const auto last = static_cast<float>(count - 1);
    counts = sum < last;
    const float at = counts ? sum : last;
    low = static_cast<int>(at);
    high = counts ? low + 1 : low;
    share = at - static_cast<float>(low);
  }
};

/// The warp's row: <q, E> of it, and what its places in the arrays are.
template <class A>
struct ContextualRow {
  OwnRow own;
  int i, first, count;
  int64_t row;    // in the arrays of AttentionInputs::formed
  float* values;  // (count), in shared memory: <q, E>

  /// All lanes of the warp call, of a query that is there. `shared`: `arrays` of `count` for each
  /// warp.
  BAMTRAIN_DEVICE ContextualRow(const AttentionInputs<A>& a, float* shared, int arrays)
      : own(a.formed.first), i(own.t), count(a.contextual.count) {
    values = shared + static_cast<int>(device::thread_index().x) / 32 * arrays * count;
    if (i >= a.end_of_queries()) return;
    first = first_of(a, own.b, i);
    row = a.formed.row(static_cast<int64_t>(own.b) * a.H + own.h, i);
    const A* const query = at(a.q, own.b, i, own.h);
    for (int n = own.lane; n < count; n += 32) {
      float sum = 0;
      for (int c = 0; c < a.D; ++c) {
        sum += load_one(query + c) * a.contextual.positions[c * count + n];
      }
      values[n] = sum;
    }
    device::sync_warp();
  }

  /// f(j, gate, sum of the gates from j on) of 32 keys at a time, j below `first` too, with a gate
  /// of 0. Returns where the keys end that are left: their sums are past the last position.
  template <class F>
  BAMTRAIN_DEVICE int count_gates(const float* scores, const F& f) const {
    const auto last = static_cast<float>(count - 1);
    float before = 0;
    int j0 = i;
    for (; j0 >= first && before < last; j0 -= 32) {
      const int j = j0 - own.lane;
      const float gate = j >= first ? 1.0f / (1.0f + expf(-scores[j])) : 0.0f;
      const float sum = before + sum_up_to(gate, own.lane);
      f(j, gate, sum);
      before = device::shuffle(device::kWholeWarp, sum, 31);
    }
    return j0 + 1;
  }
};

template <class A>
size_t shared_of(const AttentionInputs<A>& a, int arrays) {
  return sizeof(float) * static_cast<size_t>(kRowWarps * arrays * a.contextual.count);
}

template <class A>
BAMTRAIN_KERNEL contextual_rows(AttentionInputs<A> a) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const ContextualRow<A> x(a, reinterpret_cast<float*>(shared), 1);
  if (x.i >= a.end_of_queries()) return;
  float* const b = a.formed.b + x.row;
  const int left = x.count_gates(a.formed.s + x.row, [&](int j, float, float sum) {
    if (j < x.first) return;
    const Position at(sum, x.count);
    b[j] = x.values[at.low] + at.share * (x.values[at.high] - x.values[at.low]);
  });
  for (int j = x.first + x.own.lane; j < left; j += 32) b[j] = x.values[x.count - 1];
}

template <class A>
LaunchStatus contextual_biases(const AttentionInputs<A>& a, Stream stream) {
  return device::launch(contextual_rows<A>, grid_of_rows(a.formed.queries, kRowWarps, a.H, a.B),
                        {32 * kRowWarps, 1, 1}, shared_of(a, 1), stream, a);
}

// --- backward -----------------------------------------------------------------------------------

/// dz becomes ds = t dz + what gates give, and `of_positions` what belongs to <q, E>. A gate is in
/// the sums of all keys to its left: it has all that these give, less what keys nearer than it do.
template <class A>
BAMTRAIN_KERNEL contextual_rows_gradients(ContentGradients<A> g) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<A>& a = g.in;
  const ContextualRow<A> x(a, reinterpret_cast<float*>(shared), 2);
  if (x.i >= a.end_of_queries()) return;
  const int lane = x.own.lane, count = x.count;
  const int64_t row = row_of(a, x.own.b, x.own.h, x.i);
  const float t = a.scale != nullptr ? a.scale[row] : 1.0f, u = a.scale_bias ? t : 1.0f;
  float* const dz = a.formed.b + x.row;
  const float* const scores = a.formed.s + x.row;
  float* const bins = x.values + count;  // lane n owns n, n + 32, ...
  for (int n = lane; n < count; n += 32) bins[n] = 0;

  // What the position of key j gives to its gates.
  const auto of_gates = [&](const Position& at, float db) {
    return at.counts ? db * (x.values[at.high] - x.values[at.low]) : 0.0f;
  };
  float all = 0;
  const int left = x.count_gates(scores, [&](int j, float, float sum) {
    const Position at(sum, count);
    const float db = j >= x.first ? u * dz[j] : 0.0f;
    all += of_gates(at, db);
    const float low = db * (1.0f - at.share), high = db * at.share;
    for (int n = 0; n < 32; ++n) {
      const int low_at = device::shuffle(device::kWholeWarp, at.low, n);
      const int high_at = device::shuffle(device::kWholeWarp, at.high, n);
      const float to_low = device::shuffle(device::kWholeWarp, low, n);
      const float to_high = device::shuffle(device::kWholeWarp, high, n);
      if (low_at % 32 == lane) bins[low_at] += to_low;
      if (high_at % 32 == lane) bins[high_at] += to_high;
    }
  });
  all = warp_sum(all);
  float of_last = 0;
  for (int j = x.first + lane; j < left; j += 32) {
    of_last += u * dz[j];
    dz[j] *= t;
  }
  of_last = warp_sum(of_last);
  if ((count - 1) % 32 == lane) bins[count - 1] += of_last;

  float nearer = 0;
  x.count_gates(scores, [&](int j, float gate, float sum) {
    const float own = j >= x.first ? dz[j] : 0.0f;
    const float of_own = of_gates(Position(sum, count), u * own);
    const float up_to = sum_up_to(of_own, lane);
    if (j >= x.first) {
      dz[j] = t * own + gate * (1.0f - gate) * (all - (nearer + up_to - of_own));
    }
    nearer += device::shuffle(device::kWholeWarp, up_to, 31);
  });
  float* const to = g.sums.of_positions + row * count;
  for (int n = lane; n < count; n += 32) to[n] = bins[n];
}

template <class A>
LaunchStatus contextual_gradients(const ContentGradients<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  return device::launch(contextual_rows_gradients<A>,
                        grid_of_rows(a.formed.queries, kRowWarps, a.H, a.B), {32 * kRowWarps, 1, 1},
                        shared_of(a, 2), stream, g);
}

namespace {

constexpr int kSumRows = 16, kSumColumns = 32, kSumPositions = 64;
constexpr int kSumGroups = 8;                        // of a block's threads
constexpr int kSumOwn = kSumPositions / kSumGroups;  // positions of a thread
constexpr int kSumThreads = kSumColumns * kSumGroups;

template <class A>
struct PositionArguments {
  AttentionInputs<A> in;
  ContentSums sums;
  float* dpositions;
};

}  // namespace

/// The sums of q by what belongs to <q, E>, over the rows of a slot. Launch with grid (tiles of
/// columns, of positions, kPositionSlots) and kSumThreads threads.
template <class A>
BAMTRAIN_KERNEL contextual_partial(PositionArguments<A> x) {
  BAMTRAIN_SHARED(float, queries, kSumRows* kSumColumns);
  BAMTRAIN_SHARED(float, weights, kSumRows* kSumPositions);
  const AttentionInputs<A>& a = x.in;
  const int thread = static_cast<int>(device::thread_index().x), count = a.contextual.count;
  const int c0 = kSumColumns * static_cast<int>(device::block_index().x);
  const int n0 = kSumPositions * static_cast<int>(device::block_index().y);
  const int c = thread % kSumColumns, own = thread / kSumColumns * kSumOwn;
  const int64_t slot = device::block_index().z, rows = int64_t{a.B} * a.H * a.T;
  const int64_t per_slot = (rows + kPositionSlots - 1) / kPositionSlots;
  const int64_t end = rows < (slot + 1) * per_slot ? rows : (slot + 1) * per_slot;
  float sum[kSumOwn] = {};
  for (int64_t begin = slot * per_slot; begin < end; begin += kSumRows) {
    device::barrier();
    for (int n = thread; n < kSumRows * kSumColumns; n += kSumThreads) {
      const int64_t row = begin + n / kSumColumns;
      const int column = c0 + n % kSumColumns;
      const auto t = static_cast<int>(row % a.T), h = static_cast<int>(row / a.T % a.H);
      const auto b = static_cast<int>(row / a.T / a.H);
      queries[n] = row < end && column < a.D ? load_one(at(a.q, b, t, h) + column) : 0.0f;
    }
    for (int n = thread; n < kSumRows * kSumPositions; n += kSumThreads) {
      const int64_t row = begin + n / kSumPositions;
      const int position = n0 + n % kSumPositions;
      const bool inside = row < end && position < count;
      weights[n] = inside ? x.sums.of_positions[row * count + position] : 0.0f;
    }
    device::barrier();
    for (int row = 0; row < kSumRows; ++row) {
      const float q = queries[row * kSumColumns + c];
      BAMTRAIN_UNROLL
      for (int n = 0; n < kSumOwn; ++n) sum[n] += q * weights[row * kSumPositions + own + n];
    }
  }
  if (c0 + c >= a.D) return;
  float* const to = x.sums.partial + (slot * a.D + c0 + c) * count + n0 + own;
  BAMTRAIN_UNROLL
  for (int n = 0; n < kSumOwn; ++n) {
    if (n0 + own + n < count) to[n] = sum[n];
  }
}

/// dpositions: the slots' sums, in their order. A thread has an element.
template <class A>
BAMTRAIN_KERNEL contextual_join(PositionArguments<A> x) {
  const int64_t size = int64_t{x.in.D} * x.in.contextual.count;
  const int64_t n = int64_t{device::block_index().x} * kSumThreads + device::thread_index().x;
  if (n >= size) return;
  x.dpositions[n] = sum_in_order(x.sums.partial + n, kPositionSlots, size);
}

template <class A>
LaunchStatus contextual_end(const AttentionInputs<A>& a, const BiasOutputs& g,
                            const ContentSums& sums, Stream stream) {
  const PositionArguments<A> x = {a, sums, g.dpositions};
  const int count = a.contextual.count;
  const LaunchStatus partial =
      device::launch(contextual_partial<A>,
                     {static_cast<uint32_t>(blocks_of(a.D, kSumColumns)),
                      static_cast<uint32_t>(blocks_of(count, kSumPositions)), kPositionSlots},
                     {kSumThreads, 1, 1}, 0, stream, x);
  if (!partial.ok()) return partial;
  return device::launch(contextual_join<A>, grid_of(blocks_of(int64_t{a.D} * count, kSumThreads)),
                        {kSumThreads, 1, 1}, 0, stream, x);
}

#define BAMTRAIN_CONTEXTUAL(A)                                                        \
  template LaunchStatus contextual_biases(const AttentionInputs<A>&, Stream);         \
  template LaunchStatus contextual_gradients(const ContentGradients<A>&, Stream);     \
  template LaunchStatus contextual_end(const AttentionInputs<A>&, const BiasOutputs&, \
                                       const ContentSums&, Stream);
BAMTRAIN_CONTEXTUAL(float)
BAMTRAIN_CONTEXTUAL(bf16)
#undef BAMTRAIN_CONTEXTUAL

}  // namespace bamtrain::kernels
