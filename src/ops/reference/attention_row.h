#pragma once
// A row of attention in fp64 before its normalizer. Used by the reference backend, and to inspect a
// model's attention.

#include <cstdint>
#include <vector>

#include "ops/attention.h"
#include "ops/reference/mix.h"

namespace bamtrain {

/// Scores, biases and logits over the keys first .. last that a row sees, counted from the first
/// key of k.
struct AttentionRow {
  int64_t first = 0, last = 0;
  double t = 1;           // RowScale
  std::vector<double> s;  // content_scale <q_i, k_j>
  std::vector<double> B;  // the bias itself
  std::vector<double> b;  // the mix of heads applied to s and B; B if there is no mix
  std::vector<double> z;  // t s + b, or t (s + b)
};

/// Row i of every head of a sequence, (H). All real tensors of `a` are f64. v is not read.
std::vector<AttentionRow> reference_rows(const Attention& a, int64_t batch, int64_t i);

/// Element n of `member` of every head's row.
OfHeads of_heads(const std::vector<AttentionRow>& heads, std::vector<double> AttentionRow::*member,
                 size_t n);

/// The channels of token t's head, of a tensor (B, T, H, D) f64.
inline double* channels_of(const Tensor& x, int64_t b, int64_t t, int64_t h) {
  return x.ptr<double>() + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
}

inline double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace bamtrain
