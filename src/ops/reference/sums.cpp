#include "ops/mechanisms/sums.h"

#include <cmath>
#include <vector>

#include "ops/reference/numbers.h"
#include "ops/reference/place.h"

namespace bamtrain {

using namespace reference;

void SumsForward::in_reference() const {
  const int64_t B = sums.shape[0], H = sums.shape[1], T = sums.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      std::vector<double> u;
      for (int64_t t = 0; t < T; ++t) {
        u.push_back(softplus(Dual(gate(gates, b, t, h) + f64(bias)[h])).x);
        double S = 0;
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

// --- at one logit

namespace {

/// x = S_j - S_i.
double rise(const Tensor& sums, const LogitPlace& p) {
  const double* S = f64(sums) + p.batch * sums.stride[0] + p.h * sums.stride[1];
  return S[p.j] - S[p.past + p.i];
}

double derivative(SumBias form, double x) {
  return form == SumBias::difference ? 1 : -2 * x / (1 + x * x);
}

}  // namespace

double SumsBias::in_reference(const LogitPlace& p) const {
  const double x = rise(sums, p);
  return form == SumBias::difference ? x : -std::log1p(x * x);
}

void SumsBias::adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const {
  const double dx = db * derivative(form, rise(sums, p));
  f64(g.dsums)[p.of_key()] += dx;
  f64(g.dsums)[p.of_row()] -= dx;
}

}  // namespace bamtrain
