#pragma once
// Helpers shared by the device tests of attention and of models.

#include <algorithm>

#include "model/build.h"
#include "ops/attention_case.h"

namespace bamtrain::testing {

inline constexpr ScaleForm kScales[] = {ScaleForm::none, ScaleForm::content, ScaleForm::both};

/// `general`: use the general path, which is optional for softmax.
inline WorkspaceShape workspace_of(const AttentionCase& c, bool general) {
  WorkspaceShape shape = Machine::kShape;
  shape.B = std::max(shape.B, c.B);
  shape.H = std::max(shape.H, c.H);
  shape.K = std::max(shape.K, c.K);
  shape.general_attention = general;
  shape.stick_breaking = c.normalizer.kind == NormalizerKind::stick_breaking;
  shape.bidirectional = !c.causal;
  return shape;
}
inline WorkspaceShape workspace_of(const AttentionCase& c) {
  return workspace_of(c, c.normalizer.kind != NormalizerKind::softmax);
}

/// The tolerance of the general path. For fp32, see tests/ops/normalizers.cpp. For bf16:
/// - p and dz are rounded before matrix products;
/// - u in dz = u (dP - D) may exceed p;
/// - D of topk comes from the rounded `out`, whose rounding does not average out over few keys, or
///   over one key whose weight is not constant.
inline double general_tolerance(const AttentionCase& c, Dtype t) {
  const bool entmax = c.normalizer.kind == NormalizerKind::entmax;
  const bool few =
      c.normalizer.kind == NormalizerKind::topk || !traits_of(c.normalizer.kind).constant_alone();
  if (t == Dtype::bf16) return (entmax ? 6 : few ? 5 : 3) * kBf16;
  return (entmax ? 8 : 2) * fp32_tolerance(c);
}

/// small_config with sizes that the device supports, and document masks.
inline ModelConfig device_config(const PriorConfig& prior) {
  ModelConfig c = small_config();
  c.width = 64;
  c.heads = 4;
  c.kv_heads = 2;
  c.mlp.hidden = 40;
  c.vocab = 67;
  c.attention.prior = prior;
  c.attention.document_mask = true;
  return c;
}

}  // namespace bamtrain::testing
