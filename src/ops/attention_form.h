#pragma once
// What identifies an instance of attention, apart from its shapes. Backends plan scratch for the
// forms that a model's layers have.

#include <cstdint>
#include <optional>

#include "mixes/mix.h"
#include "normalizers/normalizer.h"
#include "ops/mechanisms/all.h"

namespace bamtrain {

struct AttentionForm {
  BiasForm bias = BiasForm::none;
  bool scale = false, scale_bias = false;
  double content_scale = 0;
  NormalizerForm normalizer = {};
  bool general_path = false;  // softmax takes the path of other normalizers
  std::optional<MixForm> mix = {};
  int64_t mix_hidden = 32;

  /// Whether logits become weights a whole row at a time.
  bool general() const { return general_path || !traits_of(normalizer.kind).fused; }
  bool sticks() const { return normalizer.kind == NormalizerKind::stick_breaking; }
  /// Whether the bias reads queries and keys.
  bool content() const { return reads_content(bias_of(bias)); }
  bool fire() const { return bias == BiasForm::fire; }
};

}  // namespace bamtrain
