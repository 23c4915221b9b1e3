#pragma once
// The KV cache of incremental decoding. A layer with a window keeps only the keys that later rows
// can see.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/arena.h"
#include "model/kv_cache_capacity.h"
#include "model/mechanisms.h"
#include "ops/ops.h"

namespace bamtrain {

class KvCache {
 public:
  /// For B sequences of up to `longest` tokens, in dtype A. `mechanisms` outlives this.
  void plan(Arena& arena, const ModelConfig& config, Mechanisms& mechanisms, int64_t B,
            int64_t longest, Dtype A);
  explicit operator bool() const { return !layers_.empty(); }

  int64_t longest() const { return longest_; }
  /// Tokens of each sequence so far.
  int64_t tokens() const { return tokens_; }
  void clear();
  /// Makes room for n more tokens, at most kMaxPrefillChunk, by evicting keys that no later row
  /// sees.
  void make_room(Backend& backend, int64_t n);
  /// Counts the last n tokens as appended, or drops them again. drop_last REQUIRES: make_room was
  /// called for at least n before they were appended.
  void append(int64_t n);
  void drop_last(int64_t n);

  /// The cached tokens of B sequences and the n tokens after them: (B, kept + n, K, D) A.
  Tensor keys(int64_t layer, int64_t B, int64_t n) const;
  Tensor values(int64_t layer, int64_t B, int64_t n) const;

 private:
  struct Layer {
    Tensor keys, values;  // (B, K, capacity, D) A
  };
  /// Layers with the same window cache the same tokens.
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
