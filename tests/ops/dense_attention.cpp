#include "dense_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "priors/fire.h"
#include "roles.h"

namespace bamtrain::testing {

namespace {

/// The elements of an input; null if no input has this name.
const double* elements(const Arrays& in, const char* name) {
  return in.count(name) ? in.at(name).x.data() : nullptr;
}

/// The bias of family fire at distance d, by FireTables in ops/mechanisms/fire.h.
double fire_bias(const Arrays& in, int64_t h, double position, int64_t d) {
  const auto p = static_cast<int64_t>(position);
  const double* const ends = elements(in, "ends") + p * kFireHidden;
  int64_t line = h * kFireSegments;
  line += std::upper_bound(ends, ends + kFireHidden, static_cast<double>(d)) - ends;
  return elements(in, "slope")[line] * elements(in, "psi")[d] * elements(in, "inverse")[p] +
         elements(in, "offset")[line];
}

/// <q, E> at a count of gates.
double contextual_bias(const AttentionCase& c, const Arrays& in, const double* q, double gates) {
  const double place = std::min(gates, static_cast<double>(c.positions - 1));
  const auto low = static_cast<int64_t>(place);
  const double* const of_positions = elements(in, "positions");
  double sum = 0;
  for (int64_t d = 0; d < c.D; ++d) {
    const double* const E = of_positions + d * c.positions;
    sum += q[d] * std::lerp(E[low], E[std::min(low + 1, c.positions - 1)],
                            place - static_cast<double>(low));
  }
  return sum;
}

}  // namespace

DenseRow::DenseRow(const AttentionCase& c, const Arrays& in, int64_t b, int64_t h, int64_t i,
                   int64_t first, int64_t last)
    : first(first) {
  const double root = std::sqrt(static_cast<double>(c.D));
  const double* const q = elements(in, "q") + ((b * c.T + i) * c.H + h) * c.D;
  const double *const keys = elements(in, "k"), *const table = elements(in, "table");
  const double *const numbers = elements(in, "numbers"), *const r = elements(in, "r");
  const double *const u = elements(in, "u"), *const w = elements(in, "w");
  const double* const of_fire = in.count("psi") ? elements(in, "positions") : nullptr;
  const int64_t distances = c.causal ? c.T : 2 * c.T - 1;
  for (int64_t j = first; j <= last; ++j) {
    const double* const k = keys + ((b * c.T + j) * c.K + h / (c.H / c.K)) * c.D;
    const double product = std::inner_product(q, q + c.D, k, 0.0);
    s.push_back(c.content_scale != 0 ? product * c.content_scale : product / root);
    const int64_t distance = i - j + distances - c.T;  // its index in a table
    double bias = table ? table[h * distances + distance] : 0;
    if (numbers) {
      const double* const S = numbers + (b * c.H + h) * c.T;
      const double x = S[j] - S[i];
      bias = c.table == TableForm::difference ? -std::abs(x) : -std::log(1 + x * x);
    }
    for (int64_t d = 0; r && d < c.D; ++d) {
      const int64_t of_head = h * c.D + d;
      bias += (q[d] + w[of_head]) * r[distance * c.H * c.D + of_head] / root;
      bias += u[of_head] * k[d] / root;
    }
    if (of_fire) {
      bias = fire_bias(in, h, of_fire[b * c.T + std::max(i, j)], std::abs(i - j));
    }
    this->b.push_back(bias);
  }
  double gates = 0;
  for (size_t n = s.size(); c.table == TableForm::contextual && n-- > 0;) {
    gates += 1 / (1 + std::exp(-s[n]));
    this->b[n] = contextual_bias(c, in, q, gates);
  }
}

std::vector<double> DenseRow::logits(const AttentionCase& c, double t) const {
  std::vector<double> z;
  for (size_t n = 0; n < s.size(); ++n) {
    z.push_back(c.scale == ScaleForm::both ? t * (s[n] + b[n]) : t * s[n] + b[n]);
  }
  return z;
}

DenseSoftmax::DenseSoftmax(const std::vector<double>& z) {
  const double highest = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (double x : z) sum += std::exp(x - highest);
  lse = highest + std::log(sum);
  for (double x : z) {
    p.push_back(std::exp(x - lse));
    entropy -= p.back() * (x - lse);
  }
}

Arrays dense_attention(const AttentionCase& c, const Arrays& in) {
  const std::vector<int32_t> first = first_keys(c), last = last_keys(c);
  const double *const v = elements(in, "v"), *const t = elements(in, "scale");
  Arrays all = {{"out", constant_values(A, {c.B, c.T, c.H, c.D}, 0)},
                {"lse", {P, {c.B, c.H, c.T}, {}}},
                {"entropy", {P, {c.B, c.H, c.T}, {}}}};
  for (int64_t n = 0; n < c.B * c.H * c.T; ++n) {
    const int64_t b = n / (c.H * c.T), h = n / c.T % c.H, i = n % c.T;
    const auto row = static_cast<size_t>(b * c.T + i);
    const DenseRow dense(c, in, b, h, i, first[row], last[row]);
    const DenseSoftmax w(dense.logits(c, t ? t[n] : 1));
    all["lse"].x.push_back(w.lse);
    all["entropy"].x.push_back(w.entropy);
    double* const out = &all["out"].x[static_cast<size_t>(((b * c.T + i) * c.H + h) * c.D)];
    for (int64_t j = 0; j < std::ssize(w.p); ++j) {
      const int64_t key = (b * c.T + first[row] + j) * c.K + h / (c.H / c.K);
      for (int64_t d = 0; d < c.D; ++d) out[d] += w.p[static_cast<size_t>(j)] * v[key * c.D + d];
    }
  }
  return all;
}

}  // namespace bamtrain::testing
