#include "ops/mechanisms/gated_rows.h"

#include "ops/gates.h"
#include "ops/reference/autodiff.h"

namespace bamtrain {

using namespace reference;

namespace {

// The rules of scales/gated_rows.h: the number of a row with `keys` visible keys, from its gates u.

Var number_of(const Adaptive& rule, const Var* u, int64_t keys) {
  return rule.delta +
         softplus(u[0]) * pow(std::log(static_cast<double>(keys) + 1), rule.g * tanh(u[1]));
}

/// The number of (b, t, h).
template <class Operation>
Var number_at(const Operation& of, int64_t b, int64_t t, int64_t h, int64_t H, Tape* tape = nullptr,
              const Tensor& dgates = {}, const TensorList& dbias = {}) {
  const int64_t keys = visible_key_count(of.first_key, of.last_key, b, t);
  Var number = 1;
  if (h < of.use.first_head) return number;
  with_rule(of.use.rule, [&]<class Rule>() {
    Var u[Rule::kGates];
    for (int64_t k = 0; k < Rule::kGates; ++k) {
      const int64_t column = k * H + h;
      u[k] = element(tape, of.gates, gate_at(of.gates, b, t, column), dgates,
                     gate_at(dgates, b, t, column));
      if (of.bias.empty()) continue;
      const auto n = static_cast<size_t>(k);
      u[k] = u[k] + element(tape, of.bias[n], h, tape ? dbias[n] : Tensor(), h);
    }
    number = number_of(Rule(of.use.constants), u, keys);
  });
  return number;
}

}  // namespace

void GatedRowsForward::in_reference() const {
  const int64_t H = rows.shape[1], T = rows.shape[2];
  for_elements(rows, [&](int64_t at, int64_t n) {
    f64(rows)[at] = number_at(*this, n / T / H, n % T, n / T % H, H).x;
  });
}

void GatedRowsBackward::in_reference() const {
  const int64_t H = drows.shape[1], T = drows.shape[2];
  Tape tape;
  clear(dgates);
  for (int64_t n = 0; n < drows.size(); ++n) {
    tape.seed(number_at(*this, n / T / H, n % T, n / T % H, H, &tape, dgates, dbias),
              f64(drows)[n]);
  }
  tape.backward();
}

}  // namespace bamtrain
