#pragma once
// The policies of a task of the CPU attention: its bias, and what turns logits into weights.

#include <functional>

#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class SoftmaxTiles;

/// Softmax takes tiles as they come. Other normalizers, and biases that read queries and keys, take
/// whole rows.
enum class Weighing { tiles, rows };

struct Policies {
  LogitBias& bias;
  SoftmaxTiles* tiles;  // null with Weighing::rows
  RowNormalizer* rows;  // null otherwise
};

/// What a forward or backward pass of `a` takes.
Weighing weighing_of(const Attention& a, const AttentionScratch& s);

/// g: where gradients of rows go; null in a forward pass. work: std::ref of a function.
void with_policies(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                   Pieces& pieces, Weighing weighing,
                   const std::function<void(const Policies&)>& work);

/// Scratch of a bias for `keys` keys.
int64_t bias_floats(int64_t keys, int64_t D, const ContentShape& content);
/// Partial sums of a bias that reads queries and keys, of one head of a sequence.
int64_t content_partial_floats(int64_t T, int64_t D, const ContentShape& content);
/// The bias's gradients from their parts. Numbers of tokens: the keys' part is added to that of the
/// rows, which is there.
void join_gradients(const BiasGradients& g, const Attention& a, const AttentionScratch& s);

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
