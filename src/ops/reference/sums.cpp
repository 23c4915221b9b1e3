#include "ops/mechanisms/sums.h"

#include "ops/gates.h"
#include "ops/reference/autodiff.h"

namespace bamtrain {

using namespace reference;

void SumsForward::in_reference() const {
  const int64_t B = sums.shape[0], H = sums.shape[1], T = sums.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      double S = start(b, h);
      for (int64_t t = 0; t < T; ++t) {
        S += softplus(Var(f64(gates)[gate_at(gates, b, t, h)] + f64(bias)[h])).x;
        f64(sums)[b * sums.stride[0] + h * sums.stride[1] + t] = S;
      }
    }
  }
}

void SumsBackward::in_reference() const {
  const int64_t B = dsums.shape[0], H = dsums.shape[1], T = dsums.shape[2];
  Tape tape;
  clear(dgates);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      Var S;
      for (int64_t t = 0; t < T; ++t) {
        S = S + softplus(element(&tape, gates, gate_at(gates, b, t, h), dgates,
                                 gate_at(dgates, b, t, h)) +
                         element(&tape, bias, h, dbias, h));
        tape.seed(S, f64(dsums)[(b * H + h) * T + t]);
      }
    }
  }
  tape.backward();
}

}  // namespace bamtrain
