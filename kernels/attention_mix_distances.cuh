#pragma once
// Mixes of heads on tensor cores beside a bias of distance, or none. A warp owns 16 distances,
// whose biases and what these add to the hidden layer it keeps, and takes their keys of one query
// after another: sums along diagonals are sums of its own registers.
//
// Neighbouring keys lie in 32 bytes from a multiple of eight on: a block takes every eighth query,
// whose distances from such keys are the same.

#include "attention_mix_network.cuh"

namespace bamtrain::kernels {

/// A warp's distances, of row r of its accumulators first + l.row + 8 r, those below 0 of no key.
/// Of a grid (mix_distance_tiles, mix_shares) and kThreads threads. Places in the arrays of
/// AttentionInputs::formed are in 32 bits, for the registers.
template <int kHeads, int kHidden>
class MixDistances {
 public:
  using Network = MixNetwork<kHeads, kHidden, false>;
  using Logits = typename Network::Logits;
  using Hidden = typename Network::Hidden;

  int share, first_of_block, first;

  BAMTRAIN_DEVICE MixDistances(const AttentionInputs<bf16>& a, const Lane& l)
      : share(static_cast<int>(device::block_index().y)),
        first_of_block(kTile * static_cast<int>(device::block_index().x) - (7 - share % 8)),
        first(first_of_block + 16 * l.warp) {
    for_heads([&](int n, int c) {
      const int h = l.column(n, c);
      inside_[n][c] = h < a.H;
      head_[n][c] = static_cast<uint32_t>((h < a.H ? h : 0) * a.formed.rows * a.formed.stride);
    });
  }

  /// f(n, c) of the lane's heads l.column(n, c).
  template <class F>
  BAMTRAIN_DEVICE static void for_heads(const F& f) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHeads; ++n) {
      f(n, 0);
      f(n, 1);
    }
  }

  /// A query, and the key at the distance of the lane's first row: of the first head, in an array
  /// of AttentionInputs::formed.
  struct Query {
    int b, i, furthest;
    uint32_t key;
    bool sees[2];  // the keys of both rows
  };
  /// f(own) of the block's queries that see a key at one of its distances.
  template <class F>
  BAMTRAIN_DEVICE void for_queries(const AttentionInputs<bf16>& a, const Lane& l,
                                   const F& f) const {
    const auto shares = static_cast<int>(device::grid_size().y);
    const auto stride = static_cast<uint32_t>(a.formed.stride);
    const int d = first + l.row, end = a.end_of_queries();
    // The first of the share's queries that lies as far behind its sequence's begin.
    const int behind = first_of_block - a.formed.first - share;
    const int begin =
        a.formed.first + share + (behind > 0 ? (behind + shares - 1) / shares * shares : 0);
    for (int b = 0; b < a.B; ++b) {
      const int32_t* const first_keys = a.first_key + static_cast<int64_t>(b) * a.T;
      const auto row_of_b = static_cast<uint32_t>(a.formed.row(int64_t{b} * a.H, 0));
      BAMTRAIN_NO_UNROLL
      for (int i = begin; i < end; i += shares) {
        const int furthest = i - first_keys[i];
        if (furthest < first_of_block) continue;
        const uint32_t key =
            row_of_b + static_cast<uint32_t>(i) * stride + static_cast<uint32_t>(i - d);
        f(Query{b, i, furthest, key, {d >= 0 && d <= furthest, d + 8 <= furthest}});
      }
    }
  }
  BAMTRAIN_DEVICE bool sees_any(const Query& own) const { return own.furthest >= first; }

  /// The lane's elements, of `from`, that are of keys that the query sees; 0 of others. Past the
  /// last head what the first has, which is multiplied by weights of 0 and belongs to no gradient.
  BAMTRAIN_DEVICE void read_logits(Logits& x, const float* from, const Query& own) const {
    for_heads([&](int n, int c) {
      const float* const key = from + (own.key + head_[n][c]);
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2; ++r) x[n][2 * r + c] = own.sees[r] ? key[-8 * r] : 0.0f;
    });
  }
  BAMTRAIN_DEVICE void store_logits(float* to, const Logits& x, const Query& own) const {
    device::sync_warp();  // lanes past the last head have read the first one's
    for_heads([&](int n, int c) {
      float* const key = to + (own.key + head_[n][c]);
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2; ++r) {
        if (own.sees[r] && inside_[n][c]) key[-8 * r] = x[n][2 * r + c];
      }
    });
  }
  /// Of an array (B, H, T), what belongs to the query.
  BAMTRAIN_DEVICE void read_rows(float (&x)[2 * kHeads][2], const AttentionInputs<bf16>& a,
                                 const float* rows, const Query& own, const Lane& l) const {
    const float* const row = rows + static_cast<int64_t>(own.b) * a.H * a.T + own.i;
    for_heads([&](int n, int c) {
      x[n][c] = inside_[n][c] ? row[static_cast<int64_t>(l.column(n, c)) * a.T] : 0.0f;
    });
  }

  /// What the biases add to the hidden layer, c1 too: of_table, (T, hidden).
  BAMTRAIN_DEVICE void read_table(Hidden& hidden, const AttentionInputs<bf16>& a,
                                  const float* of_table, const Lane& l) const {
    for_accumulators<2 * kHidden>([&](int n, int e) {
      const int d = first + l.row + 8 * (e / 2), k = l.column(n, e);
      const bool inside = d >= 0 && d < a.T && k < a.mix.hidden;
      hidden[n][e] = inside ? of_table[int64_t{d} * a.mix.hidden + k] : 0.0f;
    });
  }

  /// Scores of the lane's keys as operands, and the hidden layer before its activation.
  BAMTRAIN_DEVICE void form_hidden(typename Network::Operands& s, Hidden& hidden,
                                   const Hidden& of_distances, const Network& network,
                                   const AttentionInputs<bf16>& a, const Query& own,
                                   const Lane& l) const {
    Logits scores = {};
    if (a.mix.form != MixForm::bias_only) read_logits(scores, a.formed.s, own);
    for_accumulators<2 * kHidden>([&](int n, int e) { hidden[n][e] = of_distances[n][e]; });
    typename Network::Operands rest;
    network.template first_layer<false>(hidden, s, rest, scores, l);
  }

 private:
  bool inside_[2 * kHeads][2];
  uint32_t head_[2 * kHeads][2];
};

/// b from scores. Launch with grid (mix_distance_tiles, mix_shares), kThreads threads and
/// MixShape::kWeights of dynamic shared memory.
template <int kHeads, int kHidden>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    mix_distances(AttentionInputs<bf16> a, const float* of_table) {
  using Network = MixNetwork<kHeads, kHidden, false>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const Network network(a.mix, a.H, shared);
  device::barrier();
  const MixDistances<kHeads, kHidden> x(a, l);
  typename Network::Hidden of_distances;
  x.read_table(of_distances, a, of_table, l);
  typename Network::Logits biases;  // c2 and those that are kept
  for_accumulators<2 * kHeads>([&](int n, int e) {
    const int d = x.first + l.row + 8 * (e / 2), h = l.column(n, e);
    const bool keeps = a.table != nullptr && keeps_bias(a.mix.form) && d >= 0 && d < a.T && h < a.H;
    biases[n][e] = network.c2[h] + (keeps ? a.table[h * a.table_head + d] : 0.0f);
  });
  x.for_queries(a, l, [&](const auto& own) {
    if (!x.sees_any(own)) return;
    typename Network::Operands s;
    typename Network::Hidden hidden;
    x.form_hidden(s, hidden, of_distances, network, a, own, l);
    typename Network::Logits b;
    for_accumulators<2 * kHeads>([&](int n, int e) { b[n][e] = biases[n][e]; });
    network.second_layer(b, hidden, l);
    x.store_logits(a.formed.b, b, own);
  });
}

// --- backward -----------------------------------------------------------------------------------

/// What belongs to the scores in place of dz. A block adds to what those of the parts before left:
/// in its slot the gradients of the weights of scores and of w2, in its share, of its distances,
/// the sums of the gradients of the hidden layer and of the biases. Launch with the grid of
/// mix_distances, kThreads threads and MixShape::kGradients of dynamic shared memory.
template <int kHeads, int kHidden>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    mix_distances_gradients(ContentGradients<bf16> g) {
  using Network = MixNetwork<kHeads, kHidden, false>;
  using Shape = typename Network::Shape;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<bf16>& a = g.in;
  const Lane l;
  const Network network(a.mix, a.H, shared);
  MixPieces<kHeads, kHidden, false> pieces(shared, 32 * l.warp + l.lane);
  const MixDistances<kHeads, kHidden> x(a, l);
  typename Network::Hidden of_distances;
  x.read_table(of_distances, a, g.sums.of_table, l);
  // Of the hidden layer, then of the biases.
  ThreadSums<Shape::kSums, Shape::kSharedSums> sums(
      reinterpret_cast<float*>(shared + Shape::kSumsAt), 32 * l.warp + l.lane);

  x.for_queries(a, l, [&](const auto& own) {
    device::barrier();  // the keys before are done; and the network is there
    if (x.sees_any(own)) {
      typename Network::Operands s;
      typename Network::Hidden hidden, dhidden[1] = {};
      x.form_hidden(s, hidden, of_distances, network, a, own, l);
      pieces.set_scores(s, l);
      const uint32_t rises = rising(hidden);
      // Less the layer of biases alone, which mix_of_distances_sums adds.
      for_accumulators<2 * kHidden>([&](int n, int e) {
        hidden[n][e] = activation(hidden[n][e]) - activation(of_distances[n][e]);
      });
      uint32_t layer[kHidden][4];
      as_operand(layer, hidden);
      pieces.set_layer(layer, l);

      float of_rows[2 * kHeads][2];
      typename Network::Logits dz[1], p, db;
      x.read_rows(of_rows, a, g.rest_of_dz, own, l);
      x.read_logits(dz[0], a.formed.b, own);
      x.read_logits(p, a.formed.p, own);
      for_accumulators<2 * kHeads>(
          [&](int n, int e) { dz[0][n][e] -= p[n][e] * of_rows[n][e % 2]; });
      for_accumulators<2 * kHeads>([&](int n, int e) { db[n][e] = dz[0][n][e]; });
      if (a.scale != nullptr) {
        x.read_rows(of_rows, a, a.scale, own, l);
        for_accumulators<2 * kHeads>([&](int n, int e) { dz[0][n][e] *= of_rows[n][e % 2]; });
        if (a.scale_bias) {
          for_accumulators<2 * kHeads>([&](int n, int e) { db[n][e] = dz[0][n][e]; });
        }
      }
      for_accumulators<2 * kHeads>(
          [&](int n, int e) { sums[8 * kHidden + 4 * n + e] += db[n][e]; });
      typename Network::Operands of_db[1], rest[1];
      network.second_layer_gradient(dhidden, of_db, rest, db, l);
      pieces.set_db(of_db[0], l);
      for_accumulators<2 * kHidden>([&](int n, int e) {
        dhidden[0][n][e] *= slope_at(rises, n, e);
        sums[4 * n + e] += dhidden[0][n][e];
      });
      uint32_t of_layer[1][kHidden][4];
      as_operand(of_layer[0], dhidden[0]);
      pieces.set_hidden_gradient(of_layer[0], l);
      multiply<Shape::kInputs>(dz, of_layer, network.first, l);  // ds
      x.store_logits(a.formed.b, dz[0], own);
    }
    device::barrier();
    const int furthest = own.furthest - x.first_of_block;
    pieces.template add<MixLayers::both>(furthest < kTile ? furthest / 16 + 1 : kTile / 16, l);
  });

  const auto add = [&](float& to, float sum) { to = g.first_of_all ? sum : to + sum; };
  const int64_t slot = static_cast<int64_t>(x.share) * device::grid_size().x +
                       static_cast<int64_t>(device::block_index().x);
  float* const in_slot = g.sums.of_mix + slot * MixElements(a).count;
  pieces.for_sums(a, l, [&](int at, float sum) { add(in_slot[at], sum); });
  const int each = a.mix.hidden + a.H;
  const auto add_distances = [&](int e, int column, float sum) {
    const int d = x.first + l.row + 8 * (e / 2);
    if (d < 0 || d >= a.T) return;
    add(g.sums.of_shares[(static_cast<int64_t>(x.share) * a.T + d) * each + column], sum);
  };
  for_accumulators<2 * kHidden>([&](int n, int e) {
    const int k = l.column(n, e);
    if (k < a.mix.hidden) add_distances(e, k, sums[4 * n + e]);
  });
  for_accumulators<2 * kHeads>([&](int n, int e) {
    const int h = l.column(n, e);
    if (h < a.H) add_distances(e, a.mix.hidden + h, sums[8 * kHidden + 4 * n + e]);
  });
}

}  // namespace bamtrain::kernels
