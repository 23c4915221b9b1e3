#pragma once
// The mix of heads in the CPU attention: logits of a strip of all heads from their scores and
// biases, and the adjoint. All else is as without a mix.

#include "ops/cpu/attention_strips.h"
#include "ops/cpu/bias.h"
#include "ops/cpu/head_network.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Of attention whose heads are mixed, with a network of F hidden units; H is 0 without a mix.
struct MixShape {
  int64_t H = 0, K = 0, F = 0;

  MixShape() = default;
  explicit MixShape(const Attention& a) {
    if (a.mix) *this = {a.q.shape[2], a.k.shape[2], a.mix.hidden()};
  }
  explicit MixShape(const WorkspaceShape& w) {
    if (w.mix_hidden() > 0) *this = {w.H, w.K, w.mix_hidden()};
  }
  explicit operator bool() const { return H > 0; }
  /// Scratch of a task's network.
  int64_t floats(bool backward) const { return H > 0 ? HeadNetwork::floats(H, F, backward) : 0; }

 private:
  MixShape(int64_t heads, int64_t key_heads, int64_t hidden) : H(heads), K(key_heads), F(hidden) {}
};

/// Of one task.
class HeadMixer {
 public:
  /// biases: memory of H strips.
  HeadMixer(const Attention& a, int64_t b, float* biases, Pieces& pieces, bool backward)
      : a_(a),
        b_(b),
        sight_(a, b),
        biases_(biases, a.k.shape[1], false),
        network_(a.mix, *a.form.mix, pieces, backward) {}

  HeadNetwork& network() { return network_; }
  /// B of head h.
  Block biases(const Strip& s, int64_t h) const { return biases_.of(s, h); }

  /// Keeps B of a row of head h, whose scores are x.
  void keep_biases(const Strip& s, int64_t h, const Block& x, LogitBias& bias) const;
  /// Logits z from scores x; z may be x.
  void form_logits(const Strip& s, const Strips& x, const Strips& z);
  /// The same of one block of the keys of row i, which may have fewer.
  void form_block(const Strip& s, const Strips& x, const Strips& z, int64_t i, int64_t block);
  /// dz becomes the gradients of scores, and biases theirs. The network adds to its own.
  void adjoint(const Strip& s, const Strips& x, const Strips& dz, const Tensor& dscale);

 private:
  int64_t keys_from(int64_t i, int64_t j) const {
    return std::min(kMixKeys, sight_.last(i) + 1 - j);
  }
  void adjoint_of_row(const Strip& s, const Strips& x, const Strips& dz, int64_t i,
                      const Tensor& dscale);
  void add_dscale(const Tensor& dscale, int64_t i, int64_t keys, const HeadsOfKeys& dz,
                  const HeadsOfKeys& x, const HeadsOfKeys& B);

  const Attention& a_;
  const int64_t b_, H_ = a_.q.shape[2];
  const Sight sight_;
  const Strips biases_;
  HeadNetwork network_;
};

/// Backward passes leave gradients of keys, values, network and numbers of tokens by part of the
/// queries; the following sum them over parts, in order.

/// The keys' or values' gradients of sequence b and key head kh. parts: (parts, padded T, padded
/// D), `stride` apart.
void join_key_parts(const Tensor& to, float* parts, int64_t stride, const Attention& a, int64_t b,
                    int64_t kh);
void join_token_parts(const Attention& a, const AttentionScratch& s);
void join_networks(const HeadMixGradients& g, const Attention& a, const AttentionScratch& s);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
