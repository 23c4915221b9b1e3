#include "ops/mechanisms/gated_rows.h"

#include "ops/reference/autodiff.h"
#include "ops/reference/rules.h"

namespace bamtrain {

using namespace reference;

namespace {

/// The number of (b, t, h), with its derivative with respect to gate `by`; -1: no derivative.
template <class Operation>
Dual number_at(const Operation& of, int64_t b, int64_t t, int64_t h, int64_t H, int64_t by) {
  const int64_t keys = visible_key_count(of.first_key, of.last_key, b, t);
  Dual number = 1;
  with_rule(of.use.rule, [&]<class Rule>() {
    Dual u[Rule::kGates];
    for (int64_t k = 0; k < Rule::kGates; ++k) {
      const double bias = of.bias.empty() ? 0 : f64(of.bias[static_cast<size_t>(k)])[h];
      u[k] = {gate(of.gates, b, t, k * H + h) + bias, k == by ? 1.0 : 0.0};
    }
    if (h >= of.use.first_head) number = number_of(Rule(of.use.constants), u, keys);
  });
  return number;
}

}  // namespace

void GatedRowsForward::in_reference() const {
  const int64_t B = rows.shape[0], H = rows.shape[1], T = rows.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) {
        f64(rows)[b * rows.stride[0] + h * rows.stride[1] + t] = number_at(*this, b, t, h, H, -1).x;
      }
    }
  }
}

void GatedRowsBackward::in_reference() const {
  const int64_t B = drows.shape[0], H = drows.shape[1], T = drows.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t column = 0; column < gates.shape[2]; ++column) {
        const int64_t h = column % H, k = column / H;
        const double d = f64(drows)[(b * H + h) * T + t] * number_at(*this, b, t, h, H, k).d;
        gate(dgates, b, t, column) = d;
        if (!dbias.empty()) f64(dbias[static_cast<size_t>(k)])[h] += d;
      }
    }
  }
}

}  // namespace bamtrain
