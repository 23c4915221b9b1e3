#include "ops/mechanisms/sums.h"

#include <vector>

#include "ops/reference/autodiff.h"
#include "ops/reference/formulas.h"

namespace bamtrain {

using namespace reference;

void SumsForward::in_reference() const {
  const int64_t B = sums.shape[0], H = sums.shape[1], T = sums.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      std::vector<double> u;
      for (int64_t t = 0; t < T; ++t) {
        u.push_back(softplus(Dual(gate(gates, b, t, h) + f64(bias)[h])).x);
        double S = start(b, h);
        for (double x : u) S += x;
        f64(sums)[b * sums.stride[0] + h * sums.stride[1] + t] = S;
      }
    }
  }
}

void SumsBackward::in_reference() const {
  const int64_t B = dsums.shape[0], H = dsums.shape[1], T = dsums.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t j = 0; j < T; ++j) {
        double du = 0;
        for (int64_t t = j; t < T; ++t) du += f64(dsums)[(b * H + h) * T + t];
        const double d = du * softplus(Dual(gate(gates, b, j, h) + f64(bias)[h], 1)).d;
        gate(dgates, b, j, h) = d;
        f64(dbias)[h] += d;
      }
    }
  }
}

// --- at one logit: n_j - n_i is S_j - S_i

Dual reference::formula_of(Difference, Dual row, Dual key, double) { return -abs(key - row); }

Dual reference::formula_of(LogSquare, Dual row, Dual key, double) {
  return -log1p((key - row) * (key - row));
}

}  // namespace bamtrain
