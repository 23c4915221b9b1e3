#pragma once
// The position of a logit.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace bamtrain {

/// Row i and key j of one head and sequence. `past` tokens come before row 0.
struct LogitPlace {
  int64_t batch, h, i, j, past, H, T, D;
  const double *q, *k;                                 // (D): of the row and of the key
  int64_t first;                                       // the first key that the row sees
  const double* s;                                     // the row's scores, of its visible keys
  double *dq = nullptr, *dk = nullptr, *ds = nullptr;  // gradients of q, k and s, in an adjoint
  bool causal = true;

  /// The row's own key.
  int64_t own() const { return past + i; }
  int64_t distance() const { return std::abs(past + i - j); }
  /// The index of i - j in a table of n distances.
  int64_t by_distance(int64_t n) const { return past + i - j + (causal ? 0 : (n - 1) / 2); }
  /// The later of the two tokens, of T: a row, if there is no past.
  int64_t later() const { return std::max(i, j - past); }
  /// The index of row i in a (B, H, T) tensor.
  int64_t of_row() const { return (batch * H + h) * T + i; }
  int64_t of_key() const { return (batch * H + h) * T + j; }
};

}  // namespace bamtrain
