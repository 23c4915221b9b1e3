#pragma once
// The network of a mix of heads (HeadMix of ops/attention.h) on tensor cores: a warp takes 16 keys
// of a query as the rows of its products, and the heads and hidden units as their columns. What a
// layer reads is in two roundings to bf16, 16 bits of it; its weights, as those of other layers,
// are in one. Backward most rows of db sum to zero, and what a rounding leaves of a row would be
// multiplied by what its keys have in common: db is in two roundings for the hidden layer's
// gradient, and so are both factors of dw2 and of what dW1 has of biases; or, beside biases of
// distance, the layer is less what biases alone make of it. Scores and what belongs to them are in
// one.
//
// Numbers of 16 keys and 8 N heads or units are an accumulator: element (n, e) is of key l.row + 8
// (e / 2) and of column l.column(n, e). The same lane reads a logit and writes it.

#include "attention_content.cuh"
#include "attention_mix.cuh"

namespace bamtrain::kernels {

/// For `kHeads` and `kHidden` sixteens of heads and hidden units; kWide: u is scores and biases,
/// not scores alone.
template <int kHeads, int kHidden, bool kWide>
struct MixShape {
  static constexpr int kColumns = 16 * kHeads;  // of u, of one kind
  static constexpr int kInputs = kWide ? 2 * kColumns : kColumns, kUnits = 16 * kHidden;
  static constexpr int kInputSteps = kInputs / 16;
  // Both layers' weights, and c1 and c2.
  static constexpr uint32_t kFirst = kUnits * kRowBytes<kInputs>;
  static constexpr uint32_t kSecond = kColumns * kRowBytes<kUnits>;
  static constexpr uint32_t kConstants = kFirst + kSecond;
  static constexpr uint32_t kWeights = kConstants + 4 * (kUnits + kColumns);
  // Of 64 keys what the products need that sum over keys, in rows as long as the longest: u, db,
  // the layer and its gradient. kWide: in two roundings, but for the scores in u, and the gradient
  // takes the place of the layer.
  static constexpr uint32_t kKeyBytes = kRowBytes<(kInputs > kUnits ? kInputs : kUnits)>;
  static constexpr uint32_t kRows = kTile * kKeyBytes;
  static constexpr uint32_t kU = 0, kBiasGradient = kRows, kLayer = 2 * kRows;
  static constexpr uint32_t kHiddenGradient = kWide ? kLayer : 3 * kRows;
  static constexpr uint32_t kRestOfBiasGradient = kBiasGradient + 2 * kColumns;
  static constexpr uint32_t kRestOfLayer = 3 * kRows, kRestOfGradient = kRestOfLayer;
  static constexpr uint32_t kRestOfBiases = 4 * kRows;
  static constexpr uint32_t kKeys = (kWide ? 5 : 4) * kRows;
  // A thread's sums: of c1 and c2, or of distances. With the most heads and units registers are
  // short.
  static constexpr int kSums = (kWide ? 4 : 8) * (kHeads + kHidden);
  static constexpr bool kSharedSums = kHeads * kHidden > (kWide ? 2 : 4);
  // And those of pieces (MixPieces), of a warp.
  static constexpr int kPieces = kHidden * (kInputSteps + kHeads), kOwnPieces = (kPieces + 3) / 4;
  static constexpr bool kSharedPieces = kOwnPieces > 3;
  static constexpr uint32_t kSumsAt = kWeights + kKeys;
  static constexpr uint32_t kPiecesAt =
      kSumsAt + (kSharedSums ? sizeof(float) * kSums * kThreads : 0);
  static constexpr uint32_t kGradients =
      kPiecesAt + (kSharedPieces ? sizeof(float) * 8 * kOwnPieces * kThreads : 0);
};

/// x as it is rounded, and what that leaves.
template <int N>
BAMTRAIN_DEVICE void split_operand(uint32_t (&high)[N / 2][4], uint32_t (&rest)[N / 2][4],
                                   const float (&x)[N][4]) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N; ++n) {
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const uint32_t two = device::pack_bf16(x[n][2 * r], x[n][2 * r + 1]);
      high[n / 2][n % 2 * 2 + r] = two;
      rest[n / 2][n % 2 * 2 + r] = device::pack_bf16(x[n][2 * r] - device::low_bf16(two),
                                                     x[n][2 * r + 1] - device::high_bf16(two));
    }
  }
}

/// c (16, 8 N) += A X^T, for A (16, 16 S) in two roundings and 16 S columns of a tile X (8 N),
/// whose rows are kBytes apart.
template <uint32_t kBytes, int N, int S>
BAMTRAIN_DEVICE void multiply_split(float (&c)[N][4], const uint32_t (&high)[S][4],
                                    const uint32_t (&rest)[S][4], SharedAddress x, const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < N / 2; ++n) {
      const int row = 16 * n + l.lane % 8 + l.lane / 16 * 8, chunk = 2 * s + l.lane / 8 % 2;
      uint32_t b[4];
      device::ldmatrix(
          b, x + static_cast<uint32_t>(row) * kBytes + 16u * static_cast<uint32_t>(chunk));
      BAMTRAIN_UNROLL
      for (int half = 0; half < 2; ++half) {
        device::mma_m16n8k16(c[2 * n + half], rest[s], b[2 * half], b[2 * half + 1]);
        device::mma_m16n8k16(c[2 * n + half], high[s], b[2 * half], b[2 * half + 1]);
      }
    }
  }
}

/// The operands A (16, 16 S) of a warp's 16 keys as rows [16 warp, 16 warp + 16) of a tile.
template <uint32_t kBytes, int S>
BAMTRAIN_DEVICE void store_operand(unsigned char* tile, const uint32_t (&a)[S][4], const Lane& l) {
  BAMTRAIN_UNROLL
  for (int s = 0; s < S; ++s) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < 4; ++n) {
      const int row = 16 * l.warp + l.row + 8 * (n % 2), column = 16 * s + 8 * (n / 2) + 2 * l.pair;
      *reinterpret_cast<uint32_t*>(tile + row * static_cast<int>(kBytes) + 2 * column) = a[s][n];
    }
  }
}

/// c (16, 16) += P^T Q over 16 keys, of which P and Q are rows of tiles: the 16 columns that begin
/// where the addresses say.
template <uint32_t kBytes>
BAMTRAIN_DEVICE void multiply_keys(float (&c)[2][4], SharedAddress p, SharedAddress q,
                                   const Lane& l) {
  const auto r = static_cast<uint32_t>(l.lane % 8), m = static_cast<uint32_t>(l.lane / 8);
  uint32_t a[4], b[4];
  device::ldmatrix_transposed(a, p + (r + m / 2 * 8) * kBytes + m % 2 * 16);
  device::ldmatrix_transposed(
      b, q + static_cast<uint32_t>(l.lane % 16) * kBytes + static_cast<uint32_t>(l.lane / 16) * 16);
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

/// dape_activation() in two instructions.
BAMTRAIN_DEVICE float activation(float x) { return fmaxf(x, static_cast<float>(kDapeSlope) * x); }

/// f(n, e) of every element of N accumulators of eight columns.
template <int N, class F>
BAMTRAIN_DEVICE void for_accumulators(const F& f) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < N; ++n) {
    BAMTRAIN_UNROLL
    for (int e = 0; e < 4; ++e) f(n, e);
  }
}

/// Which elements of the hidden layer are above 0, a bit of each, in place of the layer's
/// registers; and the activation's slope at one.
template <int N>
BAMTRAIN_DEVICE uint32_t rising(const float (&hidden)[N][4]) {
  static_assert(4 * N <= 32);
  uint32_t bits = 0;
  for_accumulators<N>([&](int n, int e) { bits |= hidden[n][e] > 0 ? 1u << (4 * n + e) : 0u; });
  return bits;
}
BAMTRAIN_DEVICE float slope_at(uint32_t rising, int n, int e) {
  return dape_slope((rising >> (4 * n + e) & 1) != 0 ? 1.0f : 0.0f);
}

/// The network, in shared memory; and what lanes do with it.
template <int kHeads, int kHidden, bool kWide>
struct MixNetwork {
  using Shape = MixShape<kHeads, kHidden, kWide>;
  using Logits = float[2 * kHeads][4];
  using Hidden = float[2 * kHidden][4];
  using Operands = uint32_t[kHeads][4];  // logits rounded, or what that left

  SharedAddress first, second;  // layers
  const float *c1, *c2;

  /// All threads of the block call; a barrier has to follow.
  BAMTRAIN_DEVICE MixNetwork(const MixInputs& m, int H, unsigned char* shared)
      : first(device::shared_address(shared)),
        second(first + Shape::kFirst),
        c1(reinterpret_cast<float*>(shared + Shape::kConstants)),
        c2(c1 + Shape::kUnits) {
    const auto thread = static_cast<int>(device::thread_index().x);
    const auto store = [](unsigned char* to, float x) {
      *reinterpret_cast<bf16*>(to) = device::to_bf16(x);
    };
    BAMTRAIN_NO_UNROLL
    for (int n = thread; n < Shape::kUnits * Shape::kInputs; n += kThreads) {
      const int k = n / Shape::kInputs, c = n % Shape::kInputs, h = c % Shape::kColumns;
      store(shared + k * kRowBytes<Shape::kInputs> + 2 * c,
            k < m.hidden && h < H ? first_weight(m, H, k, c >= Shape::kColumns, h) : 0.0f);
    }
    BAMTRAIN_NO_UNROLL
    for (int n = thread; n < Shape::kColumns * Shape::kUnits; n += kThreads) {
      const int h = n / Shape::kUnits, k = n % Shape::kUnits;
      store(shared + Shape::kFirst + h * kRowBytes<Shape::kUnits> + 2 * k,
            k < m.hidden && h < H ? m.w2[h * m.hidden + k] : 0.0f);
    }
    auto* const constants = reinterpret_cast<float*>(shared + Shape::kConstants);
    BAMTRAIN_NO_UNROLL
    for (int n = thread; n < Shape::kUnits + Shape::kColumns; n += kThreads) {
      const int h = n - Shape::kUnits;
      constants[n] = n < m.hidden ? m.c1[n] : h >= 0 && h < H ? m.c2[h] : 0.0f;
    }
  }

  /// hidden (16, units) += x W1^T, or W1'^T if kBiases. And x in two roundings.
  template <bool kBiases>
  BAMTRAIN_DEVICE void first_layer(Hidden& hidden, Operands& u, Operands& rest, const Logits& x,
                                   const Lane& l) const {
    constexpr uint32_t kColumn = kBiases ? Shape::kColumns : 0;
    split_operand(u, rest, x);
    multiply_split<kRowBytes<Shape::kInputs>>(hidden, u, rest, first + 2 * kColumn, l);
  }

  /// b (16, heads) += W2 lrelu(hidden).
  BAMTRAIN_DEVICE void second_layer(Logits& b, Hidden& hidden, const Lane& l) const {
    for_accumulators<2 * kHidden>([&](int n, int e) { hidden[n][e] = activation(hidden[n][e]); });
    uint32_t layer[kHidden][4], rest[kHidden][4];
    split_operand(layer, rest, hidden);
    multiply_split<kRowBytes<Shape::kUnits>>(b, layer, rest, second, l);
  }

  /// dhidden (16, units) += db W2: what the layer's activation gets. And db in two roundings.
  BAMTRAIN_DEVICE void second_layer_gradient(Hidden (&dhidden)[1], Operands (&of_db)[1],
                                             Operands (&rest)[1], const Logits& db,
                                             const Lane& l) const {
    split_operand(of_db[0], rest[0], db);
    multiply<Shape::kUnits>(dhidden, rest, second, l);
    multiply<Shape::kUnits>(dhidden, of_db, second, l);
  }
};

/// Which products are added: to dW1, of u and the layer's gradient, or to dw2, of the layer and db.
enum class MixLayers { both, first, second };

/// The shared memory behind the network in which a block's warps leave what the products need that
/// sum over keys, each 16 of them, and the products: 16 x 16 pieces of dW1, then of dw2, are
/// divided among the warps. What is `rest` is of kWide.
template <int kHeads, int kHidden, bool kWide>
class MixPieces {
 public:
  using Shape = MixShape<kHeads, kHidden, kWide>;
  using Logits = uint32_t[kHeads][4];
  using Hidden = uint32_t[kHidden][4];

  BAMTRAIN_DEVICE MixPieces(unsigned char* shared, int thread)
      : keys_(shared + Shape::kWeights),
        tiles_(device::shared_address(keys_)),
        sums_(reinterpret_cast<float*>(shared + Shape::kPiecesAt), thread) {}

  BAMTRAIN_DEVICE void set_scores(const Logits& s, const Lane& l) const { set<Shape::kU>(s, l); }
  BAMTRAIN_DEVICE void set_biases(const Logits& b, const Logits& rest, const Lane& l) const {
    set<Shape::kU + 2 * Shape::kColumns>(b, l);
    set<Shape::kRestOfBiases>(rest, l);
  }
  BAMTRAIN_DEVICE void set_layer(const Hidden& x, const Lane& l) const { set<Shape::kLayer>(x, l); }
  BAMTRAIN_DEVICE void set_rest_of_layer(const Hidden& x, const Lane& l) const {
    set<Shape::kRestOfLayer>(x, l);
  }
  BAMTRAIN_DEVICE void set_db(const Logits& db, const Lane& l) const {
    set<Shape::kBiasGradient>(db, l);
  }
  BAMTRAIN_DEVICE void set_rest_of_db(const Logits& rest, const Lane& l) const {
    set<Shape::kRestOfBiasGradient>(rest, l);
  }
  /// kWide: the layer's products are done, with a barrier behind them.
  BAMTRAIN_DEVICE void set_hidden_gradient(const Hidden& x, const Lane& l) const {
    set<Shape::kHiddenGradient>(x, l);
  }
  BAMTRAIN_DEVICE void set_rest_of_hidden_gradient(const Hidden& x, const Lane& l) const {
    set<Shape::kRestOfGradient>(x, l);
  }

  /// Of the first 16 `steps` keys. Barriers have to be on both sides.
  template <MixLayers kLayers>
  BAMTRAIN_DEVICE void add(int steps, const Lane& l) {
    BAMTRAIN_UNROLL_TIMES(Shape::kSharedPieces ? 1 : kOwn)
    for (int m = 0; m < kOwn; ++m) {
      const int piece = l.warp + kWarps * m, of_second = piece - kFirst;
      const bool second = of_second >= 0;
      if (piece >= kPieces) continue;
      if (kLayers != MixLayers::both && second != (kLayers == MixLayers::second)) continue;
      const int input = piece % Shape::kInputSteps;
      const auto columns = [](int n) { return static_cast<uint32_t>(32 * n); };
      const SharedAddress p =
          tiles_ + (second ? Shape::kBiasGradient + columns(of_second / kHidden)
                           : Shape::kHiddenGradient + columns(piece / Shape::kInputSteps));
      const SharedAddress q = tiles_ + (second ? Shape::kLayer + columns(of_second % kHidden)
                                               : Shape::kU + columns(input));
      float sum[2][4];
      for_accumulators<2>([&](int n, int e) { sum[n][e] = sums_[8 * m + 4 * n + e]; });
      BAMTRAIN_NO_UNROLL
      for (int s = 0; s < steps; ++s) {
        const uint32_t below = static_cast<uint32_t>(s) * 16 * Shape::kKeyBytes;
        if (kWide && (second || input >= kHeads)) {
          const SharedAddress rest_of_p =
              p + (second ? Shape::kRestOfBiasGradient - Shape::kBiasGradient
                          : Shape::kRestOfGradient - Shape::kHiddenGradient);
          const SharedAddress rest_of_q =
              second ? q + (Shape::kRestOfLayer - Shape::kLayer)
                     : tiles_ + Shape::kRestOfBiases + columns(input - kHeads);
          multiply_keys<Shape::kKeyBytes>(sum, rest_of_p + below, q + below, l);
          multiply_keys<Shape::kKeyBytes>(sum, p + below, rest_of_q + below, l);
        }
        multiply_keys<Shape::kKeyBytes>(sum, p + below, q + below, l);
      }
      for_accumulators<2>([&](int n, int e) { sums_[8 * m + 4 * n + e] = sum[n][e]; });
    }
  }

  /// f(at, x) of each sum, `at` in a slot.
  template <class F>
  BAMTRAIN_DEVICE void for_sums(const AttentionInputs<bf16>& a, const Lane& l, const F& f) {
    const MixElements of(a);
    BAMTRAIN_UNROLL
    for (int m = 0; m < kOwn; ++m) {
      const int piece = l.warp + kWarps * m, of_second = piece - kFirst;
      if (piece >= kPieces) continue;
      for_accumulators<2>([&](int n, int e) {
        const int row = l.row + 8 * (e / 2), column = l.column(n, e);
        if (of_second >= 0) {
          const int h = 16 * (of_second / kHidden) + row, k = 16 * (of_second % kHidden) + column;
          if (h < a.H && k < a.mix.hidden)
            f(of.w2 + h * a.mix.hidden + k, sums_[8 * m + 4 * n + e]);
        } else {
          const int k = 16 * (piece / Shape::kInputSteps) + row;
          const int c = 16 * (piece % Shape::kInputSteps) + column, h = c % Shape::kColumns;
          if (h < a.H && k < a.mix.hidden) {
            f(k * of.inputs + c / Shape::kColumns * a.H + h, sums_[8 * m + 4 * n + e]);
          }
        }
      });
    }
  }

 private:
  static constexpr int kFirst = kHidden * Shape::kInputSteps, kPieces = Shape::kPieces;
  static constexpr int kWarps = 4, kOwn = Shape::kOwnPieces;
  static_assert(kThreads == 32 * kWarps);

  template <uint32_t kAt, int S>
  BAMTRAIN_DEVICE void set(const uint32_t (&a)[S][4], const Lane& l) const {
    store_operand<Shape::kKeyBytes>(keys_ + kAt, a, l);
  }

  unsigned char* keys_;
  SharedAddress tiles_;
  ThreadSums<8 * kOwn, Shape::kSharedPieces> sums_;
};

}  // namespace bamtrain::kernels
