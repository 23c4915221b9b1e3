#pragma once
// What identifies an instance of attention, apart from B, T, H, K and D. workspace_shape.cpp has
// what follows from it.

#include <cstdint>
#include <optional>

#include "mixes/mix.h"
#include "normalizers/normalizer.h"
#include "ops/mechanisms/all.h"

namespace bamtrain {

struct AttentionForm {
  BiasForm bias = BiasForm::none;
  bool scale = false;
  bool scale_bias = false;   // z = t (s + b) instead of t s + b
  double content_scale = 0;  // 0: 1 / sqrt(D)
  NormalizerForm normalizer = {};
  bool general_path = false;  // softmax takes the path of other normalizers
  std::optional<MixForm> mix = {};
  int64_t mix_hidden = 32;
  int64_t content_columns = 64;  // of the matrix that contextual biases multiply queries with

  /// Whether logits become weights a whole row at a time.
  bool general() const;
  /// Whether the normalizer is stick-breaking.
  bool sticks() const;
  /// Whether the bias reads queries and keys.
  bool content() const;
  bool fire() const;
};

}  // namespace bamtrain
