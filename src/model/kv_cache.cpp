#include "model/kv_cache.h"

namespace bamtrain {

void KvCache::plan(Arena& arena, const ModelConfig& config, Mechanisms& mechanisms, int64_t B,
                   int64_t longest, Dtype A) {
  mechanisms_ = &mechanisms;
  longest_ = longest;
  windows_.clear();
  for (const int64_t keys : mechanisms.windows()) {
    windows_.push_back({keys, kv_cache_capacity(keys, longest), 0});
  }
  layers_.resize(static_cast<size_t>(config.layers));
  for (int64_t l = 0; l < config.layers; ++l) {
    Layer& layer = layers_[static_cast<size_t>(l)];
    for (Tensor* const t : {&layer.keys, &layer.values}) {
      arena.add("texts.keys_and_values", t, A,
                {B, config.kv_heads, window(l).capacity, config.head_dim()});
    }
  }
}

void KvCache::clear() {
  tokens_ = 0;
  for (Window& w : windows_) w.kept = 0;
}

void KvCache::make_room(Backend& backend, int64_t n) {
  require(n >= 1 && n <= kMaxPrefillChunk && tokens_ + n <= longest_,
          "a text within the planned length, a piece at a time");
  const auto layers = static_cast<int64_t>(layers_.size());
  const auto is_full = [&](const Window& w) { return w.kept + n > w.capacity; };
  for (int64_t l = 0; l < layers; ++l) {
    const Window& w = window(l);
    if (!is_full(w)) continue;
    const int64_t seen = w.keys - 1, from = w.kept - seen;
    const Layer& layer = layers_[static_cast<size_t>(l)];
    for (const Tensor& t : {layer.keys, layer.values}) shift_to_front(backend, t, 2, from, seen);
    mechanisms_->shift_cache(l, from, seen);
  }
  for (Window& w : windows_) {
    if (is_full(w)) w.kept = w.keys - 1;
  }
}

void KvCache::append(int64_t n) {
  tokens_ += n;
  for (Window& w : windows_) w.kept += n;
}

void KvCache::drop_last(int64_t n) {
  tokens_ -= n;
  for (Window& w : windows_) {
    w.kept -= n;
    require(w.kept >= 0, "no more to drop than the cache holds");
  }
}

Tensor KvCache::view(const Tensor& of, int64_t layer, int64_t B, int64_t n) const {
  const int64_t capacity = of.shape[2], K = of.shape[1], D = of.shape[3];
  const int64_t kept = windows_[static_cast<size_t>(mechanisms_->window(layer))].kept;
  require(B <= of.shape[0] && kept + n <= capacity, "texts and tokens that were planned");
  Tensor tokens(of.data, of.dtype, {B, kept + n, K, D});
  tokens.stride = {of.stride[0], of.stride[2], of.stride[1], 1};
  return tokens;
}

Tensor KvCache::keys(int64_t layer, int64_t B, int64_t n) const {
  return view(layers_[static_cast<size_t>(layer)].keys, layer, B, n);
}

Tensor KvCache::values(int64_t layer, int64_t B, int64_t n) const {
  return view(layers_[static_cast<size_t>(layer)].values, layer, B, n);
}

}  // namespace bamtrain
