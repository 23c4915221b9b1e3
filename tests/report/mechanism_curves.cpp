#include "report/mechanism_curves.h"

#include <cmath>

#include "catch.h"
#include "core/error.h"
#include "mixes/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

using namespace bamtrain;

namespace {

constexpr int64_t kT = 64;

PriorChoice prior(const std::string& name) { return PriorChoice(*find_prior(name)); }

ModelConfig model_of(const PriorConfig& priors, const std::string& scale = "none") {
  ModelConfig c;
  c.vocab = 10;
  c.width = 8;
  c.layers = 2;
  c.heads = 2;
  c.kv_heads = 2;
  c.mlp.hidden = 8;
  c.attention.prior = priors;
  c.attention.scale = ScaleChoice(*find_scale(scale));
  return c;
}

std::string name_of(int layer, const std::string& rest) {
  return "model.layers." + std::to_string(layer) + ".self_attn." + rest;
}

/// theta_alpha, theta_beta and theta_mu of two layers and heads.
MechanismValues bam_values() {
  MechanismValues v;
  for (int l = 0; l < 2; ++l) {
    v[name_of(l, "prior.theta_alpha")] = {0.1 + l, -0.2 - l};
    v[name_of(l, "prior.theta_beta")] = {0.5 + l, 0.25 + l};
    v[name_of(l, "prior.theta_mu")] = {0, 0};
  }
  return v;
}

}  // namespace

TEST_CASE("curves of bam are its formula") {
  const auto curves = prior_curves(model_of(prior("bam")), kT, bam_values(), "m");
  REQUIRE(curves.size() == 2);
  for (int l = 0; l < 2; ++l) {
    const PriorCurves& c = curves[static_cast<size_t>(l)];
    CHECK(c.prior == "bam");
    CHECK(c.layers == std::vector<int64_t>{l});
    REQUIRE(c.heads.size() == 2);
    const double alpha[] = {0.1 + l, -0.2 - l}, beta[] = {0.5 + l, 0.25 + l};
    for (size_t h = 0; h < 2; ++h) {
      REQUIRE(c.heads[h].size() > 30);
      CHECK(c.heads[h].front().x == 1);
      CHECK(c.heads[h].back().x == kT - 1);
      for (size_t i = 0; i < c.heads[h].size(); ++i) {
        const Point& p = c.heads[h][i];
        if (i > 0) CHECK(p.x > c.heads[h][i - 1].x);
        CHECK(p.y == Approx(-std::exp(alpha[h]) * std::pow(p.x + 1e-5, beta[h])).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("a prior without parameters of single layers is shown once, with its layers") {
  const auto alibi = prior_curves(model_of(prior("alibi")), kT, {}, "m");
  REQUIRE(alibi.size() == 1);
  CHECK(alibi[0].layers == std::vector<int64_t>{0, 1});
  for (const Point& p : alibi[0].heads[0]) CHECK(p.y == -p.x / 16);  // 2^(-8/2)
  for (const Point& p : alibi[0].heads[1]) CHECK(p.y == -p.x / 256);

  PriorChoice harmonic = prior("nape");
  harmonic.options.set("slopes", std::string("harmonic"));
  const auto nape = prior_curves(model_of(harmonic), kT, {}, "m");
  REQUIRE(nape.size() == 1);
  for (const Point& p : nape[0].heads[0]) CHECK(p.y == -p.x);
  for (const Point& p : nape[0].heads[1]) CHECK(p.y == 0);

  std::vector<double> t5(64);
  for (size_t i = 0; i < 64; ++i) t5[i] = static_cast<double>(i);
  const auto shared = prior_curves(model_of(prior("t5")), kT, {{"model.prior.bias", t5}}, "m");
  REQUIRE(shared.size() == 1);
  CHECK(shared[0].layers == std::vector<int64_t>{0, 1});
  for (size_t i = 0; i < 15; ++i) {  // exact buckets
    CHECK(shared[0].heads[0][i].y == static_cast<double>(i + 1));
    CHECK(shared[0].heads[1][i].y == static_cast<double>(i + 1 + 32));
  }
}

TEST_CASE("curves beside a mix of heads are another's, and not of the layers without one") {
  PriorConfig priors({prior("alibi"), prior("alibi")});
  priors.mixes = {{}, MixChoice(*find_mix("dape"))};
  const auto curves = prior_curves(model_of(priors), kT, {}, "m");
  REQUIRE(curves.size() == 2);
  for (int l = 0; l < 2; ++l) {
    const PriorCurves& c = curves[static_cast<size_t>(l)];
    CHECK(c.prior == "alibi");
    CHECK(c.mix == (l == 0 ? "" : "dape"));
    CHECK(c.layers == std::vector<int64_t>{l});
    for (const Point& p : c.heads[0]) CHECK(p.y == -p.x / 16);
  }
  priors.mixes[0] = priors.mixes[1];
  const auto both = prior_curves(model_of(priors), kT, {}, "m");
  REQUIRE(both.size() == 1);
  CHECK(both[0].layers == std::vector<int64_t>{0, 1});
}

TEST_CASE("curves take memory for what is drawn, however long a sequence is") {
  constexpr int64_t kLongest = int64_t{1} << 40;  // a table for it would take terabytes
  const ModelConfig model = model_of(prior("alibi"));
  const auto curves = prior_curves(model, kLongest, {}, "m");
  REQUIRE(curves.size() == 1);
  int64_t points = 0;
  for (const std::vector<Point>& head : curves[0].heads) {
    points += static_cast<int64_t>(head.size());
    CHECK(head.back().x == static_cast<double>(kLongest - 1));
    CHECK(head.back().y == head.front().y * head.back().x);
  }
  CHECK(points > 100);
  CHECK(points <= most_curve_points(model));
}

TEST_CASE("curves of fire are its network, at the last position of training") {
  MechanismValues v;
  std::vector<double> w1, b1, w2;
  for (int k = 0; k < 32; ++k) {
    w1.push_back(std::sin(k + 1));
    b1.push_back(std::cos(3 * k));
  }
  for (int k = 0; k < 64; ++k) w2.push_back(std::sin(7 * k));
  const std::vector<double> b2 = {0.3, -0.4};
  const double c = -0.2, m = 0.5, L0 = kT;
  v[name_of(1, "prior.c")] = {c};
  v[name_of(1, "prior.m")] = {m};
  v[name_of(1, "prior.w1")] = w1;
  v[name_of(1, "prior.b1")] = b1;
  v[name_of(1, "prior.w2")] = w2;
  v[name_of(1, "prior.b2")] = b2;
  const ModelConfig model = model_of(PriorConfig({prior("nope"), prior("fire")}));
  const auto curves = prior_curves(model, kT, v, "m");
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].layers == std::vector<int64_t>{1});
  const auto psi = [&](double x) { return std::log(std::abs(c) * x + 1); };
  for (size_t h = 0; h < 2; ++h) {
    for (const Point& p : curves[0].heads[h]) {
      const double u = psi(p.x) / (psi(std::max(kT - 1.0, std::abs(m) * L0)) + 1e-6);
      double f = b2[h];
      for (size_t k = 0; k < 32; ++k) f += w2[h * 32 + k] * std::max(0.0, w1[k] * u + b1[k]);
      CHECK(p.y == Approx(f).margin(1e-10));
    }
  }
}

TEST_CASE("priors that are no function of head and distance have no curves") {
  for (const char* name : {"nope", "rope", "cable", "sinusoidal", "transformer_xl"}) {
    CHECK(prior_curves(model_of(prior(name)), kT, {}, "m").empty());
  }
}

TEST_CASE("layers whose parameters were not written are left out, others' sizes refused") {
  MechanismValues v = bam_values();
  v.erase(name_of(0, "prior.theta_mu"));
  const ModelConfig model = model_of(prior("bam"), "ssmax");
  const auto curves = prior_curves(model, kT, v, "m");
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].layers == std::vector<int64_t>{1});
  CHECK(bam_points(model, kT, v, "m").size() == 2);
  CHECK(bam_points(model, kT, {}, "m").empty());
  CHECK(scale_parameters(model, kT, v, "m").empty());
  v[name_of(1, "prior.theta_beta")] = {1, 2, 3};
  REQUIRE_THROWS_AS(prior_curves(model, kT, v, "m"), Error);
  REQUIRE_THROWS_AS(bam_points(model, kT, v, "m"), Error);
  v = {{name_of(0, "scale.s"), {1}}};
  REQUIRE_THROWS_AS(scale_parameters(model, kT, v, "m"), Error);
}

TEST_CASE("points are the parameters of every layer and head") {
  MechanismValues v = bam_values();
  v[name_of(0, "scale.s")] = {0.5, 0.75};
  v[name_of(1, "scale.s")] = {1.5, 1.75};
  const ModelConfig model = model_of(prior("bam"), "ssmax");
  const auto points = bam_points(model, kT, v, "m");
  REQUIRE(points.size() == 4);
  CHECK(points[3].layer == 1);
  CHECK(points[3].head == 1);
  CHECK(points[3].at.x == 1.25);  // theta_beta
  CHECK(points[3].at.y == -1.2);  // theta_alpha
  const auto scales = scale_parameters(model, kT, v, "m");
  REQUIRE(scales.size() == 1);
  CHECK(scales[0].name == "s");
  REQUIRE(scales[0].points.size() == 4);
  CHECK(scales[0].points[2].at.x == 1);
  CHECK(scales[0].points[2].at.y == 1.5);
}
