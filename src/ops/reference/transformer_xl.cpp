#include "ops/mechanisms/transformer_xl.h"

#include "ops/reference/attention_row.h"

namespace bamtrain {

using namespace reference;

Vars RelativeBias::in_reference(const AttentionRow& row, const Gradients& g) const {
  const int64_t of_head = row.h * row.D;
  const Array of_query = array(row.tape, w, of_head, g.dw, of_head);
  const Array of_keys = array(row.tape, u, of_head, g.du, of_head);
  return row.by_key([&](int64_t j) {
    const Array vector =
        array(row.tape, r, row.by_distance(j, r.shape[0]) * row.H * row.D + of_head, g.dr,
              row.by_distance(j, g.dr.shape[0]) * row.H * row.D + of_head);
    return (row.dot(row.q, vector) + row.dot(of_query, vector) + row.dot(of_keys, row.key(j))) /
           std::sqrt(static_cast<double>(row.D));
  });
}

}  // namespace bamtrain
