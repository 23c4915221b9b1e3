#include "differences.h"

#include <cmath>
#include <set>

#include "catch.h"
#include "core/rng.h"

namespace bamtrain::testing {

namespace {

/// |difference - gradient| relative to the number and its gradient.
double relative_difference(double difference, double gradient, double number) {
  const double size = std::abs(gradient) + std::abs(number);
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

void check_derivatives(const Theta& theta,
                       const std::function<std::vector<double>(const Theta&)>& numbers,
                       const std::function<void(size_t, double* const*)>& adjoint) {
  constexpr double kStep = 1e-6;
  const std::vector<double> values = numbers(theta);
  std::vector<Theta> gradients;
  for (size_t n = 0; n < values.size(); ++n) {
    gradients.push_back(zeros_like(theta));
    adjoint(n, mutable_pointers(gradients.back()).data());
  }
  double worst = 0, of_wrong = 0;
  bool finite = true;
  for (size_t p = 0; p < theta.values.size(); ++p) {
    for (size_t e = 0; e < theta.values[p].size(); ++e) {
      Theta above = theta, below = theta;
      above.values[p][e] += kStep;
      below.values[p][e] -= kStep;
      const std::vector<double> high = numbers(above), low = numbers(below);
      for (size_t n = 0; n < values.size(); ++n) {
        const double difference = (high[n] - low[n]) / (2 * kStep), g = gradients[n].values[p][e];
        finite =
            finite && std::isfinite(g) && std::isfinite(values[n]) && std::isfinite(difference);
        worst = std::max(worst, relative_difference(difference, g, values[n]));
        of_wrong = std::max(of_wrong, relative_difference(difference, 1.01 * g, values[n]));
      }
    }
  }
  CHECK(finite);
  CHECK(worst < kDerivativeTolerance);
  if (!theta.values.empty()) CHECK(of_wrong > 1e-3);
}

void check_table_derivatives(const PriorInfo& prior, const Theta& theta, const TableShape& shape) {
  const TableFamily& family = *prior.as<TableFamily>();
  const auto n = static_cast<size_t>(shape.H * shape.T);
  check_derivatives(
      theta,
      [&](const Theta& at) {
        std::vector<double> table(n);
        family.table(at.pointers().data(), shape, table.data());
        return table;
      },
      [&](size_t entry, double* const* gradient) {
        std::vector<double> one(n, 0.0);
        one[entry] = 1;
        family.adjoint(theta.pointers().data(), shape, one.data(), gradient);
      });
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
