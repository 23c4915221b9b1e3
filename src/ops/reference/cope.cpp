#include "ops/mechanisms/cope.h"

#include <algorithm>

#include "ops/reference/attention_row.h"

namespace bamtrain {

using namespace reference;

Vars ContextualBias::in_reference(const AttentionRow& row, const Gradients& g) const {
  const int64_t n = positions.shape[1];
  const auto last = static_cast<double>(n - 1);
  const auto at_column = [&](int64_t p) {  // <q, E[p]>
    Array column = array(row.tape, positions, p, g.dpositions, p);
    column.stride = n;
    return row.dot(row.q, column);
  };
  Var count;
  Vars b(row.s.size());
  for (size_t k = row.s.size(); k-- > 0;) {
    count = count + sigmoid(row.s[k]);
    const Var p = count.x < last ? count : last;
    const auto low = static_cast<int64_t>(p.x);
    const Var share = p - static_cast<double>(low);
    b[k] = (1 - share) * at_column(low) + share * at_column(std::min(low + 1, n - 1));
  }
  return b;
}

}  // namespace bamtrain
