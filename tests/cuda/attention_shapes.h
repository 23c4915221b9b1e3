#pragma once
// What the tests of attention and of models on a device have in common.

#include <algorithm>

#include "model/build.h"
#include "ops/attention_case.h"

namespace bamtrain::testing {

inline constexpr ScaleForm kScales[] = {ScaleForm::none, ScaleForm::content, ScaleForm::both};

/// `general`: by the general path, which softmax takes by choice.
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

/// Of fp32 see tests/ops/normalizers.cpp. Of bf16 p and dz are rounded on their way into products,
/// u of dz = u (dP - D) may exceed p, and D of topk is of the rounded `out`, whose rounding few
/// keys do not average out, nor one key, where its weight is no constant.
inline double general_tolerance(const AttentionCase& c, Dtype t) {
  const bool entmax = c.normalizer.kind == NormalizerKind::entmax;
  const bool few =
      c.normalizer.kind == NormalizerKind::topk || !traits_of(c.normalizer.kind).constant_alone();
  if (t == Dtype::bf16) return (entmax ? 6 : few ? 5 : 3) * kBf16;
  return (entmax ? 8 : 2) * fp32_tolerance(c);
}

/// small_config with sizes that the device takes, and documents.
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
