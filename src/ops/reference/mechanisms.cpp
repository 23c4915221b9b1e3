#include "ops/reference/mechanisms.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/reference/dual.h"
#include "priors/fire.h"
#include "priors/kerple.h"
#include "priors/nape.h"

namespace bamtrain {

namespace {

double* f64(const Tensor& t) { return t.ptr<double>(); }
const int32_t* i32(const Tensor& t) { return t.ptr<int32_t>(); }

using dual::Dual;
using Numbers = std::vector<Dual>;

/// What the parameters say of head h of H: (H) or (H, values) each, one after another.
Numbers of_head(std::span<const Tensor> theta, int64_t h, int64_t H) {
  Numbers own;
  for (const Tensor& t : theta) {
    const int64_t values = t.size() / H;
    for (int64_t k = 0; k < values; ++k) own.emplace_back(f64(t)[h * values + k]);
  }
  return own;
}

/// dtheta += the derivative of `f`, a number of a head's parameters, with respect to each of them.
template <class F>
void add_gradient(std::span<const Tensor> dtheta, std::span<const Tensor> theta, int64_t h,
                  int64_t H, F&& f) {
  Numbers own = of_head(theta, h, H);
  size_t n = 0;
  for (size_t p = 0; p < theta.size(); ++p) {
    const int64_t values = theta[p].size() / H;
    for (int64_t k = 0; k < values; ++k, ++n) {
      if (dtheta[p].size() == 0) continue;
      own[n].d = 1;
      f64(dtheta[p])[h * values + k] += f(own).d;
      own[n].d = 0;
    }
  }
}

[[noreturn]] void unknown(const std::string& name) {
  throw Error(ExitCode::internal, "the reference backend", "a formula for " + name, "none",
              "add it to src/ops/reference/mechanisms.cpp");
}

// --- priors of distance: b at (h, d)

double power_of_two(double exponent) { return std::exp2(exponent); }

/// 2^(-8/n), 2^(-16/n), ... for n = H heads where that is a power of two; else those of the next
/// lower one, and after them the first, third, ... of the next higher one (Press et al. 2022).
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

/// d^16 below 128^16 = 2^112 takes more than 64 bits.
__extension__ using Wide = unsigned __int128;

/// Of 32 buckets one per distance below 16; of the others the k-th begins at 16 * 8^(k / 16), where
/// d^16 reaches 2^(64 + 3 k); all from 128 on share the last.
size_t t5_bucket(int64_t d) {
  if (d < 16) return static_cast<size_t>(d);
  if (d >= 128) return 31;
  Wide power = 1;
  for (int n = 0; n < 16; ++n) power *= static_cast<Wide>(d);
  size_t k = 0;
  while (power >= static_cast<Wide>(1) << (64 + 3 * (k + 1))) ++k;
  return 16 + k;
}

Dual bam(const Numbers& theta, double d) {
  const Dual location = exp(theta[2]) - exp(-theta[2]);
  const Dual b = -exp(theta[0]) * pow(abs(-Dual(d) - location) + 1e-5, theta[1]);
  return b.x > -1e4 ? b : Dual(-1e4);
}

Dual bias_of(const PriorUse& prior, const Numbers& theta, int64_t h, int64_t H, int64_t distance) {
  const std::string& name = prior.info.name;
  const auto d = static_cast<double>(distance);
  if (name == "alibi") return -press_slope(h, H) * d;
  if (name == "nape") return -nape_slope(prior.form, h, H) * d;
  if (name == "bam") return bam(theta, d);
  if (name == "t5") return prior.gain * theta[t5_bucket(distance)];
  if (name == "kerple") {
    return prior.form == Kerple<double>::kPower ? -theta[0] * pow(d, theta[1])
                                                : -theta[0] * log(1 + theta[1] * d);
  }
  unknown("prior " + name);
}

// --- scales: t of a row that sees n keys

Dual scale_of(const ScaleUse& use, const Numbers& theta, int64_t n) {
  const std::string& name = use.info.name;
  const double* constant = use.constants.of;
  const auto keys = static_cast<double>(n);
  if (name == "constant") return constant[0];
  if (name == "ssmax") return constant[1] + theta[0] * std::log(keys + constant[0]);
  if (name == "sentmax") return constant[0] + theta[0] * pow(std::log(keys + 1), theta[1]);
  if (name == "by_length") return theta[static_cast<size_t>(n - 1)];
  unknown("scale " + name);
}

Dual adaptive_scale_of(const ScaleUse& use, Dual u, Dual w, int64_t n) {
  const double delta = use.constants.of[0], g = use.constants.of[1];
  return delta + softplus(u) * pow(std::log(static_cast<double>(n) + 1), g * tanh(w));
}

/// n_i of row i of sequence b.
int64_t visible_keys(const Tensor& first_key, int64_t b, int64_t i) {
  return i - i32(first_key)[b * first_key.shape[1] + i] + 1;
}

double& gate(const Tensor& gates, int64_t b, int64_t t, int64_t column) {
  return f64(gates)[b * gates.stride[0] + t * gates.stride[1] + column * gates.stride[2]];
}

}  // namespace

void ReferenceMechanisms::table_forward(Tensor table, const PriorUse& prior,
                                        std::span<const Tensor> theta) {
  const int64_t H = table.shape[0], T = table.shape[1];
  for (int64_t h = 0; h < H; ++h) {
    const Numbers own = of_head(theta, h, H);
    for (int64_t d = 0; d < T; ++d) f64(table)[h * T + d] = bias_of(prior, own, h, H, d).x;
  }
}

void ReferenceMechanisms::table_backward(std::span<const Tensor> dtheta, Tensor dtable,
                                         const PriorUse& prior, std::span<const Tensor> theta) {
  const int64_t H = dtable.shape[0], T = dtable.shape[1];
  for (int64_t h = 0; h < H; ++h) {
    add_gradient(dtheta, theta, h, H, [&](const Numbers& own) {
      Dual sum;
      for (int64_t d = 0; d < T; ++d) {
        sum = sum + f64(dtable)[h * T + d] * bias_of(prior, own, h, H, d);
      }
      return sum;
    });
  }
}

void ReferenceMechanisms::scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                                        std::span<const Tensor> theta) {
  const int64_t B = scale.shape[0], H = scale.shape[1], T = scale.shape[2];
  for (int64_t h = 0; h < H; ++h) {
    const Numbers own = of_head(theta, h, H);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        f64(scale)[(b * H + h) * T + i] =
            h < use.first_head ? 1 : scale_of(use, own, visible_keys(first_key, b, i)).x;
      }
    }
  }
}

void ReferenceMechanisms::scale_backward(std::span<const Tensor> dtheta, Tensor dscale,
                                         Tensor first_key, const ScaleUse& use,
                                         std::span<const Tensor> theta) {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  for (int64_t h = use.first_head; h < H; ++h) {
    add_gradient(dtheta, theta, h, H, [&](const Numbers& own) {
      Dual sum;
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t i = 0; i < T; ++i) {
          sum = sum + f64(dscale)[(b * H + h) * T + i] *
                          scale_of(use, own, visible_keys(first_key, b, i));
        }
      }
      return sum;
    });
  }
}

void ReferenceMechanisms::adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key,
                                                 const ScaleUse& use,
                                                 std::span<const Tensor> bias) {
  const int64_t B = scale.shape[0], H = scale.shape[1], T = scale.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) {
        const double u = gate(gates, b, t, h) + (bias.empty() ? 0 : f64(bias[0])[h]);
        const double w = gate(gates, b, t, H + h) + (bias.empty() ? 0 : f64(bias[1])[h]);
        f64(scale)[(b * H + h) * T + t] =
            h < use.first_head ? 1 : adaptive_scale_of(use, u, w, visible_keys(first_key, b, t)).x;
      }
    }
  }
}

void ReferenceMechanisms::adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias,
                                                  Tensor dscale, Tensor gates, Tensor first_key,
                                                  const ScaleUse& use,
                                                  std::span<const Tensor> bias) {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) {
        const int64_t n = visible_keys(first_key, b, t);
        const double u = gate(gates, b, t, h) + (bias.empty() ? 0 : f64(bias[0])[h]);
        const double w = gate(gates, b, t, H + h) + (bias.empty() ? 0 : f64(bias[1])[h]);
        const double dt = h < use.first_head ? 0 : f64(dscale)[(b * H + h) * T + t];
        const double d[2] = {dt * adaptive_scale_of(use, {u, 1}, w, n).d,
                             dt * adaptive_scale_of(use, u, {w, 1}, n).d};
        for (int64_t k = 0; k < 2; ++k) {
          gate(dgates, b, t, k * H + h) = d[k];
          if (!dbias.empty()) f64(dbias[static_cast<size_t>(k)])[h] += d[k];
        }
      }
    }
  }
}

/// Velickovic et al. 2025: a polynomial of the entropy above 0.5 nats where it exceeds 1.
void ReferenceMechanisms::entropy_scale(Tensor scale, Tensor entropy, int64_t first_head) {
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

// --- running sums of gates: each from its definition

void ReferenceMechanisms::sums_forward(Tensor sums, Tensor gates, Tensor bias) {
  const int64_t B = sums.shape[0], H = sums.shape[1], T = sums.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      std::vector<double> u;
      for (int64_t t = 0; t < T; ++t) {
        u.push_back(softplus(Dual(gate(gates, b, t, h) + f64(bias)[h])).x);
        double S = 0;
        for (double x : u) S += x;
        f64(sums)[b * sums.stride[0] + h * sums.stride[1] + t] = S;
      }
    }
  }
}

void ReferenceMechanisms::sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates,
                                        Tensor bias) {
  const int64_t B = dsums.shape[0], H = dsums.shape[1], T = dsums.shape[2];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t j = 0; j < T; ++j) {
        double du = 0;
        for (int64_t t = j; t < T; ++t) du += f64(dsums)[(b * H + h) * T + t];
        const double d = du * softplus(Dual(gate(gates, b, j, h) + f64(bias)[h], 1)).d;
        gate(dgates, b, j, h) = d;
        f64(dbias)[h] += d;
      }
    }
  }
}

// --- fire: f(psi(d) / N_i), f: 1 -> kFireHidden -> H with ReLU between

namespace {

/// The parameters of a layer, of which one may carry the derivative.
struct FireNumbers {
  Dual c, m;
  Numbers w1, b1, w2, b2;  // w2: (H, kFireHidden)

  explicit FireNumbers(std::span<const Tensor> theta) {
    c = f64(theta[0])[0];
    m = f64(theta[1])[0];
    Numbers* const of[] = {&w1, &b1, &w2, &b2};
    for (size_t p = 0; p < 4; ++p) {
      const Tensor& t = theta[2 + p];
      of[p]->assign(f64(t), f64(t) + t.size());
    }
  }
  /// In the order of theta.
  Dual& number(size_t p, int64_t i) {
    Numbers* const of[] = {&w1, &b1, &w2, &b2};
    return p == 0 ? c : p == 1 ? m : (*of[p - 2])[static_cast<size_t>(i)];
  }

  Dual psi(double x) const { return log(abs(c) * x + 1); }
  Dual normaliser(double i, double L0) const {
    const Dual threshold = abs(m) * L0;
    const Dual x = i < threshold.x ? threshold : Dual(i);
    return log(abs(c) * x + 1) + 1e-6;
  }
  /// Where hidden units turn on or off, u > 0, ascending.
  std::vector<double> kinks() const {
    std::vector<double> found;
    for (size_t k = 0; k < w1.size(); ++k) {
      const double kink = -b1[k].x / w1[k].x;
      if (kink > 0 && std::isfinite(kink)) found.push_back(kink);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  /// A u between the kinks s - 1 and s.
  static double inside(const std::vector<double>& kinks, size_t s) {
    const double low = s == 0 ? 0 : kinks[s - 1];
    return s == kinks.size() ? low + 1 : (low + kinks[s]) / 2;
  }
  /// f of head h where the same units are on as at `u`: slope and offset.
  std::pair<Dual, Dual> line(int64_t h, double u) const {
    Dual slope = 0, offset = b2[static_cast<size_t>(h)];
    for (size_t k = 0; k < w1.size(); ++k) {
      if (w1[k].x * u + b1[k].x <= 0) continue;
      const Dual out = w2[static_cast<size_t>(h) * w1.size() + k];
      slope = slope + out * w1[k];
      offset = offset + out * b1[k];
    }
    return {slope, offset};
  }
};

}  // namespace

void ReferenceMechanisms::alpha_forward(Tensor alphas, Tensor theta) {
  for (int64_t h = 0; h < alphas.size(); ++h) f64(alphas)[h] = 1 + softplus(Dual(f64(theta)[h])).x;
}

void ReferenceMechanisms::alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta) {
  const int64_t H = dalpha.shape[1], T = dalpha.shape[2];
  for (int64_t n = 0; n < dalpha.size(); ++n) {
    const int64_t h = n / T % H;
    f64(dtheta)[h] += f64(dalpha)[n] * softplus(Dual(f64(theta)[h], 1)).d;
  }
}

void ReferenceMechanisms::fire_forward(const FireTables& tables, std::span<const Tensor> theta,
                                       double L0) {
  const int64_t T = tables.psi.shape[0], H = tables.slope.shape[0];
  FireNumbers f(theta);
  const std::vector<double> kinks = f.kinks();
  for (int64_t h = 0; h < H; ++h) {
    for (size_t s = 0; s < kFireSegments; ++s) {
      const int64_t n = h * kFireSegments + static_cast<int64_t>(s);
      const bool there = s <= kinks.size();
      const auto [slope, offset] = there ? f.line(h, FireNumbers::inside(kinks, s))
                                         : std::pair<Dual, Dual>(0, f.b2[static_cast<size_t>(h)]);
      f64(tables.slope)[n] = slope.x;
      f64(tables.offset)[n] = offset.x;
    }
  }
  f.c.d = 1;
  for (int64_t d = 0; d < T; ++d) {
    f64(tables.psi)[d] = f.psi(static_cast<double>(d)).x;
    f64(tables.psi_dc)[d] = f.psi(static_cast<double>(d)).d;
  }
  for (int64_t i = 0; i < T; ++i) {
    const double N = f.normaliser(static_cast<double>(i), L0).x;
    f64(tables.inverse)[i] = 1 / N;
    int64_t d = 0;
    for (size_t k = 0; k < kFireHidden; ++k) {
      while (d < T && (k >= kinks.size() || f64(tables.psi)[d] < kinks[k] * N)) ++d;
      tables.ends.ptr<int32_t>()[i * kFireHidden + static_cast<int64_t>(k)] =
          static_cast<int32_t>(d);
    }
  }
}

void ReferenceMechanisms::fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g,
                                        Tensor positions, std::span<const Tensor> theta,
                                        double L0) {
  const int64_t B = g.dfire_u.shape[0], H = g.dfire_u.shape[1], T = g.dfire_u.shape[2];
  FireNumbers f(theta);
  const std::vector<double> kinks = f.kinks();
  /// Of the bias with the normalisers as they are: sums of db times slope u + offset.
  const auto of_network = [&] {
    Dual sum;
    for (int64_t h = 0; h < H; ++h) {
      for (size_t s = 0; s <= kinks.size(); ++s) {
        const auto [slope, offset] = f.line(h, FireNumbers::inside(kinks, s));
        const double* db = f64(g.dfire) + 2 * (h * kFireSegments + static_cast<int64_t>(s));
        sum = sum + db[0] * offset + db[1] * slope;
      }
    }
    return sum;
  };
  for (size_t p = 2; p < theta.size(); ++p) {
    for (int64_t i = 0; i < dtheta[p].size(); ++i) {
      f.number(p, i).d = 1;
      f64(dtheta[p])[i] += of_network().d;
      f.number(p, i).d = 0;
    }
  }
  // u = psi / N: du = dpsi / N - u dN / N.
  for (size_t p = 0; p < 2; ++p) {
    if (dtheta[p].size() == 0) continue;
    f.number(p, 0).d = 1;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        const Dual N = f.normaliser(i32(positions)[b * T + i], L0);
        for (int64_t h = 0; h < H; ++h) {
          const int64_t n = (b * H + h) * T + i;
          const double of_psi = p == 0 ? f64(g.dfire_psi)[n] : 0;
          f64(dtheta[p])[0] += (of_psi - f64(g.dfire_u)[n] * N.d) / N.x;
        }
      }
    }
    f.number(p, 0).d = 0;
  }
}

}  // namespace bamtrain
