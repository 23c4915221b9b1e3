#pragma once
// Mixes of heads on tensor cores beside a bias of any kind: a warp takes 16 neighbouring keys of a
// query (attention_mix_network.cuh).

#include "attention_mix_network.cuh"

namespace bamtrain::kernels {

/// A warp's 16 keys of a query, beside a bias of any kind.
template <int kHeads, int kHidden>
struct MixKeys {
  using Network = MixNetwork<kHeads, kHidden, true>;
  using Logits = typename Network::Logits;

  MixQuery own;
  int j0;

  /// f(n, e, h, j) of the lane's elements that are of heads and of keys that the query sees.
  template <class F>
  BAMTRAIN_DEVICE void for_logits(int H, const Lane& l, const F& f) const {
    for_accumulators<2 * kHeads>([&](int n, int e) {
      const int h = l.column(n, e), j = j0 + l.row + 8 * (e / 2);
      if (h < H && own.sees(j)) f(n, e, h, j);
    });
  }

  /// The prior's biases and the hidden layer before its activation. store(of biases, u, rest) of
  /// what it reads, in two roundings.
  template <class Store>
  BAMTRAIN_DEVICE void form_hidden(Logits& B, typename Network::Hidden& hidden,
                                   const Network& network, const AttentionInputs<bf16>& a,
                                   const Lane& l, const Store& store) const {
    for_accumulators<2 * kHeads>([&](int n, int e) { B[n][e] = 0; });
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int j = j0 + l.row + 8 * r;
      if (!own.sees(j)) continue;
      const FirePoint of_fire(a, own.b, own.i, j);
      for_logits(a.H, l, [&](int n, int e, int h, int) {
        if (e / 2 == r) B[n][e] = prior_bias_of(a, own.b, h, own.i, j, of_fire).b;
      });
    }
    for_accumulators<2 * kHidden>([&](int n, int e) { hidden[n][e] = network.c1[l.column(n, e)]; });
    typename Network::Operands u, rest;
    network.template first_layer<true>(hidden, u, rest, B, l);
    store(true, u, rest);
    Logits s = {};
    if (a.mix.form != MixForm::bias_only) {
      const float* const scores = a.formed.s + own.row;
      for_logits(a.H, l, [&](int n, int e, int h, int j) { s[n][e] = scores[h * own.head + j]; });
    }
    network.template first_layer<false>(hidden, u, rest, s, l);
    store(false, u, rest);
  }
};

/// b from scores: a warp per query. Launch with grid (ceil(queries / 4), 1, B), kThreads threads
/// and MixShape::kWeights of dynamic shared memory.
template <int kHeads, int kHidden>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2) mix_tiles(AttentionInputs<bf16> a) {
  using Network = MixNetwork<kHeads, kHidden, true>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const Network network(a.mix, a.H, shared);
  device::barrier();
  const int row = static_cast<int>(device::block_index().x) * (kThreads / 32) + l.warp;
  if (row >= a.formed.queries) return;
  const MixQuery own(a, static_cast<int>(device::block_index().z), row);
  BAMTRAIN_NO_UNROLL
  for (int j0 = own.first / 16 * 16; j0 <= own.i; j0 += 16) {
    const MixKeys<kHeads, kHidden> keys = {own, j0};
    typename Network::Logits b;
    typename Network::Hidden hidden;
    keys.form_hidden(b, hidden, network, a, l, [](bool, const auto&, const auto&) {});
    for_accumulators<2 * kHeads>([&](int n, int e) {
      b[n][e] = network.c2[l.column(n, e)] + (keeps_bias(a.mix.form) ? b[n][e] : 0.0f);
    });
    network.second_layer(b, hidden, l);
    keys.for_logits(a.H, l, [&](int n, int e, int h, int j) {
      a.formed.b[own.row + h * own.head + j] = b[n][e];
    });
  }
}

// --- backward -----------------------------------------------------------------------------------

/// What belongs to the scores in place of dz, what belongs to the prior's biases in place of the
/// scores. A block adds the network's gradients of the queries of its slot to what those of the
/// parts before left there: a query after the other, 64 keys at a time. Launch with kMixSlots
/// blocks of kThreads threads and MixShape::kGradients of dynamic shared memory.
template <int kHeads, int kHidden>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2) mix_tiles_gradients(ContentGradients<bf16> g) {
  using Network = MixNetwork<kHeads, kHidden, true>;
  using Shape = typename Network::Shape;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<bf16>& a = g.in;
  const Lane l;
  const Network network(a.mix, a.H, shared);
  MixPieces<kHeads, kHidden, true> pieces(shared, 32 * l.warp + l.lane);
  const auto slot = static_cast<int>(device::block_index().x);
  // Of c1, then of c2.
  ThreadSums<Shape::kSums, Shape::kSharedSums> of_constants(
      reinterpret_cast<float*>(shared + Shape::kSumsAt), 32 * l.warp + l.lane);

  BAMTRAIN_NO_UNROLL
  for (int row = slot; row < a.B * a.formed.queries; row += kMixSlots) {
    const MixQuery own(a, row / a.formed.queries, row % a.formed.queries);
    float* const dz = a.formed.b + own.row;
    BAMTRAIN_NO_UNROLL
    for (int block0 = own.first / 16 * 16; block0 <= own.i; block0 += kTile) {
      const MixKeys<kHeads, kHidden> keys = {own, block0 + 16 * l.warp};
      device::barrier();  // the keys before are done; and the network is there
      const bool sees = keys.j0 <= own.i;
      uint32_t of_layer[1][kHidden][4], rest_of_layer[kHidden][4];
      if (sees) {
        uint32_t rises;
        {
          typename Network::Logits B;
          typename Network::Hidden hidden;
          keys.form_hidden(B, hidden, network, a, l,
                           [&](bool of_biases, const auto& u, const auto& rest) {
                             of_biases ? pieces.set_biases(u, rest, l) : pieces.set_scores(u, l);
                           });
          rises = rising(hidden);
          for_accumulators<2 * kHidden>(
              [&](int n, int e) { hidden[n][e] = activation(hidden[n][e]); });
          split_operand(of_layer[0], rest_of_layer, hidden);
          pieces.set_layer(of_layer[0], l);
          pieces.set_rest_of_layer(rest_of_layer, l);
        }
        typename Network::Logits db = {};
        keys.for_logits(a.H, l, [&](int n, int e, int h, int j) {
          float& of_logit = dz[h * own.head + j];
          of_logit -= own.rest(g, h, j);
          db[n][e] = own.of_biases(a, h) * of_logit;
        });
        for_accumulators<2 * kHeads>(
            [&](int n, int e) { of_constants[4 * kHidden + 2 * n + e % 2] += db[n][e]; });
        typename Network::Operands of_db[1], rest_of_db[1];
        typename Network::Hidden dhidden[1] = {};
        network.second_layer_gradient(dhidden, of_db, rest_of_db, db, l);
        pieces.set_db(of_db[0], l);
        pieces.set_rest_of_db(rest_of_db[0], l);
        for_accumulators<2 * kHidden>([&](int n, int e) {
          dhidden[0][n][e] *= slope_at(rises, n, e);
          of_constants[2 * n + e % 2] += dhidden[0][n][e];
        });
        split_operand(of_layer[0], rest_of_layer, dhidden[0]);

        float du[1][2 * kHeads][4] = {};
        multiply<Shape::kInputs>(du, of_layer, network.first + 2 * Shape::kColumns, l);
        keys.for_logits(a.H, l, [&](int n, int e, int h, int j) {
          const float of_kept =
              keeps_bias(a.mix.form) ? own.of_biases(a, h) * dz[h * own.head + j] : 0.0f;
          a.formed.s[own.row + h * own.head + j] = of_kept + du[0][n][e];
        });
        for_accumulators<2 * kHeads>([&](int n, int e) { du[0][n][e] = 0; });
        multiply<Shape::kInputs>(du, of_layer, network.first, l);
        keys.for_logits(a.H, l, [&](int n, int e, int h, int j) {
          float& ds = dz[h * own.head + j];
          ds = own.of_scores(a, h) * ds + du[0][n][e];
        });
      }
      const int steps = own.i - block0 < kTile ? (own.i - block0) / 16 + 1 : kTile / 16;
      device::barrier();
      pieces.template add<MixLayers::second>(steps, l);
      device::barrier();
      if (sees) {
        pieces.set_hidden_gradient(of_layer[0], l);
        pieces.set_rest_of_hidden_gradient(rest_of_layer, l);
      }
      device::barrier();
      pieces.template add<MixLayers::first>(steps, l);
    }
  }

  const MixElements of(a);
  float* const to = g.sums.of_mix + int64_t{slot} * of.count;
  const auto add = [&](int at, float x) { to[at] = g.first_of_all ? x : to[at] + x; };
  pieces.for_sums(a, l, add);
  // Sums of the warps, then of the block, where the network was.
  device::barrier();
  constexpr int kConstants = Shape::kUnits + Shape::kColumns;
  auto* const constants = reinterpret_cast<float*>(shared);
  const auto store = [&](int at, float x) {
    x = sum_of_rows(x);
    if (l.row == 0) constants[l.warp * kConstants + at] = x;
  };
  BAMTRAIN_UNROLL
  for (int c = 0; c < 2; ++c) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHidden; ++n) store(l.column(n, c), of_constants[2 * n + c]);
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHeads; ++n) {
      store(Shape::kUnits + l.column(n, c), of_constants[4 * kHidden + 2 * n + c]);
    }
  }
  device::barrier();
  for (int n = 32 * l.warp + l.lane; n < kConstants; n += kThreads) {
    float sum = 0;
    for (int w = 0; w < kThreads / 32; ++w) sum += constants[w * kConstants + n];
    const int h = n - Shape::kUnits;
    if (n < a.mix.hidden) add(of.c1 + n, sum);
    if (h >= 0 && h < a.H) add(of.c2 + h, sum);
  }
}

}  // namespace bamtrain::kernels
