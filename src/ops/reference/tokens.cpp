#include "ops/mechanisms/tokens.h"

#include "ops/reference/attention_row.h"

namespace bamtrain {

using namespace reference;

namespace {

// The formulas of priors/formula.h: b from the row's number, the key's number and their distance.

Var formula_of(Difference, Var row, Var key, double) { return -abs(key - row); }

Var formula_of(LogSquare, Var row, Var key, double) { return -log1p((key - row) * (key - row)); }

}  // namespace

Vars TokenBias::in_reference(const AttentionRow& row, const Gradients& g) const {
  const int64_t of_head = row.batch * numbers.stride[0] + row.h * numbers.stride[1];
  const auto number = [&](int64_t t) {
    return element(row.tape, numbers, of_head + t, g.dnumbers,
                   (row.batch * row.H + row.h) * row.T + t);
  };
  return row.by_key([&](int64_t j) {
    Var b;
    with_formula(formula, [&]<class Of>() {
      b = formula_of(Of(), number(row.own()), number(j), static_cast<double>(row.distance(j)));
    });
    return b;
  });
}

}  // namespace bamtrain
