#pragma once
// Where a logit is.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace bamtrain {

/// Row i, a token with `past` before the first row's, of one head and sequence, and key j.
struct LogitPlace {
  int64_t batch, h, i, j, past, H, T, D;
  const double *q, *k;                                 // (D): of the row and the key
  int64_t first;                                       // the first key that the row sees
  const double* s;                                     // the row's scores, of the keys that it sees
  double *dq = nullptr, *dk = nullptr, *ds = nullptr;  // theirs, of an adjoint
  bool causal = true;

  /// The row's own key.
  int64_t own() const { return past + i; }
  int64_t distance() const { return std::abs(past + i - j); }
  /// i - j in a table of n distances.
  int64_t by_distance(int64_t n) const { return past + i - j + (causal ? 0 : (n - 1) / 2); }
  /// Of the two tokens the later, of T: a row where there is no past.
  int64_t later() const { return std::max(i, j - past); }
  /// Of row i in a (B, H, T).
  int64_t of_row() const { return (batch * H + h) * T + i; }
  int64_t of_key() const { return (batch * H + h) * T + j; }
};

}  // namespace bamtrain
