#pragma once
// What the forward and the backward pass of the CPU attention share where heads are mixed. A task
// is a part of a sequence's queries with all heads, in strips. It forms the scores of all heads,
// applies the network, then attends head by head. Parts of a sequence share packed keys and values.
// So sequences run in groups, as many as keep the threads busy. Memory is O(T).

#include <algorithm>

#include "core/parallel.h"
#include "ops/cpu/attention_policies.h"
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

/// The rows of a strip, and the keys [from, end) that any of them sees; `from` begins a tile.
struct RowsOfStrip {
  int64_t i0, i1, from, end;

  RowsOfStrip(const Sight& sight, int64_t first, int64_t end_of_rows)
      : i0(first), i1(end_of_rows), from(sight.first_tile(i0)), end(sight.end(i1)) {}
  int64_t rows() const { return i1 - i0; }
  template <class F>
  void for_tiles(F&& f) const {
    for (int64_t j0 = from; j0 < end; j0 += kK) f(j0);
  }
};

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
      : stride_(strip_stride(a.q.shape[1])),
        floats_(mix_rows(a.q.shape[1], a.q.shape[2]) * stride_),
        data_(memory) {}
  /// Those of a head, of the rows and keys of s.
  Block of(const RowsOfStrip& s, int64_t h) const {
    return {data_ + h * floats_, stride_, s.i0, s.i1, s.from, padded_keys(s.end)};
  }
  HeadsOfKeys at(const RowsOfStrip& s, int64_t i, int64_t j) const {
    return {of(s, 0).at(i, j), floats_};
  }

 private:
  int64_t stride_, floats_;
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
  MixStage(const Attention& a, int64_t b, Pieces& pieces, LogitBias& bias, bool backward)
      : a_(a),
        b_(b),
        sight_(a, b),
        bias_(bias),
        query_(pieces.take(kQ * padded(a.q.shape[3]))),
        biases_(a, pieces.take(most_head_strips(a.q.shape[1], a.q.shape[2]))),
        network_(a.mix, pieces, backward) {}
  static int64_t floats(int64_t T, int64_t H, int64_t D, int64_t F, bool backward) {
    return kQ * padded(D) + most_head_strips(T, H) + HeadNetwork::floats(H, F, backward);
  }

  const Sight& sight() const { return sight_; }
  HeadNetwork& network() { return network_; }
  const HeadStrips& biases() const { return biases_; }
  float* query() const { return query_; }
  Block row(const Block& strip, int64_t i) const {
    return strip.row(i, sight_.first(i), sight_.last(i));
  }

  /// Scores of all heads of a strip, and their biases. keys: transposed tiles by key head.
  template <class A, class KeysOf>
  void form_scores(const RowsOfStrip& s, const HeadStrips& x, KeysOf&& keys) {
    const int64_t H = a_.q.shape[2], D = a_.q.shape[3], Dp = padded(D);
    for (int64_t h = 0; h < H; ++h) {
      const Block scores = x.of(s, h), b = biases_.of(s, h);
      pack_rows<A>(query_, a_.q, b_, h, s.i0, s.i1, Dp, 1 / a_.content_divisor<float>());
      const float* const of_head = keys(h / (H / a_.k.shape[2]));
      s.for_tiles([&](int64_t j0) {
        tile::product<false>(s.rows(), kK, D, {query_, Dp, 1}, of_head + j0 * D, kK,
                             scores.at(s.i0, j0), scores.stride);
      });
      bias_.set_head(b_, h);
      bias_.set_rows(s.i0, s.i1, s.from, s.end);
      for (int64_t i = s.i0; i < s.i1; ++i) {
        const Block to = row(b, i), of_row = row(scores, i);
        std::copy_n(bias_.form(of_row).data, to.keys(), to.data);
        // Past the last key both are 0.
        std::fill_n(to.data + to.keys(), simd::kWidth, 0.0f);
        std::fill_n(of_row.data + to.keys(), simd::kWidth, 0.0f);
      }
    }
  }

  /// f(n, keys, x, B) for the blocks of a row of scores: keys [n, n + keys) of it.
  template <class F>
  void for_blocks(const RowsOfStrip& s, const HeadStrips& x, int64_t i, F&& f) {
    const int64_t first = sight_.first(i), end = sight_.last(i) + 1;
    for (int64_t j = first; j < end; j += kMixKeys) {
      f(j - first, std::min(kMixKeys, end - j), x.at(s, i, j), biases_.at(s, i, j));
    }
  }

  /// Logits of a row; z may be x.
  void form_logits(const RowsOfStrip& s, const HeadStrips& x, const HeadStrips& z, int64_t i) {
    const HeadsOfKeys to = z.at(s, i, sight_.first(i));
    for_blocks(s, x, i, [&](int64_t n, int64_t keys, const HeadsOfKeys& X, const HeadsOfKeys& B) {
      network_.forward(keys, X, B);
      for (int64_t h = 0; h < a_.q.shape[2]; ++h) {
        const Factors factors(a_, b_, h);
        const float t = factors.of_content(i), of_bias = factors.of_bias(i);
        const float *const own = X.of(h), *const b = network_.biases().of(h);
        for (int64_t j = 0; j < keys; j += simd::kWidth) {
          simd::store(to.of(h) + n + j, t * simd::load(own + j) + of_bias * simd::load(b + j));
        }
      }
    });
  }

 private:
  const Attention& a_;
  int64_t b_;
  Sight sight_;
  LogitBias& bias_;
  float* query_;       // (kQ, padded(D))
  HeadStrips biases_;  // B, of the strip
  HeadNetwork network_;
};

/// Scratch of a task of the backward pass but for its biases, in floats.
int64_t mix_backward_floats(int64_t T, int64_t H, int64_t D, int64_t F);
/// What rows of incremental decoding share, and tasks of theirs at a time.
inline int64_t mixed_row_floats(int64_t keys, int64_t H) {
  return 2 * H * (padded_keys(keys) + simd::kWidth);
}
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
