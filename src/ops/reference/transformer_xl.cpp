#include "ops/mechanisms/transformer_xl.h"

#include <cmath>

#include "ops/reference/autodiff.h"
#include "ops/reference/place.h"

namespace bamtrain {

using namespace reference;

double RelativeBias::in_reference(const LogitPlace& p) const {
  const double* const of_distance = f64(r) + (p.by_distance(r.shape[0]) * p.H + p.h) * p.D;
  double sum = 0;
  for (int64_t c = 0; c < p.D; ++c) {
    sum += (p.q[c] + f64(w)[p.h * p.D + c]) * of_distance[c] + f64(u)[p.h * p.D + c] * p.k[c];
  }
  return sum / std::sqrt(static_cast<double>(p.D));
}

void RelativeBias::adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const {
  const double of_sum = db / std::sqrt(static_cast<double>(p.D));
  const int64_t of_distance = (p.by_distance(r.shape[0]) * p.H + p.h) * p.D;
  const int64_t of_gradient = (p.by_distance(g.dr.shape[0]) * p.H + p.h) * p.D;
  for (int64_t c = 0; c < p.D; ++c) {
    const int64_t parameters_of_head = p.h * p.D + c;
    const double x = f64(r)[of_distance + c], query = p.q[c] + f64(w)[parameters_of_head];
    p.dk[c] += of_sum * f64(u)[parameters_of_head];
    f64(g.du)[parameters_of_head] += of_sum * p.k[c];
    f64(g.dr)[of_gradient + c] += of_sum * query;
    f64(g.dw)[parameters_of_head] += of_sum * x;
    p.dq[c] += of_sum * x;
  }
}

}  // namespace bamtrain
