// Derivatives of all registered priors and scales, compared with finite differences. The same check
// must fail if the derivative is off by 1 %.

#include <cmath>

#include "catch.h"
#include "differences.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kHeads = 6, kTokens = 40;

// Of other priors: those of tables, rotations and embeddings, with every bias of attention, in
// tests/ops; and whole models.
TEST_CASE("every table's derivative agrees with finite differences, and 1 % more does not") {
  for (const PriorInfo& prior : all_priors()) {
    INFO(prior.name);
    const auto parameters = prior.parameters(default_options(prior.options), shape_of(kHeads));
    if (prior.is<TableFamily>()) {
      for (const Options& options : every_form(prior)) {
        TableShape shape = table_shape(prior, options, shape_of(kHeads), kTokens);
        INFO("form " << shape.form << " gain " << shape.gain);
        const Theta theta = random_theta(prior.parameters(options, shape_of(kHeads)));
        check_table_derivatives(prior, theta, shape);
        if (prior.causal_only) continue;
        shape.T = 2 * kTokens - 1;
        shape.first = -(kTokens - 1);
        check_table_derivatives(prior, theta, shape);
      }
    } else if (const auto* const of_embedding = prior.as<EmbeddingFamily>()) {
      CHECK(parameters.size() == (of_embedding->value ? 0 : 1));
    } else if (prior.is<RotaryFamily>() || prior.is<std::monostate>()) {
      CHECK(parameters.empty());
    }
  }
}

TEST_CASE("every scale's derivative agrees with finite differences, and 1 % more does not") {
  for (const ScaleInfo& scale : all_scales()) {
    INFO(scale.name);
    Options options = default_options(scale.options);
    const auto parameters = scale.parameters(options, shape_of(kHeads));
    if (scale.is<AdaptiveKind>()) continue;  // in tests/ops/adaptive_scale.cpp
    if (!scale.is<LengthKind>()) {
      CHECK(parameters.empty());
      CHECK(scale.evaluation_only == scale.is<EntropyKind>());
      continue;
    }
    const LengthKind& kind = *scale.as<LengthKind>();
    const Theta theta = random_theta(parameters);
    for (double offset : {0.0, 1.0}) {
      if (options.has("offset")) options.set("offset", offset);
      const FormulaConstants c = constants_of(scale, options, kHeads);
      // Of every head, and every number of visible keys.
      const auto head = [](size_t n) { return static_cast<int64_t>(n) / kTokens; };
      const auto keys = [](size_t n) { return static_cast<int64_t>(n) % kTokens + 1; };
      check_derivatives(
          theta,
          [&](const Theta& at) {
            std::vector<double> t(kHeads * kTokens);
            for (size_t n = 0; n < t.size(); ++n) {
              t[n] = kind.value(c, at.pointers().data(), head(n), keys(n));
            }
            return t;
          },
          [&](size_t n, double* const* gradient) {
            kind.accumulate(c, theta.pointers().data(), head(n), keys(n), 1, gradient);
          });
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
      check_table_derivatives(bam, theta, {H, kTokens});
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
