#pragma once
// A row of attention in fp64 before its normalizer. Used by the reference backend, and to inspect a
// model's attention.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/attention.h"
#include "ops/reference/autodiff.h"

namespace bamtrain {

/// Row i of head h of a sequence: scores, biases and logits over the keys first .. last that the
/// row sees, counted from the first key of k.
struct AttentionRow {
  int64_t batch, i, h, past, H, T, D;
  bool causal;
  autodiff::Tape* tape;          // null: everything is a constant
  autodiff::Array q, first_key;  // (D): of the row, and of the first key of k
  int64_t key_stride;
  int64_t first = 0, last = 0;
  autodiff::Var t = 1;    // the logit scale
  autodiff::Vars s = {};  // content_scale <q_i, k_j>
  autodiff::Vars B = {};  // the bias itself
  autodiff::Vars b = {};  // the mix of heads applied to s and B; empty: B
  autodiff::Vars z = {};  // t s + b, or t (s + b)

  /// What is added to the scores.
  const autodiff::Vars& added() const { return b.empty() ? B : b; }

  // --- what a bias reads

  /// The row's own key.
  int64_t own() const { return past + i; }
  int64_t distance(int64_t j) const { return std::abs(own() - j); }
  /// The index of i - j in a table of n distances.
  int64_t by_distance(int64_t j, int64_t n) const { return own() - j + (causal ? 0 : (n - 1) / 2); }
  /// The later of the two tokens, of T: a row, if there is no past.
  int64_t later(int64_t j) const { return std::max(i, j - past); }
  autodiff::Array key(int64_t j) const {
    const int64_t at = j * key_stride;
    return {first_key.x + at, tape ? first_key.d + at : nullptr};
  }
  autodiff::Var dot(const autodiff::Array& x, const autodiff::Array& y) const {
    return autodiff::dot(tape, D, x, y);
  }
  /// f(j) of every key.
  template <class F>
  autodiff::Vars by_key(F&& f) const {
    autodiff::Vars all;
    all.reserve(static_cast<size_t>(last - first + 1));
    for (int64_t j = first; j <= last; ++j) all.push_back(f(j));
    return all;
  }
};

/// Row i of every head of a sequence, (H). All real tensors of `a` are f64. v is not read. With a
/// tape, derivatives are added to the gradients `g`.
std::vector<AttentionRow> reference_rows(const Attention& a, int64_t batch, int64_t i,
                                         autodiff::Tape* tape = nullptr,
                                         const AttentionGradients& g = {});

std::vector<double> values_of(const autodiff::Vars& vars);

/// The channels of token t's head, of a tensor (B, T, H, D) f64.
inline double* channels_of(const Tensor& x, int64_t b, int64_t t, int64_t h) {
  return x.ptr<double>() + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
}

inline double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace bamtrain
