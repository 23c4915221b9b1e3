#include "differences.h"

#include <cmath>
#include <limits>
#include <set>

#include "core/rng.h"

namespace bamtrain::testing {

namespace {

constexpr double kStep = 1e-6;

/// |difference - gradient| relative to the value and its gradient; infinite if not finite.
double entry_error(double difference, double gradient, double value) {
  if (!std::isfinite(gradient) || !std::isfinite(value)) {
    return std::numeric_limits<double>::infinity();
  }
  const double size = std::abs(gradient) + std::abs(value);
  return std::abs(difference - gradient) / (size > 0 ? size : 1);
}

Theta zeros_like(const Theta& theta) {
  Theta z;
  for (const auto& v : theta.values) z.values.emplace_back(v.size(), 0.0);
  return z;
}

std::vector<double*> mutable_pointers(Theta& theta) {
  std::vector<double*> p;
  for (auto& v : theta.values) p.push_back(v.data());
  return p;
}

}  // namespace

std::vector<const double*> Theta::pointers() const {
  std::vector<const double*> p;
  for (const auto& v : values) p.push_back(v.data());
  return p;
}

double table_difference_error(const PriorInfo& prior, const Theta& theta, const TableShape& shape) {
  const TableFamily& family = *prior.as<TableFamily>();
  const auto n = static_cast<size_t>(shape.H * shape.T);
  const auto table_at = [&](const Theta& at) {
    std::vector<double> table(n);
    family.table(at.pointers().data(), shape, table.data());
    return table;
  };
  const std::vector<double> table = table_at(theta);
  // gradients[entry][parameter][element]
  std::vector<Theta> gradients;
  for (size_t entry = 0; entry < n; ++entry) {
    std::vector<double> one(n, 0.0);
    one[entry] = 1;
    gradients.push_back(zeros_like(theta));
    family.adjoint(theta.pointers().data(), shape, one.data(),
                   mutable_pointers(gradients.back()).data());
  }
  double worst = 0;
  for (size_t p = 0; p < theta.values.size(); ++p) {
    for (size_t e = 0; e < theta.values[p].size(); ++e) {
      Theta above = theta, below = theta;
      above.values[p][e] += kStep;
      below.values[p][e] -= kStep;
      const std::vector<double> high = table_at(above), low = table_at(below);
      for (size_t entry = 0; entry < n; ++entry) {
        const double difference = (high[entry] - low[entry]) / (2 * kStep);
        worst =
            std::max(worst, entry_error(difference, gradients[entry].values[p][e], table[entry]));
      }
    }
  }
  return worst;
}

double scale_difference_error(const ScaleInfo& scale, const FormulaConstants& constants,
                              const Theta& theta, int64_t H, int64_t T) {
  const LengthKind& kind = *scale.as<LengthKind>();
  double worst = 0;
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t n = 1; n <= T; ++n) {
      const auto value = [&](const Theta& at) {
        return kind.value(constants, at.pointers().data(), h, n);
      };
      Theta gradient = zeros_like(theta);
      kind.accumulate(constants, theta.pointers().data(), h, n, 1,
                      mutable_pointers(gradient).data());
      for (size_t p = 0; p < theta.values.size(); ++p) {
        for (size_t e = 0; e < theta.values[p].size(); ++e) {
          Theta above = theta, below = theta;
          above.values[p][e] += kStep;
          below.values[p][e] -= kStep;
          const double difference = (value(above) - value(below)) / (2 * kStep);
          worst = std::max(worst, entry_error(difference, gradient.values[p][e], value(theta)));
        }
      }
    }
  }
  return worst;
}

FormulaConstants constants_of(const ScaleInfo& scale, const Options& options, int64_t heads) {
  return scale.constants_of(options, shape_of(heads));
}

std::vector<Options> every_form(const PriorInfo& prior) {
  std::vector<Options> all = {default_options(prior.options)};
  const auto form = [&prior](const Options& o) {
    const TableShape shape = table_shape(prior, o, shape_of(2), 1);
    return std::pair(shape.form, shape.gain);
  };
  std::set<std::pair<int, double>> found = {form(all.front())};
  for (const OptionSpec& option : prior.options) {
    if (!std::holds_alternative<std::string>(option.default_value)) continue;
    for (const std::string& choice : option.choices) {
      Options o = all.front();
      o.set(option.name, choice);
      if (found.insert(form(o)).second) all.push_back(o);
    }
  }
  return all;
}

ModelShape shape_of(int64_t heads) {
  ModelShape s;
  s.layers = 2;
  s.heads = heads;
  s.head_dim = 8;
  s.width = heads * s.head_dim;
  s.sequence_length = 40;
  return s;
}

Theta random_theta(const MechanismParameters& parameters) {
  Theta theta;
  for (const MechanismParameter& p : parameters) {
    const Rng rng(41, p.name);
    int64_t n = 1;
    for (int64_t d : p.shape) n *= d;
    std::vector<double>& v = theta.values.emplace_back();
    for (int64_t i = 0; i < n; ++i) {
      // At least 0.05 from 0, where |.| of a location may have a kink.
      const double x = rng.uniform(static_cast<uint64_t>(i)) - 0.5;
      v.push_back(std::isfinite(p.minimum) ? p.minimum + std::abs(x)
                                           : (x < 0 ? x - 0.05 : x + 0.05));
    }
  }
  return theta;
}

}  // namespace bamtrain::testing
