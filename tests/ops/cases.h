#pragma once
// The operations of Backend as functions of named values, for comparisons and finite differences.

#include "compare.h"

namespace bamtrain::testing {

/// x (N, I), weight (O, I), bias (O).
struct LinearCase {
  int64_t N = 1, O = 1, I = 1;
  bool bias = false;
  int64_t gap = 0;  // elements between rows of y and of its cotangents
};
Operation linear(const LinearCase& c);

/// residual, branch (N, C), weight, bias (C). Residual and branch are multiples of 1/16 below 8 in
/// size, so that their sum is exact in bf16: what is compared is the norm, not the addition.
struct NormCase {
  NormKind kind = NormKind::rmsnorm;
  int64_t N = 1, C = 1;
  bool bias = false, branch = false;
};
Operation norm(const NormCase& c);

/// in (N, 2F), or (N, F) for gelu, of standard deviation 2.
Operation activation(MlpKind kind, int64_t N, int64_t F);

/// x (B, T, H, D) as the first heads of a wider (B, T, H + 2, D), as q lies in qkv; positions fall
/// back to 0 at random places.
struct RotateCase {
  int64_t B = 1, T = 1, H = 1, D = 2;
};
Operation rotate(const RotateCase& c);

/// A copy of an (a, b, c, d) that lies as (a, c, b, d) in wider memory to one that lies as it is.
struct CopyCase {
  int64_t a = 1, b = 1, c = 1, d = 1;
  int64_t beside = 0;  // elements before and behind each row
};
constexpr CopyCase kCopies[] = {{2, 5, 3, 8, 8}, {2, 5, 3, 4, 4}, {1, 2, 7, 6, 1}, {3, 1, 1, 1, 2}};
void check_copy(const CopyCase& c, Role role, Machine& m);

/// gates (B, T, H) as the first columns of a wider (B, T, H + 3), as they lie in qkv; bias (H).
struct SumsCase {
  int64_t B = 1, T = 1, H = 1;
  int64_t past = 0;  // tokens whose sums lie before, none of whose are formed
};
Operation running_sums(const SumsCase& c);

/// gates (B, T, 2 H) as columns of a wider (B, T, 2 H + 3), as they lie in qkv; beta_bias,
/// gamma_bias (H) where `bias`. Documents and windows as attention has them.
struct AdaptiveCase {
  int64_t B = 1, T = 1, H = 1;
  bool bias = false;
  int64_t first_head = 0;
};
Operation adaptive_scale(const AdaptiveCase& c);

/// table (V, C), position_table (T, C); N tokens, most of them several times.
struct EmbeddingCase {
  int64_t N = 1, V = 1, T = 1, C = 1;
  bool positions = false;
  double scale = 1;
};
Operation embedding(const EmbeddingCase& c);

/// logits (R, V) plus `shift`; the gradient lies in the logits' own memory where `in_place`.
struct CrossEntropyCase {
  int64_t R = 1, V = 1;
  double shift = 0;
  bool in_place = false;
};
Operation cross_entropy(const CrossEntropyCase& c);

}  // namespace bamtrain::testing
