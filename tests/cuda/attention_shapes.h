#pragma once
// Helpers shared by the device tests of attention and of models.

#include "catch.h"
#include "cuda/device.h"
#include "model/build.h"
#include "ops/attention_case.h"

namespace bamtrain::testing {

/// One sequence, one key head with `group` heads.
inline AttentionCase one_group(int64_t T, int64_t D, int64_t group = 2) {
  AttentionCase c;
  c.B = c.K = 1;
  c.T = T;
  c.H = group;
  c.D = D;
  return c;
}

/// Tolerances of attention on CUDA. On the general path in fp32, see tests/ops/normalizers.cpp. For
/// bf16:
/// - p and dz are rounded before matrix products: one or two kBf16 on top of the rounding of the
///   result;
/// - u in dz = u (dP - D) may exceed p;
/// - D of topk comes from the rounded `out`, whose rounding does not average out over few keys, or
///   over one key whose weight is not constant.
inline double cuda_tolerance(const AttentionCase& c, Dtype t) {
  const NormalizerKind kind = c.normalizer.kind;
  const bool entmax = kind == NormalizerKind::entmax;
  const bool few = kind == NormalizerKind::topk || !traits_of(kind).constant_alone();
  if (t == Dtype::bf16) return (entmax ? 6 : few ? 5 : 3) * kBf16;
  if (c.general || kind != NormalizerKind::softmax) return (entmax ? 8 : 2) * fp32_tolerance(c);
  // Sums reach 27, and a network's function of their differences is as large. It is a logit, and
  // its rounding error multiplies into the scale's gradient.
  return 4 * kF32 * 24 + (c.mix && has_sums(c) ? 32 * 27 * kF32 : 0);
}

/// Compares an operation of the case on CUDA with the reference.
inline void check_on_cuda(Operation op, const AttentionCase& c, Dtype t, double tolerance) {
  INFO(describe(c) << " in " << name_of(t));
  Machine machine(t, cuda_device(), op.workspace);
  if (t == Dtype::bf16) allow_for_logit_readers(op, c);
  compare_with_reference(op, t, tolerance, {&machine});
}
inline void check_attention(const AttentionCase& c, Dtype t) {
  check_on_cuda(attention(c), c, t, cuda_tolerance(c, t));
}
inline void check_attention(const AttentionCase& c) {
  for (Dtype t : {Dtype::f32, Dtype::bf16}) check_attention(c, t);
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
