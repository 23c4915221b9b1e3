#pragma once
// Mixes of heads (HeadMix of ops/attention.h) on tensor cores: a warp takes 16 neighbouring keys of
// a query as the rows of its products, and the heads and hidden units as their columns. What a
// layer reads is in two roundings to bf16, 16 bits of it, and so are its weights; what goes back is
// in one.
//
// Numbers of 16 keys and 8 N heads or units are an accumulator: element (n, e) is of key l.row + 8
// (e / 2) and of column l.column(n, e). The same lane reads a logit and writes it.

#include "attention_content.cuh"
#include "attention_mix.cuh"

namespace bamtrain::kernels {

/// For `kHeads` and `kHidden` sixteens of heads and hidden units; kWide: u is scores and biases.
template <int kHeads, int kHidden, bool kWide>
struct MixShape {
  static constexpr int kColumns = 16 * kHeads;  // of u, of one kind
  static constexpr int kInputs = kWide ? 2 * kColumns : kColumns, kUnits = 16 * kHidden;
  static constexpr int kInputSteps = kInputs / 16;
  // Both layers' weights, each in its two roundings, and c1 and c2.
  static constexpr uint32_t kFirst = kUnits * kRowBytes<kInputs>;
  static constexpr uint32_t kSecond = kColumns * kRowBytes<kUnits>;
  static constexpr uint32_t kConstants = 2 * (kFirst + kSecond);
  static constexpr uint32_t kWeights = kConstants + 4 * (kUnits + kColumns);
  // Of 64 keys what the products need that sum over keys: u, the gradient of the hidden
  // layer, the layer and db.
  static constexpr uint32_t kU = 0, kHiddenGradient = kTile * kRowBytes<kInputs>;
  static constexpr uint32_t kLayer = kHiddenGradient + kTile * kRowBytes<kUnits>;
  static constexpr uint32_t kBiasGradient = kLayer + kTile * kRowBytes<kUnits>;
  static constexpr uint32_t kKeys = kBiasGradient + kTile * kRowBytes<kColumns>;
  // A thread's sums of c1 and c2. With the most heads and units registers are short.
  static constexpr int kSums = 4 * (kHeads + kHidden);
  static constexpr bool kSharedSums = kHeads * kHidden > 4;
  static constexpr uint32_t kGradients =
      kWeights + kKeys + (kSharedSums ? sizeof(float) * kSums * kThreads : 0);
};

/// x as it is rounded, and what that leaves.
template <int N>
BAMTRAIN_DEVICE void split_operand(uint32_t (&high)[N / 2][4], uint32_t (&rest)[N / 2][4],
                                   const float (&x)[N][4]) {
  float left[N][4];
  BAMTRAIN_UNROLL
  for (int n = 0; n < N; ++n) {
    BAMTRAIN_UNROLL
    for (int e = 0; e < 4; ++e) left[n][e] = x[n][e] - rounded_to<bf16>(x[n][e]);
  }
  as_operand(high, x);
  as_operand(rest, left);
}

/// c (16, 8 N) += A X^T, for A (16, 16 S) and a tile X (8 N, 16 S) in two roundings each, but for
/// the product of what both leave. `rest`: from X to what its rounding leaves.
template <int N, int S>
BAMTRAIN_DEVICE void multiply_split(float (&c)[N][4], const uint32_t (&high)[S][4],
                                    const uint32_t (&left)[S][4], SharedAddress x, uint32_t rest,
                                    const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < N / 2; ++n) {
      const int row = 16 * n + l.lane % 8 + l.lane / 16 * 8, chunk = 2 * s + l.lane / 8 % 2;
      const SharedAddress at =
          x + static_cast<uint32_t>(row) * kRowBytes<16 * S> + 16u * static_cast<uint32_t>(chunk);
      uint32_t b[4], of_rest[4];
      device::ldmatrix(b, at);
      device::ldmatrix(of_rest, at + rest);
      BAMTRAIN_UNROLL
      for (int half = 0; half < 2; ++half) {
        float(&to)[4] = c[2 * n + half];
        device::mma_m16n8k16(to, left[s], b[2 * half], b[2 * half + 1]);
        device::mma_m16n8k16(to, high[s], of_rest[2 * half], of_rest[2 * half + 1]);
        device::mma_m16n8k16(to, high[s], b[2 * half], b[2 * half + 1]);
      }
    }
  }
}

/// The network, in shared memory; and what lanes do with it.
template <int kHeads, int kHidden, bool kWide>
struct MixNetwork {
  using Shape = MixShape<kHeads, kHidden, kWide>;
  using Logits = float[2 * kHeads][4];
  using Hidden = float[2 * kHidden][4];

  SharedAddress first, second;  // layers
  const float *c1, *c2;

  /// All threads of the block call; a barrier has to follow.
  BAMTRAIN_DEVICE MixNetwork(const MixInputs& m, int H, unsigned char* shared)
      : first(device::shared_address(shared)),
        second(first + 2 * Shape::kFirst),
        c1(reinterpret_cast<float*>(shared + Shape::kConstants)),
        c2(c1 + Shape::kUnits) {
    const auto thread = static_cast<int>(device::thread_index().x);
    const auto store = [](unsigned char* to, uint32_t rest, float x) {
      *reinterpret_cast<bf16*>(to) = device::to_bf16(x);
      *reinterpret_cast<bf16*>(to + rest) = device::to_bf16(x - rounded_to<bf16>(x));
    };
    BAMTRAIN_NO_UNROLL
    for (int n = thread; n < Shape::kUnits * Shape::kInputs; n += kThreads) {
      const int k = n / Shape::kInputs, c = n % Shape::kInputs, h = c % Shape::kColumns;
      const bool inside = k < m.hidden && h < H;
      store(shared + k * kRowBytes<Shape::kInputs> + 2 * c, Shape::kFirst,
            inside ? m.w1[k * (kWide ? 2 * H : H) + c / Shape::kColumns * H + h] : 0.0f);
    }
    BAMTRAIN_NO_UNROLL
    for (int n = thread; n < Shape::kColumns * Shape::kUnits; n += kThreads) {
      const int h = n / Shape::kUnits, k = n % Shape::kUnits;
      store(shared + 2 * Shape::kFirst + h * kRowBytes<Shape::kUnits> + 2 * k, Shape::kSecond,
            k < m.hidden && h < H ? m.w2[h * m.hidden + k] : 0.0f);
    }
    auto* const constants = reinterpret_cast<float*>(shared + Shape::kConstants);
    BAMTRAIN_NO_UNROLL
    for (int n = thread; n < Shape::kUnits + Shape::kColumns; n += kThreads) {
      const int h = n - Shape::kUnits;
      constants[n] = n < m.hidden ? m.c1[n] : h >= 0 && h < H ? m.c2[h] : 0.0f;
    }
  }

  /// f(n, e, h, j) of the lane's elements that are of heads and of keys that the query sees.
  template <class F>
  BAMTRAIN_DEVICE static void for_logits(const MixQuery& own, int H, int j0, const Lane& l,
                                         const F& f) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHeads; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int h = l.column(n, e), j = j0 + l.row + 8 * (e / 2);
        if (h < H && own.sees(j)) f(n, e, h, j);
      }
    }
  }

  /// The prior's biases, and u as operands.
  BAMTRAIN_DEVICE static void read(Logits& B, uint32_t (&u)[Shape::kInputSteps][4],
                                   uint32_t (&rest)[Shape::kInputSteps][4],
                                   const AttentionInputs<bf16>& a, const MixQuery& own,
                                   const float* scores, int j0, const Lane& l) {
    Logits x = {};
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHeads; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) B[n][e] = 0;
    }
    if (a.table != nullptr) {
      for_logits(own, a.H, j0, l, [&](int n, int e, int h, int j) {
        B[n][e] = a.table[h * a.table_head + own.i - j];
      });
    } else if (a.numbers != nullptr || a.fire.psi != nullptr) {
      BAMTRAIN_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int j = j0 + l.row + 8 * r;
        if (!own.sees(j)) continue;
        const FirePoint of_fire(a, own.b, own.i, j);
        for_logits(own, a.H, j0, l, [&](int n, int e, int h, int) {
          if (e / 2 == r) B[n][e] = prior_bias_of(a, own.b, h, own.i, j, of_fire).b;
        });
      }
    }
    if (a.mix.form != MixForm::bias_only) {
      for_logits(own, a.H, j0, l,
                 [&](int n, int e, int h, int j) { x[n][e] = scores[h * own.head + j]; });
    }
    if constexpr (kWide) {
      float both[4 * kHeads][4];
      BAMTRAIN_UNROLL
      for (int n = 0; n < 2 * kHeads; ++n) {
        BAMTRAIN_UNROLL
        for (int e = 0; e < 4; ++e) {
          both[n][e] = x[n][e];
          both[2 * kHeads + n][e] = B[n][e];
        }
      }
      split_operand(u, rest, both);
    } else {
      BAMTRAIN_UNROLL
      for (int n = 0; n < 2 * kHeads; ++n) {
        BAMTRAIN_UNROLL
        for (int e = 0; e < 4; ++e) x[n][e] += B[n][e];
      }
      split_operand(u, rest, x);
    }
  }

  /// Before its activation.
  BAMTRAIN_DEVICE void hidden_layer(Hidden& hidden, const uint32_t (&u)[Shape::kInputSteps][4],
                                    const uint32_t (&rest)[Shape::kInputSteps][4],
                                    const Lane& l) const {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHidden; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) hidden[n][e] = c1[l.column(n, e)];
    }
    multiply_split(hidden, u, rest, first, Shape::kFirst, l);
  }
};

/// b in place of scores: a warp per query. Launch with grid (ceil(queries / 4), 1, B), kThreads
/// threads and MixShape::kWeights of dynamic shared memory.
template <int kHeads, int kHidden, bool kWide>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2) mix_tiles(AttentionInputs<bf16> a) {
  using Network = MixNetwork<kHeads, kHidden, kWide>;
  using Shape = MixShape<kHeads, kHidden, kWide>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const Network network(a.mix, a.H, shared);
  device::barrier();
  const int row = static_cast<int>(device::block_index().x) * (kThreads / 32) + l.warp;
  if (row >= a.formed.queries) return;
  const MixQuery own(a, static_cast<int>(device::block_index().z), row);
  float* const logits = a.formed.b + own.row;
  BAMTRAIN_NO_UNROLL
  for (int j0 = own.first / 16 * 16; j0 <= own.i; j0 += 16) {
    typename Network::Logits B;
    uint32_t u[Shape::kInputSteps][4], rest[Shape::kInputSteps][4];
    Network::read(B, u, rest, a, own, logits, j0, l);
    typename Network::Hidden hidden;
    network.hidden_layer(hidden, u, rest, l);
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHidden; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) hidden[n][e] = dape_activation(hidden[n][e]);
    }
    uint32_t layer[kHidden][4], rest_of_layer[kHidden][4];
    split_operand(layer, rest_of_layer, hidden);
    typename Network::Logits b;
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2 * kHeads; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        b[n][e] = network.c2[l.column(n, e)] + (keeps_bias(a.mix.form) ? B[n][e] : 0.0f);
      }
    }
    multiply_split(b, layer, rest_of_layer, network.second, Shape::kSecond, l);
    Network::for_logits(own, a.H, j0, l,
                        [&](int n, int e, int h, int j) { logits[h * own.head + j] = b[n][e]; });
  }
}

// --- backward -----------------------------------------------------------------------------------

/// The operands A (16, 16 S) of a warp's 16 keys as rows [16 warp, 16 warp + 16) of a tile.
template <int S>
BAMTRAIN_DEVICE void store_operand(unsigned char* tile, const uint32_t (&a)[S][4], const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 4; ++n) {
      const int row = 16 * l.warp + l.row + 8 * (n % 2), column = 16 * s + 8 * (n / 2) + 2 * l.pair;
      *reinterpret_cast<uint32_t*>(tile + row * kRowBytes<16 * S> + 2 * column) = a[s][n];
    }
  }
}

/// c (16, 16) += P^T Q over 16 keys, of which P and Q are rows of tiles: the 16 columns that begin
/// where the addresses say.
BAMTRAIN_DEVICE void multiply_keys(float (&c)[2][4], SharedAddress p, uint32_t row_of_p,
                                   SharedAddress q, uint32_t row_of_q, const Lane& l) {
  const auto r = static_cast<uint32_t>(l.lane % 8), m = static_cast<uint32_t>(l.lane / 8);
  uint32_t a[4], b[4];
  device::ldmatrix_transposed(a, p + (r + m / 2 * 8) * row_of_p + m % 2 * 16);
  device::ldmatrix_transposed(b, q + static_cast<uint32_t>(l.lane % 16) * row_of_q +
                                     static_cast<uint32_t>(l.lane / 16) * 16);
  device::mma_m16n8k16(c[0], a, b[0], b[1]);
  device::mma_m16n8k16(c[1], a, b[2], b[3]);
}

/// Sums of a thread: in registers, or where these are short at `shared`, one of a thread after
/// another.
template <int N, bool kShared>
struct ThreadSums {
  float own[kShared ? 1 : N] = {};
  float* shared;

  BAMTRAIN_DEVICE ThreadSums(float* shared_sums, int thread) : shared(shared_sums + thread) {
    BAMTRAIN_UNROLL
    for (int n = 0; kShared && n < N; ++n) shared[n * kThreads] = 0;
  }
  BAMTRAIN_DEVICE float& operator[](int n) {
    if constexpr (kShared) return shared[n * kThreads];
    return own[n];
  }
};

/// The sum of x over the rows of an accumulator, in the lanes of its first.
BAMTRAIN_DEVICE float sum_of_rows(float x) {
  BAMTRAIN_UNROLL
  for (int distance = 4; distance < 32; distance *= 2) {
    x += device::shuffle_xor(device::kWholeWarp, x, distance);
  }
  return x;
}

/// What belongs to the scores in place of dz, what belongs to the prior's biases in place of the
/// scores. A block adds the network's gradients of the queries of its slot to what those of the
/// parts before left there: a query after the other, 64 keys at a time. Launch with kMixSlots
/// blocks of kThreads threads and MixShape::kGradients of dynamic shared memory.
template <int kHeads, int kHidden, bool kWide>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2) mix_tiles_gradients(ContentGradients<bf16> g) {
  using Network = MixNetwork<kHeads, kHidden, kWide>;
  using Shape = MixShape<kHeads, kHidden, kWide>;
  // 16 x 16 pieces of dw1, then of dw2, among the warps.
  constexpr int kFirst = kHidden * Shape::kInputSteps, kPieces = kFirst + kHeads * kHidden;
  constexpr int kWarps = kThreads / 32, kOwn = (kPieces + kWarps - 1) / kWarps;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<bf16>& a = g.in;
  const Lane l;
  const Network network(a.mix, a.H, shared);
  unsigned char* const keys = shared + Shape::kWeights;
  const SharedAddress tiles = device::shared_address(keys);
  const auto slot = static_cast<int>(device::block_index().x);
  // Of c1, then of c2.
  ThreadSums<Shape::kSums, Shape::kSharedSums> of_constants(
      reinterpret_cast<float*>(keys + Shape::kKeys), 32 * l.warp + l.lane);

  float pieces[kOwn][2][4] = {};
  BAMTRAIN_NO_UNROLL
  for (int row = slot; row < a.B * a.formed.queries; row += kMixSlots) {
    const MixQuery own(a, row / a.formed.queries, row % a.formed.queries);
    float* const dz = a.formed.b + own.row;
    float* const scores = a.formed.s + own.row;
    BAMTRAIN_NO_UNROLL
    for (int block0 = own.first / 16 * 16; block0 <= own.i; block0 += kTile) {
      const int j0 = block0 + 16 * l.warp;
      device::barrier();  // the keys before are done; and the network is there
      if (j0 <= own.i) {
        typename Network::Logits B, db = {};
        uint32_t u[Shape::kInputSteps][4], rest[Shape::kInputSteps][4];
        Network::read(B, u, rest, a, own, scores, j0, l);
        store_operand(keys + Shape::kU, u, l);
        typename Network::Hidden hidden, dhidden[1] = {};
        network.hidden_layer(hidden, u, rest, l);

        Network::for_logits(own, a.H, j0, l, [&](int n, int e, int h, int j) {
          db[n][e] = own.of_biases(a, h) * dz[h * own.head + j];
        });
        uint32_t of_db[1][kHeads][4];
        as_operand(of_db[0], db);
        store_operand(keys + Shape::kBiasGradient, of_db[0], l);
        multiply<Shape::kUnits>(dhidden, of_db, network.second, l);
        BAMTRAIN_UNROLL
        for (int n = 0; n < 2 * kHidden; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) {
            dhidden[0][n][e] *= dape_slope(hidden[n][e]);
            hidden[n][e] = dape_activation(hidden[n][e]);
            of_constants[2 * n + e % 2] += dhidden[0][n][e];
          }
        }
        uint32_t layer[kHidden][4], of_layer[1][kHidden][4];
        as_operand(layer, hidden);
        as_operand(of_layer[0], dhidden[0]);
        store_operand(keys + Shape::kLayer, layer, l);
        store_operand(keys + Shape::kHiddenGradient, of_layer[0], l);

        BAMTRAIN_UNROLL
        for (int n = 0; n < 2 * kHeads; ++n) {
          BAMTRAIN_UNROLL
          for (int e = 0; e < 4; ++e) of_constants[4 * kHidden + 2 * n + e % 2] += db[n][e];
        }
        float du[1][2 * kHeads][4] = {};
        multiply<Shape::kInputs>(du, of_layer, network.first, l);
        Network::for_logits(own, a.H, j0, l, [&](int n, int e, int h, int j) {
          float& ds = dz[h * own.head + j];
          ds *= own.of_scores(a, h);
          if (a.mix.form != MixForm::bias_only) ds += du[0][n][e];
        });
        if constexpr (kWide) {
          BAMTRAIN_UNROLL
          for (int n = 0; n < 2 * kHeads; ++n) {
            BAMTRAIN_UNROLL
            for (int e = 0; e < 4; ++e) du[0][n][e] = 0;
          }
          multiply<Shape::kInputs>(du, of_layer, network.first + 2 * Shape::kColumns, l);
        }
        Network::for_logits(own, a.H, j0, l, [&](int n, int e, int h, int j) {
          scores[h * own.head + j] = du[0][n][e] + (keeps_bias(a.mix.form) ? db[n][e] : 0.0f);
        });
      }
      device::barrier();
      const int steps = own.i - block0 < kTile ? (own.i - block0) / 16 + 1 : kTile / 16;
      BAMTRAIN_UNROLL
      for (int m = 0; m < kOwn; ++m) {
        const int piece = l.warp + kWarps * m, of_second = piece - kFirst;
        if (piece >= kPieces) continue;
        const bool second = of_second >= 0;
        const auto columns = [](int n) { return static_cast<uint32_t>(32 * n); };
        const SharedAddress p =
            tiles + (second ? Shape::kBiasGradient + columns(of_second / kHidden)
                            : Shape::kHiddenGradient + columns(piece / Shape::kInputSteps));
        const SharedAddress q = tiles + (second ? Shape::kLayer + columns(of_second % kHidden)
                                                : Shape::kU + columns(piece % Shape::kInputSteps));
        const uint32_t row_of_p = second ? kRowBytes<Shape::kColumns> : kRowBytes<Shape::kUnits>;
        const uint32_t row_of_q = second ? kRowBytes<Shape::kUnits> : kRowBytes<Shape::kInputs>;
        BAMTRAIN_NO_UNROLL
        for (int s = 0; s < steps; ++s) {
          const auto below = static_cast<uint32_t>(16 * s);
          multiply_keys(pieces[m], p + below * row_of_p, row_of_p, q + below * row_of_q, row_of_q,
                        l);
        }
      }
    }
  }

  const MixElements of(a);
  float* const to = g.sums.of_mix + slot * of.count;
  const auto add = [&](int at, float x) { to[at] = g.first_of_all ? x : to[at] + x; };
  BAMTRAIN_UNROLL
  for (int m = 0; m < kOwn; ++m) {
    const int piece = l.warp + kWarps * m, of_second = piece - kFirst;
    if (piece >= kPieces) continue;
    BAMTRAIN_UNROLL
    for (int n = 0; n < 2; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int row = l.row + 8 * (e / 2), column = l.column(n, e);
        if (of_second >= 0) {
          const int h = 16 * (of_second / kHidden) + row, k = 16 * (of_second % kHidden) + column;
          if (h < a.H && k < a.mix.hidden) add(of.w2 + h * a.mix.hidden + k, pieces[m][n][e]);
        } else {
          const int k = 16 * (piece / Shape::kInputSteps) + row;
          const int c = 16 * (piece % Shape::kInputSteps) + column, h = c % Shape::kColumns;
          if (h < a.H && k < a.mix.hidden) {
            add(k * of.inputs + c / Shape::kColumns * a.H + h, pieces[m][n][e]);
          }
        }
      }
    }
  }
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
    for (int w = 0; w < kWarps; ++w) sum += constants[w * kConstants + n];
    const int h = n - Shape::kUnits;
    if (n < a.mix.hidden) add(of.c1 + n, sum);
    if (h >= 0 && h < a.H) add(of.c2 + h, sum);
  }
}

}  // namespace bamtrain::kernels
