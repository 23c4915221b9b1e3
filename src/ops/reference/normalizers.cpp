#include "ops/reference/normalizers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace bamtrain {

namespace {

using Doubles = std::vector<double>;

/// A row: the logits of its visible keys.
struct Logits {
  const Attention& a;
  int64_t h;
  const Doubles& z;

  int64_t keys() const { return static_cast<int64_t>(z.size()); }
  double alpha() const { return a.alphas ? a.alphas.ptr<double>()[h] : a.form.normalizer.alpha; }
};

/// Softmax over the keys for which kept(j), and its lse.
template <class Kept>
RowWeights softmax_over(const Doubles& z, Kept&& kept) {
  RowWeights w;
  double m = -INFINITY, sum = 0;
  for (size_t j = 0; j < z.size(); ++j) {
    if (kept(j)) m = std::isnan(z[j]) ? z[j] : std::max(m, z[j]);
  }
  w.p.resize(z.size());
  for (size_t j = 0; j < z.size(); ++j) {
    if (!kept(j)) continue;
    w.p[j] = std::exp(z[j] - m);
    sum += w.p[j];
    ++w.nonzero_keys;
  }
  for (size_t j = 0; j < z.size(); ++j) {
    if (kept(j)) w.p[j] /= sum;  // NaN does not reach other keys
  }
  w.level = m + std::log(sum);
  return w;
}

/// dz = u (dp - D), where D is the mean of dp weighted by u. Returns D.
double centre(Doubles& dz, const Doubles& u, const Doubles& dp) {
  double total = 0, weighted = 0;
  for (size_t j = 0; j < u.size(); ++j) {
    total += u[j];
    weighted += u[j] * dp[j];
  }
  const double D = weighted / total;
  for (size_t j = 0; j < u.size(); ++j) dz.push_back(u[j] * (dp[j] - D));
  return D;
}

double sigmoid(double z) {
  return z > 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z));
}

// Every normalizer N has weights_of(N(), l), and adjoint_of(N(), l, w, dp) for rows whose weights w
// depend on the logits.

// --- softmax -------------------------------------------------------------------------------------

RowWeights weights_of(Softmax, const Logits& l) {
  return softmax_over(l.z, [](size_t) { return true; });
}

RowAdjoint adjoint_of(Softmax, const Logits&, const RowWeights& w, const Doubles& dp) {
  RowAdjoint r;
  centre(r.dz, w.p, dp);
  return r;
}

// --- entmax --------------------------------------------------------------------------------------

/// x_j of p_j = w [x_j]_+^(1/a), where w is the weight of the largest logit m; wa = w^a.
double entmax_root(double m, double z, double wa, double a) {
  return z == m ? 1 : 1 - a * (m - z) / wa;
}
double entmax_weight(double x, double w, double a) {
  return x > 0 ? w * std::pow(x, 1 / a) : x <= 0 ? 0 : x;
}

/// The weight of the largest logit is where the weights sum to 1. The sum increases with it: regula
/// falsi on [1/n, 1], with the Illinois rule. Of a bracket without a number inside, `high` is
/// taken: there the sum is not below 1.
RowWeights weights_of(Entmax, const Logits& l) {
  const double a = l.alpha() - 1;
  RowWeights w;
  w.level = *std::max_element(l.z.begin(), l.z.end());
  Doubles near;  // all other keys have zero weight, whatever the largest weight (at most 1)
  std::copy_if(l.z.begin(), l.z.end(), std::back_inserter(near),
               [&](double x) { return !(entmax_root(w.level, x, 1, a) <= 0); });
  const auto sum_at = [&](double weight) {
    const double wa = std::pow(weight, a);
    double sum = 0;
    for (double z : near) sum += entmax_weight(entmax_root(w.level, z, wa, a), weight, a);
    return sum;
  };
  constexpr double kRounding = 0x1p-51;
  double low = 1 / static_cast<double>(l.z.size()), high = 1;
  double below = sum_at(low) - 1, above = sum_at(high) - 1;
  if (below >= 0) high = low;
  if (above <= kRounding) low = high;  // one key has all
  int same = 0;                        // steps in a row that moved the same end: high > 0, low < 0
  for (int n = 0; n < 200; ++n) {
    double next = high - above * (high - low) / (above - below);
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (next <= low || next >= high) break;
    const double excess = sum_at(next) - 1;
    if (std::abs(excess) <= kRounding) {
      high = next;
      break;
    }
    if (excess >= 0) {
      high = next, above = excess, same = std::max(same, 0) + 1;
      if (same > 1) below /= 2;
    } else {
      low = next, below = excess, same = std::min(same, 0) - 1;
      if (same < -1) above /= 2;
    }
  }
  w.threshold = high;
  const double sum = sum_at(high), wa = std::pow(high, a);
  for (double z : l.z) {
    const double x = entmax_root(w.level, z, wa, a);
    w.p.push_back(entmax_weight(x, high, a) / sum);
    w.nonzero_keys += x > 0;
  }
  return w;
}

/// u of entmax: p^(2 - alpha), bounded as in normalizers/entmax.h.
double entmax_slope(double p, double alpha) {
  if (p <= 0) return 0;
  if (alpha <= 2) return std::pow(p, 2 - alpha);
  if (alpha <= Entmax::kPowerAlpha) {
    return std::pow(std::max(p, Entmax::kSmallestWeight), 2 - alpha);
  }
  const double x = std::max(std::pow(p, alpha - 1), Entmax::kSmallestRoot);
  return std::pow(x, (2 - alpha) / (alpha - 1));
}

RowAdjoint adjoint_of(Entmax, const Logits& l, const RowWeights& w, const Doubles& dp) {
  RowAdjoint r;
  Doubles u;
  for (double p : w.p) u.push_back(entmax_slope(p, l.alpha()));
  const double D = centre(r.dz, u, dp), a = l.alpha() - 1;
  for (size_t j = 0; j < dp.size(); ++j) {
    const double p = w.p[j], h = p > 0 ? -p * std::log(p) : 0;
    r.dalpha += p * (dp[j] - D) / (a * a) + h * (dp[j] - D) / a;
  }
  return r;
}

// --- top-k ---------------------------------------------------------------------------------------

RowWeights weights_of(Topk, const Logits& l) {
  const Doubles& z = l.z;
  const int64_t k = l.a.form.normalizer.keys.of(l.keys(), l.a.k.shape[1]);
  std::vector<size_t> order(z.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // NaN first: it must reach the row.
  std::stable_sort(order.begin(), order.end(), [&z](size_t i, size_t j) {
    return std::isnan(z[i]) ? !std::isnan(z[j]) : z[i] > z[j];
  });
  std::vector<bool> kept(z.size());
  for (int64_t n = 0; n < k; ++n) kept[order[static_cast<size_t>(n)]] = true;
  RowWeights w = softmax_over(z, [&kept](size_t j) { return kept[j]; });
  const auto last = static_cast<size_t>(k - 1);
  const bool cut = last + 1 < order.size() && z[order[last + 1]] == z[order[last]];
  w.last = static_cast<int64_t>(cut ? order[last] : z.size() - 1);
  w.threshold = z[order[last]];
  return w;
}

RowAdjoint adjoint_of(Topk, const Logits& l, const RowWeights& w, const Doubles& dp) {
  return adjoint_of(Softmax(), l, w, dp);
}

// --- stick-breaking ------------------------------------------------------------------------------

RowWeights weights_of(StickBreaking, const Logits& l) {
  RowWeights w;
  w.p.assign(l.z.size(), 0);
  w.nonzero_keys = l.keys() - 1;
  double rest = 1;
  for (size_t j = l.z.size() - 1; j-- > 0;) {
    w.p[j] = sigmoid(l.z[j]) * rest;
    rest *= sigmoid(-l.z[j]);
  }
  return w;
}

/// d log p_m / dz_j is 1 - sigmoid(z_m) for j = m, and -sigmoid(z_j) for j between m and the row's
/// own key.
RowAdjoint adjoint_of(StickBreaking, const Logits& l, const RowWeights& w, const Doubles& dp) {
  const Doubles& z = l.z;
  RowAdjoint r;
  r.dz.assign(z.size(), 0);
  for (size_t j = 0; j + 1 < z.size(); ++j) {
    r.dz[j] = w.p[j] * dp[j] * sigmoid(-z[j]);
    for (size_t m = 0; m < j; ++m) r.dz[j] -= sigmoid(z[j]) * w.p[m] * dp[m];
  }
  return r;
}

}  // namespace

RowWeights reference_weights(const Attention& a, int64_t h, const Doubles& z) {
  RowWeights w;
  with_normalizer(a.form.normalizer.kind, [&]<class N>() { w = weights_of(N(), {a, h, z}); });
  return w;
}

RowAdjoint reference_adjoint(const Attention& a, int64_t h, const Doubles& z, const RowWeights& w,
                             const Doubles& dp) {
  const NormalizerKind kind = a.form.normalizer.kind;
  if (z.size() == 1 && traits_of(kind).constant_alone()) return {{0}, 0};
  RowAdjoint r;
  with_normalizer(kind, [&]<class N>() { r = adjoint_of(N(), {a, h, z}, w, dp); });
  return r;
}

}  // namespace bamtrain
