#pragma once
// Operations of Backend as functions of named values, for comparisons and finite differences.

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
/// magnitude, so that their sum is exact in bf16 and only the norm is compared.
struct NormCase {
  NormKind kind = NormKind::rmsnorm;
  int64_t N = 1, C = 1;
  bool bias = false, branch = false;
};
Operation norm(const NormCase& c);

/// in (N, 2F), or (N, F) for gelu, with standard deviation 2.
Operation activation(MlpKind kind, int64_t N, int64_t F);

/// x (B, T, H, D) as the first heads of a wider (B, T, H + 2, D), like q in qkv; positions restart
/// at 0 in random places.
struct RotateCase {
  int64_t B = 1, T = 1, H = 1, D = 2;
};
Operation rotate(const RotateCase& c);

/// Copies an (a, b, c, d) stored as (a, c, b, d) in wider memory to one stored in its own order.
struct CopyCase {
  int64_t a = 1, b = 1, c = 1, d = 1;
  int64_t beside = 0;  // elements before and after each row
};
constexpr CopyCase kCopies[] = {{2, 5, 3, 8, 8}, {2, 5, 3, 4, 4}, {1, 2, 7, 6, 1}, {3, 1, 1, 1, 2}};
void check_copy(const CopyCase& c, Role role, Machine& m);

/// gates (B, T, H) as the first columns of a wider (B, T, H + 3), as in qkv; bias (H).
struct SumsCase {
  int64_t B = 1, T = 1, H = 1;
  int64_t past = 0;  // earlier tokens, whose sums are given and not computed
};
Operation running_sums(const SumsCase& c);

/// gates (B, T, 2 H) as columns of a wider (B, T, 2 H + 3), as in qkv; beta_bias, gamma_bias (H) if
/// `bias`. Documents and windows as in attention.
struct AdaptiveCase {
  int64_t B = 1, T = 1, H = 1;
  bool bias = false;
  int64_t first_head = 0;
};
Operation adaptive_scale(const AdaptiveCase& c);

/// table (V, C), position_table (T, C); N tokens, most of them repeated.
struct EmbeddingCase {
  int64_t N = 1, V = 1, T = 1, C = 1;
  bool positions = false;
  double scale = 1;
};
Operation embedding(const EmbeddingCase& c);

/// logits (R, V) plus `shift`; with `in_place`, the gradient overwrites the logits. Rows begin at
/// multiples of four elements.
struct CrossEntropyCase {
  int64_t R = 1, V = 1;
  double shift = 0;
  bool in_place = false;
  double peak = 0;  // added to the last logit of each row
};
Operation cross_entropy(const CrossEntropyCase& c);

}  // namespace bamtrain::testing
