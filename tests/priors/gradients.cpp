// Derivatives of all registered priors and scales, compared with finite differences. The same check
// must fail if the derivative is off by 1 %.

#include <cmath>

#include "catch.h"
#include "differences.h"
#include "ops/attention_case.h"
#include "ops/cases.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kHeads = 6, kTokens = 40;
constexpr double kOff = 1.01;

decltype(TableFamily::adjoint) right_adjoint = nullptr;
decltype(LengthKind::accumulate) right_accumulate = nullptr;

/// The prior with `accumulate` scaled: it is linear in dz.
PriorInfo with_wrong_accumulate(PriorInfo prior) {
  auto& family = std::get<TableFamily>(prior.family);
  right_adjoint = family.adjoint;
  family.adjoint = [](const double* const* theta, const TableShape& s, const double* dtable,
                      double* const* dtheta) {
    std::vector<double> scaled(dtable, dtable + s.H * s.T);
    for (double& d : scaled) d *= kOff;
    right_adjoint(theta, s, scaled.data(), dtheta);
  };
  return prior;
}

ScaleInfo with_wrong_accumulate(ScaleInfo scale) {
  auto& kind = std::get<LengthKind>(scale.kind);
  right_accumulate = kind.accumulate;
  kind.accumulate = [](const FormulaConstants& c, const double* const* theta, int64_t h, int64_t n,
                       double dt, double* const* dtheta) {
    right_accumulate(c, theta, h, n, kOff * dt, dtheta);
  };
  return scale;
}

Operation with_wrong_adjoint(Operation op) {
  op.adjoint = [right = op.adjoint](Machine& m, const Arrays& in, const Arrays& saved,
                                    const Arrays& cotangents, double existing) {
    Arrays scaled = cotangents;
    for (auto& [name, v] : scaled) {
      for (double& x : v.x) x *= kOff;
    }
    return right(m, in, saved, scaled, existing);
  };
  return op;
}

void check_adjoint(const Operation& op) {
  CHECK(difference_error(op) < kDifferenceTolerance);
  CHECK(difference_error(with_wrong_adjoint(op)) > 1e-3);
}

TEST_CASE("every prior's derivative agrees with finite differences, and 1 % more does not") {
  for (const PriorInfo& prior : all_priors()) {
    INFO(prior.name);
    const auto parameters = prior.parameters(default_options(prior.options), shape_of(kHeads));
    if (prior.is<TableFamily>()) {
      for (const Options& options : every_form(prior)) {
        const TableShape shape = table_shape(prior, options, shape_of(kHeads), kTokens);
        INFO("form " << shape.form << " gain " << shape.gain);
        const Theta theta = random_theta(prior.parameters(options, shape_of(kHeads)));
        CHECK(table_difference_error(prior, theta, shape) < kTableTolerance);
        if (!prior.causal_only) {
          TableShape both = shape;
          both.T = 2 * kTokens - 1;
          both.first = -(kTokens - 1);
          CHECK(table_difference_error(prior, theta, both) < kTableTolerance);
        }
        if (parameters.empty()) continue;
        CHECK(table_difference_error(with_wrong_accumulate(prior), theta, shape) > 1e-3);
      }
    } else if (prior.is<RotaryFamily>()) {
      CHECK(parameters.empty());
      check_adjoint(rotate({2, 7, 2, 6}));
    } else if (const auto* const of_embedding = prior.as<EmbeddingFamily>()) {
      CHECK(parameters.size() == (of_embedding->value ? 0 : 1));
      check_adjoint(embedding({13, 4, 6, 5, true}));
    } else if (prior.is<std::monostate>()) {
      CHECK(parameters.empty());
    }  // others are tested by their bias below, and in whole models
  }
}

TEST_CASE("every bias's derivative agrees with finite differences, and 1 % more does not") {
  for (const TableForm form : kTableForms) {
    if (form == TableForm::fire) continue;  // in tests/priors/fire.cpp
    AttentionCase c;
    c.B = 2;
    c.T = 17;
    c.H = 4;
    c.K = 2;
    c.D = 6;
    c.documents = true;
    c.table = form;
    INFO(describe(c));
    check_adjoint(attention(c));
  }
  check_adjoint(running_sums({2, 17, 4}));
}

TEST_CASE("every scale's derivative agrees with finite differences, and 1 % more does not") {
  for (const ScaleInfo& scale : all_scales()) {
    INFO(scale.name);
    Options options = default_options(scale.options);
    const auto parameters = scale.parameters(options, shape_of(kHeads));
    if (scale.is<AdaptiveKind>()) {
      for (const Operation& op :
           {adaptive_scale({2, 17, 4}), adaptive_scale({2, 17, 4, true, 1})}) {
        constexpr int64_t kAll = 1000;
        CHECK(difference_error(op, kAll) < kDifferenceTolerance);
        CHECK(difference_error(with_wrong_adjoint(op), kAll) > 1e-3);
      }
      continue;
    }
    if (!scale.is<LengthKind>()) {
      CHECK(parameters.empty());
      CHECK(scale.evaluation_only == scale.is<EntropyKind>());
      continue;
    }
    const Theta theta = random_theta(parameters);
    for (double offset : {0.0, 1.0}) {
      if (options.has("offset")) options.set("offset", offset);
      const FormulaConstants c = constants_of(scale, options, kHeads);
      CHECK(scale_difference_error(scale, c, theta, kHeads, kTokens) < kTableTolerance);
      if (parameters.empty()) continue;
      CHECK(scale_difference_error(with_wrong_accumulate(scale), c, theta, kHeads, kTokens) > 1e-3);
    }
  }
}

TEST_CASE("bam's derivatives agree with finite differences for all shapes of its curve") {
  const PriorInfo& bam = *find_prior("bam");
  const std::vector<double> beta = {-8, -2, -0.6, 0, 1, 2.5, 4};
  const auto H = static_cast<int64_t>(beta.size());
  for (double alpha : {-3.5, 0.0, 1.5}) {
    // Locations 2 sinh(mu) are away from integers, where |.| has a kink. At mu = 0, the kink at
    // distance 0 is symmetric: its central difference is 0, as is sign(0).
    for (double mu : {0.0, 0.3, -0.25, 0.55, -0.4}) {
      INFO("theta_alpha " << alpha << ", theta_mu " << mu);
      const Theta theta{
          {std::vector<double>(beta.size(), alpha), beta, std::vector<double>(beta.size(), mu)}};
      CHECK(table_difference_error(bam, theta, {H, kTokens}) < kTableTolerance);
    }
  }
}

TEST_CASE("bam's bounded entries are -1e4, have no gradient and leave the others theirs") {
  const TableFamily& family = *find_prior("bam")->as<TableFamily>();
  // (1e-5)^-8 = 1e40 at the self key, 39^4 = 2.3e6 at the last key, and 0 in the third head.
  const Theta theta{{{0, 0, 0}, {-8, 4, 0.5}, {0, 0, 0}}};
  std::vector<double> table(3 * kTokens);
  family.table(theta.pointers().data(), {3, kTokens}, table.data());
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t d = 0; d < kTokens; ++d) {
      const bool bounded = (h == 0 && d == 0) || (h == 1 && d >= 10);
      const double b = table[static_cast<size_t>(h * kTokens + d)];
      INFO("head " << h << ", distance " << d);
      if (bounded) {
        CHECK(b == -1e4);
      } else {
        CHECK(b > -1e4);
      }
      std::vector<double> one(3 * kTokens, 0.0), alpha(3, 0.0), beta = alpha, mu = alpha;
      one[static_cast<size_t>(h * kTokens + d)] = 1;
      double* gradients[] = {alpha.data(), beta.data(), mu.data()};
      family.adjoint(theta.pointers().data(), {3, kTokens}, one.data(), gradients);
      for (int64_t g = 0; g < 3; ++g) {
        const auto i = static_cast<size_t>(g);
        CHECK(std::isfinite(alpha[i] + beta[i] + mu[i]));
        if (bounded || g != h) CHECK((alpha[i] == 0 && beta[i] == 0 && mu[i] == 0));
      }
      if (!bounded) CHECK(alpha[static_cast<size_t>(h)] == b);  // db / dta = b
    }
  }
}

TEST_CASE("far beyond any trained value bam's table and gradients stay finite") {
  const TableFamily& family = *find_prior("bam")->as<TableFamily>();
  for (double alpha : {-700.0, 0.0, 700.0}) {
    for (double beta : {-300.0, 0.0, 300.0}) {
      for (double mu : {-300.0, 0.0, 300.0}) {
        INFO("theta " << alpha << ", " << beta << ", " << mu);
        const Theta theta{{{alpha}, {beta}, {mu}}};
        std::vector<double> table(kTokens), dtable(kTokens, 1.0), gradient(3, 0.0);
        family.table(theta.pointers().data(), {1, kTokens}, table.data());
        double* gradients[] = {&gradient[0], &gradient[1], &gradient[2]};
        family.adjoint(theta.pointers().data(), {1, kTokens}, dtable.data(), gradients);
        for (double b : table) CHECK((b >= -1e4 && b <= 0));
        for (double g : gradient) CHECK(std::isfinite(g));
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
