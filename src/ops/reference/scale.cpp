#include "ops/mechanisms/scale.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/reference/autodiff.h"
#include "ops/reference/rules.h"

namespace bamtrain {

using namespace reference;

namespace {

Dual scale_of(const ScaleUse& use, const Duals& theta, int64_t n) {
  const std::string& name = use.info.name;
  const double* constant = use.constants.of;
  const auto keys = static_cast<double>(n);
  if (name == "constant") return constant[0];
  if (name == "ssmax") return constant[1] + theta[0] * std::log(keys + constant[0]);
  if (name == "sentmax") return constant[0] + theta[0] * pow(std::log(keys + 1), theta[1]);
  if (name == "by_length") return theta[static_cast<size_t>(n - 1)];
  unknown("scale " + name, "scale.cpp");
}

}  // namespace

void ScaleForward::in_reference() const {
  const int64_t B = scale.shape[0], H = scale.shape[1], T = scale.shape[2];
  for (int64_t h = 0; h < H; ++h) {
    const Duals own = parameters_of_head(theta, h, H);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        f64(scale)[(b * H + h) * T + i] =
            h < use.first_head ? 1
                               : scale_of(use, own, visible_key_count(first_key, last_key, b, i)).x;
      }
    }
  }
}

void ScaleBackward::in_reference() const {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  for (int64_t h = use.first_head; h < H; ++h) {
    add_gradient(dtheta, theta, h, H, [&](const Duals& own) {
      Dual sum;
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t i = 0; i < T; ++i) {
          sum = sum + f64(dscale)[(b * H + h) * T + i] *
                          scale_of(use, own, visible_key_count(first_key, last_key, b, i));
        }
      }
      return sum;
    });
  }
}

Dual reference::number_of(const Adaptive& rule, const Dual* u, int64_t keys) {
  return rule.delta +
         softplus(u[0]) * pow(std::log(static_cast<double>(keys) + 1), rule.g * tanh(u[1]));
}

/// Velickovic et al. 2025: above 0.5 nats, the larger of 1 and a polynomial of the entropy; else 1.
void EntropyScale::in_reference() const {
  const int64_t H = scale.shape[1], T = scale.shape[2];
  constexpr double kCoefficients[] = {-1.791, 4.917, -2.3, 0.481, -0.037};
  for (int64_t i = 0; i < scale.size(); ++i) {
    const double e = f64(entropy)[i];
    double polynomial = 0;
    for (int k = 0; k < 5; ++k) polynomial += kCoefficients[k] * std::pow(e, k);
    const bool sharp = !(e > 0.5) || i / T % H < first_head;
    f64(scale)[i] = sharp ? 1 : std::max(1.0, polynomial);
  }
}

}  // namespace bamtrain
