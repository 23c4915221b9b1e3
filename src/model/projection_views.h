#pragma once
// Views of linear projections, and of what attention saves, for a batch of B sequences.

#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/arena.h"
#include "core/checked.h"
#include "core/tensor.h"
#include "ops/attention.h"

namespace bamtrain {

/// Columns of a product (B T, W), starting at `begin`, as heads (B, T, count, D).
inline Tensor heads_of(const Tensor& product, int64_t B, int64_t begin, int64_t count, int64_t D) {
  const int64_t W = product.shape[1], T = product.shape[0] / B;
  Tensor heads(product.slice(1, begin, count * D).data, product.dtype, {B, T, count, D});
  heads.stride = {T * W, W, D, 1};
  return heads;
}

/// Its last G columns (B, T, G).
inline Tensor gates_of(const Tensor& product, int64_t B, int64_t G) {
  const int64_t W = product.shape[1], T = product.shape[0] / B;
  Tensor gates(product.slice(1, W - G, G).data, product.dtype, {B, T, G});
  gates.stride = {T * W, W, 1};
  return gates;
}

/// Plans what attention saves.
inline void plan_saved(Arena& arena, AttentionSaved& saved, NormalizerKind kind, int64_t B,
                       int64_t H, int64_t T, Dtype P) {
  saved.plan(
      kind, B, H, T, P,
      [&arena](const char* name, Tensor* t, Dtype dtype, std::initializer_list<int64_t> dims) {
        arena.add(std::string("activations.") + name, t, dtype, dims);
      });
}

/// The part of the planned memory that B sequences of T tokens and H heads use.
inline AttentionSaved saved_of(const AttentionSaved& planned, int64_t B, int64_t H, int64_t T) {
  const auto of_rows = [&](const Tensor& t) {
    return t ? Tensor(t.data, t.dtype, {B, H, T}) : Tensor();
  };
  AttentionSaved s = {
      of_rows(planned.level), of_rows(planned.threshold), of_rows(planned.last), {}};
  if (const Tensor& live = planned.live) {
    s.live = Tensor(live.data, live.dtype, {B, H, live_groups(T), live_words(T)});
  }
  return s;
}

/// Elements between rows of logits, which start at multiples of 64 for any number of classes.
inline int64_t logits_stride_of(int64_t classes) {
  constexpr int64_t kAlignment = 64;
  return ceil_div(classes, kAlignment) * kAlignment;
}

}  // namespace bamtrain
