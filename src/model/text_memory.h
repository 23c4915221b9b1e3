#pragma once
// What a model remembers of texts that grow: keys and values of every layer, of as many tokens as
// rows to come may see.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/arena.h"
#include "model/mechanisms.h"
#include "model/remembered.h"
#include "ops/ops.h"

namespace bamtrain {

class TextMemory {
 public:
  /// For B texts of up to `longest` tokens, keys and values in A. `mechanisms` outlives this.
  void plan(Arena& arena, const ModelConfig& config, Mechanisms& mechanisms, int64_t B,
            int64_t longest, Dtype A);
  explicit operator bool() const { return !layers_.empty(); }

  int64_t longest() const { return longest_; }
  /// Tokens of each text so far.
  int64_t tokens() const { return tokens_; }
  void clear();
  /// Makes place for n more tokens, at most kMostAppended: of what no row to come sees.
  void make_room(Backend& backend, int64_t n);
  /// The last n were appended; or are forgotten again. REQUIRES: in the second case, that
  /// make_room(n) was called before they were appended, or for more.
  void append(int64_t n);
  void forget(int64_t n);

  /// Of B texts and n tokens behind those that the layer keeps: (B, kept + n, K, D) A.
  Tensor keys(int64_t layer, int64_t B, int64_t n) const;
  Tensor values(int64_t layer, int64_t B, int64_t n) const;

 private:
  struct Layer {
    Tensor keys, values;  // (B, K, capacity, D) A
  };
  /// Layers of one window remember the same tokens.
  struct Window {
    int64_t keys = 0;      // that a row sees; 0: all
    int64_t capacity = 0;  // tokens
    int64_t kept = 0;
  };

  Window& window(int64_t layer) {
    return windows_[static_cast<size_t>(mechanisms_->window(layer))];
  }
  Tensor view(const Tensor& of, int64_t layer, int64_t B, int64_t n) const;

  Mechanisms* mechanisms_ = nullptr;
  std::vector<Layer> layers_;
  std::vector<Window> windows_;  // Mechanisms::windows()
  int64_t longest_ = 0, tokens_ = 0;
};

}  // namespace bamtrain
