#pragma once
// What the forward and the backward pass of the CPU attention share where heads are mixed. A task
// is a part of a sequence's queries with all heads, in strips: the scores of all heads, the network
// over them, then a head after another as on the general path. Parts of a sequence read its keys
// and values from memory that they share, and so sequences run in groups, as many as keep the
// threads busy. Memory is O(T).

#include <algorithm>

#include "core/parallel.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/head_network.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

constexpr int64_t kMixLogits = int64_t{1} << 20;

/// Rows of a strip, whole groups: as many as keep such an array of all heads within a share of the
/// last cache. Fewer would read and write the gradients of all keys more often.
inline int64_t mix_rows(int64_t T, int64_t H) {
  for (int64_t rows = 64; rows > kLiveRows; rows /= 2) {
    if (T * H * rows <= kMixLogits) return rows;
  }
  return kLiveRows;
}
/// Sequences that run together.
inline int64_t mix_group(int64_t B, int64_t T, int64_t threads) {
  return std::clamp<int64_t>(ceil_div(2 * threads, parts_of(T)), 1, B);
}

/// Packed rows of the key heads of a group's sequences: (sequences, K, padded keys, padded D).
class Packed {
 public:
  Packed(const Attention& a, float* memory)
      : K_(a.k.shape[2]),
        floats_(padded_keys(a.q.shape[1]) * padded(a.q.shape[3])),
        data_(memory) {}
  float* of(int64_t n, int64_t kh) const { return data_ + (n * K_ + kh) * floats_; }

 private:
  int64_t K_, floats_;
  float* data_;
};
inline int64_t packed_floats(const Attention& a, int64_t sequences) {
  return sequences * a.k.shape[2] * padded_keys(a.q.shape[1]) * padded(a.q.shape[3]);
}

/// Rows of x of a sequence and key head as transposed tiles; `rows` is scratch, and holds them.
template <class A>
void pack_transposed(float* tiles, float* rows, const Tensor& x, int64_t b, int64_t kh) {
  const int64_t T = x.shape[1], D = x.shape[3], Dp = padded(D);
  pack_rows<A>(rows, x, b, kh, 0, T, Dp, 1);
  transpose_tiles(tiles, rows, 0, T, D, Dp);
}

/// Some rows of queries by the keys that they see, of all heads: arrays of (H, rows, strip_stride).
class HeadStrips {
 public:
  HeadStrips(const Attention& a, float* memory)
      : floats_(mix_rows(a.q.shape[1], a.q.shape[2]) * strip_stride(a.q.shape[1])), data_(memory) {}
  float* of(int64_t h) const { return data_ + h * floats_; }
  HeadsOfKeys at(const Strip& s, int64_t i, int64_t j) const {
    return {s.at(data_, i, j), floats_};
  }

 private:
  int64_t floats_;
  float* data_;
};
/// The most of any length up to T.
inline int64_t most_head_strips(int64_t T, int64_t H) {
  int64_t most = 0;
  for (int64_t rows = 64; rows >= kLiveRows; rows /= 2) {
    const int64_t longest = rows == kLiveRows ? T : std::min(T, kMixLogits / (H * rows));
    most = std::max(most, H * rows * strip_stride(longest));
  }
  return most;
}

/// Of a task: what makes logits of scores.
class MixStage {
 public:
  MixStage(const Attention& a, int64_t b, Pieces& pieces, RowBiases& biases, bool backward)
      : a_(a),
        b_(b),
        biases_(biases),
        query_(pieces.take(kQ * padded(a.q.shape[3]))),
        of_row_{pieces.take(a.q.shape[2] * strip_stride(a.q.shape[1])), strip_stride(a.q.shape[1])},
        network_(a.mix, pieces, backward) {
    for (int64_t h = 0; h < a.q.shape[2]; ++h) biases.of(h).set_head(b, h);
  }
  static int64_t floats(int64_t T, int64_t H, int64_t D, int64_t F, bool backward) {
    return kQ * padded(D) + H * strip_stride(T) + HeadNetwork::floats(H, F, backward);
  }

  HeadNetwork& network() { return network_; }
  RowBias& bias(int64_t h) { return biases_.of(h); }
  float* query() const { return query_; }

  /// Scores of all heads of a strip; its biases follow. keys: transposed tiles by key head.
  template <class A, class KeysOf>
  void form_scores(const Strip& s, const HeadStrips& x, KeysOf&& keys) {
    const int64_t T = a_.q.shape[1], H = a_.q.shape[2], D = a_.q.shape[3], Dp = padded(D);
    for (int64_t h = 0; h < H; ++h) {
      pack_rows<A>(query_, a_.q, b_, h, s.i0, s.i1, Dp, 1 / a_.content_divisor<float>());
      const float* const of_head = keys(h / (H / a_.k.shape[2]));
      s.for_tiles([&](int64_t j0) {
        tile::product<false>(s.rows(), kK, D, {query_, Dp, 1}, of_head + j0 * D, kK,
                             s.at(x.of(h), s.i0, j0), strip_stride(T));
      });
      bias(h).set_tile(s.i0, s.i1, s.from, s.end);
    }
  }

  /// f(n, keys, x, B) for the blocks of a row of scores: keys [n, n + keys) of it. Behind the last
  /// key both are 0.
  template <class F>
  void for_blocks(const Strip& s, const HeadStrips& x, const RowSpan& row, F&& f) {
    const HeadsOfKeys scores = x.at(s, row.i, row.first);
    for (int64_t h = 0; h < a_.q.shape[2]; ++h) {
      std::fill_n(scores.of(h) + row.n, simd::kWidth, 0.0f);
      std::fill_n(of_row_.of(h), padded(row.n), 0.0f);
      bias(h).add(of_row_.of(h), row, 1, 1);
      std::fill_n(of_row_.of(h) + row.n, simd::kWidth, 0.0f);
    }
    for (int64_t n = 0; n < row.n; n += kMixKeys) {
      f(n, std::min(kMixKeys, row.n - n), scores.from(n), of_row_.from(n));
    }
  }

  /// Logits of a row; z may be x.
  void form_logits(const Strip& s, const HeadStrips& x, const HeadStrips& z, const RowSpan& row) {
    const HeadsOfKeys to = z.at(s, row.i, row.first);
    for_blocks(
        s, x, row, [&](int64_t n, int64_t keys, const HeadsOfKeys& scores, const HeadsOfKeys& B) {
          network_.forward(keys, scores, B);
          for (int64_t h = 0; h < a_.q.shape[2]; ++h) {
            const Factors factors(a_, b_, h);
            const float t = factors.of_content(row.i), of_bias = factors.of_bias(row.i);
            const float *const own = scores.of(h), *const b = network_.biases().of(h);
            for (int64_t j = 0; j < keys; j += simd::kWidth) {
              simd::store(to.of(h) + n + j, t * simd::load(own + j) + of_bias * simd::load(b + j));
            }
          }
        });
  }

 private:
  const Attention& a_;
  int64_t b_;
  RowBiases& biases_;
  float* query_;        // (kQ, padded(D))
  HeadsOfKeys of_row_;  // biases of the current row
  HeadNetwork network_;
};

/// Scratch of a task of the backward pass but for its biases, in floats.
int64_t mix_backward_floats(int64_t T, int64_t H, int64_t D, int64_t F);
/// What rows of incremental decoding share (attention_rows.cpp), and tasks of theirs at a time.
inline int64_t mixed_row_floats(int64_t keys, int64_t H) { return 2 * H * padded(keys); }
inline int64_t mixed_row_tasks(int64_t keys, int64_t H) {
  return std::max(H, ceil_div(keys, kMixKeys));
}

/// work(first, count) for the groups of sequences.
template <class F>
void for_groups(const Attention& a, const AttentionScratch& s, F&& work) {
  require(static_cast<bool>(s.mix_packed), "a mix that was planned");
  const int64_t B = a.q.shape[0], group = mix_group(B, a.q.shape[1], s.mix_threads);
  for (int64_t b = 0; b < B; b += group) work(b, std::min(group, B - b));
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
