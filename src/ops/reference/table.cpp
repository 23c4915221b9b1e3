#include "ops/mechanisms/table.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "ops/reference/attention_row.h"
#include "ops/reference/autodiff.h"
#include "priors/kerple.h"
#include "priors/nape.h"

namespace bamtrain {

using namespace reference;

namespace {

double power_of_two(double exponent) { return std::exp2(exponent); }

/// 2^(-8/n), 2^(-16/n), ... for n = H heads if H is a power of two. Otherwise those of the next
/// lower power of two, then the first, third, ... of the next higher one (Press et al. 2022).
double press_slope(int64_t h, int64_t H) {
  std::vector<double> slopes;
  int64_t n = 1;
  while (2 * n <= H) n *= 2;
  for (int64_t k = 1; k <= n; ++k)
    slopes.push_back(power_of_two(-8.0 * static_cast<double>(k) / static_cast<double>(n)));
  for (int64_t k = 1; k <= 2 * n; k += 2) {
    slopes.push_back(power_of_two(-8.0 * static_cast<double>(k) / static_cast<double>(2 * n)));
  }
  return slopes[static_cast<size_t>(h)];
}

double nape_slope(int form, int64_t h, int64_t H) {
  const int64_t heads = H / 2;
  if (h >= heads) return 0;
  switch (form) {
    case Nape<double>::kHarmonic:
      return 1.0 / static_cast<double>(h + 1);
    case Nape<double>::kHalving:
      return power_of_two(-static_cast<double>(h));
    case Nape<double>::kExponentialOfAll:
      return press_slope(h, H);
    default:
      return press_slope(h, heads);
  }
}

/// d^16 below 128^16 = 2^112 exceeds 64 bits.
__extension__ using Wide = unsigned __int128;

/// 32 buckets. Distances below 16 have one each. Of the others, the k-th begins at 16 * 8^(k / 16),
/// where d^16 reaches 2^(64 + 3 k). All distances from 128 share the last.
size_t t5_bucket(int64_t d) {
  if (d < 16) return static_cast<size_t>(d);
  if (d >= 128) return 31;
  Wide power = 1;
  for (int n = 0; n < 16; ++n) power *= static_cast<Wide>(d);
  size_t k = 0;
  while (power >= static_cast<Wide>(1) << (64 + 3 * (k + 1))) ++k;
  return 16 + k;
}

Var bam(const Vars& theta, double d) {
  const Var location = exp(theta[2]) - exp(-theta[2]);
  const Var b = -exp(theta[0]) * pow(abs(-d - location) + 1e-5, theta[1]);
  return b.x > -1e4 ? b : Var(-1e4);
}

Var table_value(const PriorUse& prior, const Vars& theta, int64_t h, int64_t H, int64_t i_less_j) {
  const std::string& name = prior.info.name;
  const int64_t distance = std::abs(i_less_j);
  const auto d = static_cast<double>(distance);
  if (name == "alibi") return -press_slope(h, H) * (i_less_j > 0 ? d - prior.asymmetry : d);
  if (name == "nape") return -nape_slope(prior.form, h, H) * d;
  if (name == "bam") return bam(theta, static_cast<double>(i_less_j));
  if (name == "t5") return prior.gain * theta[t5_bucket(distance)];
  if (name == "kerple") {
    return prior.form == Kerple<double>::kPower ? -theta[0] * pow(d, theta[1])
                                                : -theta[0] * log(1 + theta[1] * d);
  }
  unknown("prior " + name, "table.cpp");
}

/// The index of distance 0 in a table of n distances.
int64_t middle_of(const PriorUse& prior, int64_t n) { return prior.two_sided ? (n - 1) / 2 : 0; }

}  // namespace

void TableForward::in_reference() const {
  const int64_t H = table.shape[0], T = table.shape[1];
  for (int64_t h = 0; h < H; ++h) {
    const Vars own = parameters_of_head(theta, h, H);
    for (int64_t n = 0; n < T; ++n) {
      f64(table)[h * T + n] = table_value(prior, own, h, H, n - middle_of(prior, T)).x;
    }
  }
}

void TableBackward::in_reference() const {
  const int64_t H = dtable.shape[0], T = dtable.shape[1];
  Tape tape;
  for (int64_t h = 0; h < H; ++h) {
    const Vars own = parameters_of_head(theta, h, H, &tape, dtheta);
    for (int64_t n = 0; n < T; ++n) {
      tape.seed(table_value(prior, own, h, H, n - middle_of(prior, T)), f64(dtable)[h * T + n]);
    }
  }
  tape.backward();
}

// --- in attention

Vars TableBias::in_reference(const AttentionRow& row, const Gradients& g) const {
  return row.by_key([&](int64_t j) {
    return element(row.tape, table, row.h * table.stride[0] + row.by_distance(j, table.shape[1]),
                   g.dtable, row.h * g.dtable.stride[0] + row.by_distance(j, g.dtable.shape[1]));
  });
}

}  // namespace bamtrain
