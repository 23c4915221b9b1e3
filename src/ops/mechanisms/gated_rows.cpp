#include "ops/mechanisms/gated_rows.h"

#include "core/element.h"
#include "core/parallel.h"
#include "ops/gates.h"
#include "ops/visible_keys.h"

namespace bamtrain {

namespace {

/// What a rule reads for one row.
template <class Rule>
struct RowGates {
  int64_t keys;  // visible
  double u[Rule::kGates];

  template <class Operation>
  RowGates(const Operation& of, int64_t b, int64_t t, int64_t h, int64_t H)
      : keys(visible_keys(of.first_key, of.last_key, b, t)) {
    for (int k = 0; k < Rule::kGates; ++k) {
      u[k] = get(of.gates, gate_at(of.gates, b, t, k * H + h));
      if (!of.bias.empty()) u[k] += get(of.bias[static_cast<size_t>(k)], h);
    }
  }
};

}  // namespace

void GatedRowsForward::on_host(const HostScratch&) const {
  const int64_t H = rows.shape[1], T = rows.shape[2];
  with_rule(use.rule, [&]<class Rule>() {
    const Rule rule(use.constants);
    parallel_for(rows.shape[0] * H, [&](int64_t n) {
      const int64_t b = n / H, h = n % H, begin = b * rows.stride[0] + h * rows.stride[1];
      for (int64_t t = 0; t < T; ++t) {
        const RowGates<Rule> row(*this, b, t, h, H);
        put(rows, begin + t, h < use.first_head ? 1 : rule.value(row.u, row.keys));
      }
    });
  });
}

void GatedRowsBackward::on_host(const HostScratch&) const {
  const int64_t B = drows.shape[0], H = drows.shape[1], T = drows.shape[2];
  with_rule(use.rule, [&]<class Rule>() {
    const Rule rule(use.constants);
    parallel_for(H, [&](int64_t h) {
      double of_bias[Rule::kGates] = {};
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t t = 0; t < T; ++t) {
          double d[Rule::kGates] = {};
          if (h >= use.first_head) {
            const RowGates<Rule> row(*this, b, t, h, H);
            rule.adjoint(get(drows, (b * H + h) * T + t), row.u, row.keys, d);
          }
          for (int64_t k = 0; k < Rule::kGates; ++k) {
            put(dgates, gate_at(dgates, b, t, k * H + h), d[k]);
            of_bias[k] += d[k];
          }
        }
      }
      for (size_t k = 0; k < dbias.size(); ++k) put(dbias[k], h, get(dbias[k], h) + of_bias[k]);
    });
  });
}

}  // namespace bamtrain
