#include "ops/mechanisms/scale.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/reference/autodiff.h"

namespace bamtrain {

using namespace reference;

namespace {

Var scale_of(const ScaleUse& use, const Vars& theta, int64_t n) {
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
    const Vars own = parameters_of_head(theta, h, H);
    for (int64_t n = 0; n < B * T; ++n) {
      const int64_t b = n / T, i = n % T, keys = visible_key_count(first_key, last_key, b, i);
      f64(scale)[(b * H + h) * T + i] = h < use.first_head ? 1 : scale_of(use, own, keys).x;
    }
  }
}

void ScaleBackward::in_reference() const {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  Tape tape;
  for (int64_t h = use.first_head; h < H; ++h) {
    const Vars own = parameters_of_head(theta, h, H, &tape, dtheta);
    for (int64_t n = 0; n < B * T; ++n) {
      const int64_t b = n / T, i = n % T, keys = visible_key_count(first_key, last_key, b, i);
      tape.seed(scale_of(use, own, keys), f64(dscale)[(b * H + h) * T + i]);
    }
  }
  tape.backward();
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
