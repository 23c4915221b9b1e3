#pragma once
// Where a logit is.

#include <cstdint>

namespace bamtrain {

/// Row i, a token with `past` before the first row's, of one head and sequence, and key j.
struct LogitPlace {
  int64_t batch, h, i, j, past, H, T, D;
  const double *q, *k;  // (D): of the row and the key
  int64_t first;        // the first key that the row sees
  const double* s;      // the row's scores, of the keys from there to its own
  double *dq = nullptr, *dk = nullptr, *ds = nullptr;  // theirs, of an adjoint

  int64_t last() const { return past + i; }
  int64_t distance() const { return past + i - j; }
  /// Of row i in a (B, H, T).
  int64_t of_row() const { return (batch * H + h) * T + i; }
  int64_t of_key() const { return (batch * H + h) * T + j; }
};

}  // namespace bamtrain
