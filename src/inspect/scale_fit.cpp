#include "inspect/scale_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace bamtrain {

namespace {

struct Points {
  std::vector<double> x, y;
};

/// The least-squares line; a constant at the mean if all x are equal.
Fit line_through(const Points& p) {
  const auto count = static_cast<double>(p.x.size());
  double mean_x = 0, mean_y = 0;
  for (size_t n = 0; n < p.x.size(); ++n) {
    mean_x += p.x[n] / count;
    mean_y += p.y[n] / count;
  }
  double xx = 0, xy = 0, yy = 0;
  for (size_t n = 0; n < p.x.size(); ++n) {
    const double dx = p.x[n] - mean_x, dy = p.y[n] - mean_y;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  Fit fit;
  fit.beta = xx > 0 ? xy / xx : 0;
  fit.delta = mean_y - fit.beta * mean_x;
  double residuals = 0;
  for (size_t n = 0; n < p.x.size(); ++n) {
    const double r = p.y[n] - fit.delta - fit.beta * p.x[n];
    residuals += r * r;
  }
  fit.r2 = 1 - residuals / yy;
  return fit;
}

Fit power_fit(const Points& logs, double gamma) {
  Points p = logs;
  for (double& x : p.x) x = std::pow(x, gamma);
  Fit fit = line_through(p);
  fit.gamma = gamma;
  return fit;
}

/// Finds the best gamma on a grid, then refines it between its neighbours by golden-section search.
Fit best_power_fit(const Points& logs) {
  constexpr double kStep = 0.05, kRatio = 0.6180339887498949;
  constexpr int kSteps = static_cast<int>(2 * kMostGamma / kStep), kSections = 60;
  Fit best = power_fit(logs, -kMostGamma);
  for (int k = 1; k <= kSteps; ++k) {
    const Fit fit = power_fit(logs, -kMostGamma + kStep * k);
    if (fit.r2 > best.r2) best = fit;
  }
  double low = std::max(best.gamma - kStep, -kMostGamma);
  double high = std::min(best.gamma + kStep, kMostGamma);
  for (int k = 0; k < kSections; ++k) {
    const double a = high - kRatio * (high - low), b = low + kRatio * (high - low);
    const bool left = power_fit(logs, a).r2 > power_fit(logs, b).r2;
    (left ? high : low) = left ? b : a;
  }
  const Fit fine = power_fit(logs, (low + high) / 2);
  return fine.r2 > best.r2 ? fine : best;
}

}  // namespace

double Fit::power(double n) const { return delta + beta * std::pow(std::log(n), gamma); }

std::optional<ScaleFits> fit_scale(const std::vector<int64_t>& keys, const std::vector<double>& t) {
  Points plain, logs;
  std::set<int64_t> different;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 2) continue;
    if (!std::isfinite(t[i])) return std::nullopt;
    different.insert(keys[i]);
    plain.x.push_back(static_cast<double>(keys[i]));
    logs.x.push_back(std::log(plain.x.back()));
    plain.y.push_back(t[i]);
  }
  logs.y = plain.y;
  if (different.size() < 4) return std::nullopt;
  const auto [least, most] = std::minmax_element(plain.y.begin(), plain.y.end());
  // Differences of rounding size have no shape to fit.
  if (*most - *least <= 1e-6 * std::max(std::abs(*least), std::abs(*most))) return std::nullopt;
  return ScaleFits{line_through(plain), line_through(logs), best_power_fit(logs)};
}

}  // namespace bamtrain
