// Formulas and initial values, compared with numbers worked out by hand.

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/error.h"
#include "differences.h"
#include "priors/alibi.h"
#include "priors/kerple.h"
#include "priors/nape.h"
#include "priors/registry.h"
#include "priors/rope.h"
#include "scales/adaptive.h"
#include "scales/entropy.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

std::vector<double> table_of(const std::string& name, const Theta& theta, int64_t H, int64_t T,
                             int form = 0) {
  std::vector<double> table(static_cast<size_t>(H * T));
  find_prior(name)->as<TableFamily>()->table(theta.pointers().data(), {H, T, form}, table.data());
  return table;
}

TEST_CASE("alibi's slopes are those of the formula that the documentation gives") {
  const std::string formula = find_prior("alibi")->formula;
  CHECK(formula.find("m_h = 2^(-8h/P) for h <= P and 2^(-4(2(h-P)-1)/P) for h > P") !=
        std::string::npos);
  for (int64_t H = 1; H <= 70; ++H) {
    int64_t P = 1;
    while (2 * P <= H) P *= 2;
    const std::vector<double> table = table_of("alibi", {}, H, 5);
    for (int64_t h = 1; h <= H; ++h) {
      const double exponent =
          h <= P ? -8.0 * static_cast<double>(h) / static_cast<double>(P)
                 : -4.0 * static_cast<double>(2 * (h - P) - 1) / static_cast<double>(P);
      CHECK(alibi_slope(h - 1, H) == Approx(std::exp2(exponent)).epsilon(1e-14));
      for (int64_t d = 0; d < 5; ++d) {
        CHECK(-table[static_cast<size_t>((h - 1) * 5 + d)] ==
              Approx(std::exp2(exponent) * static_cast<double>(d)));
      }
    }
  }
}

TEST_CASE("alibi on both sides: keys before the query are nearer by the asymmetry") {
  const PriorInfo& alibi = *find_prior("alibi");
  Options o = default_options(alibi.options);
  CHECK(o.number("asymmetry") == 0.5);
  ModelShape shape = shape_of(4);
  CHECK(table_shape(alibi, o, shape, 5).asymmetry == 0);
  shape.causal = false;
  TableShape both = table_shape(alibi, o, shape, 9);
  CHECK(both.asymmetry == 0.5);
  both.first = -4;
  std::vector<double> table(4 * 9);
  alibi.as<TableFamily>()->table(nullptr, both, table.data());
  for (int64_t h = 0; h < 4; ++h) {
    const double slope = std::exp2(-2.0 * static_cast<double>(h + 1));
    const double distances[] = {4, 3, 2, 1, 0, 0.5, 1.5, 2.5, 3.5};  // keys after, self, before
    for (size_t n = 0; n < 9; ++n) {
      CHECK(table[static_cast<size_t>(h) * 9 + n] == Approx(-slope * distances[n]));
    }
  }
  o.set("asymmetry", 0.0);
  CHECK(table_shape(alibi, o, shape, 9).asymmetry == 0);
}

// The location is a key's, i - j = -(exp(mu) - exp(-mu)): after the query if mu is above 0.
TEST_CASE("bam on both sides is highest at its location, which keeps its sign, and others at 0") {
  const double mu = std::asinh(1.5);  // exp(mu) - exp(-mu) = 3
  const Theta theta{{{0.2}, {1.3}, {mu}}};
  TableShape both{1, 9};
  both.first = -4;
  std::vector<double> table(9);
  find_prior("bam")->as<TableFamily>()->table(theta.pointers().data(), both, table.data());
  CHECK(std::max_element(table.begin(), table.end()) - table.begin() == 1);  // i - j = -3
  CHECK(table[0] == Approx(table[2]));
  const Theta of_kerple{{{0.7}, {0.4}}};
  find_prior("kerple")->as<TableFamily>()->table(of_kerple.pointers().data(), both, table.data());
  for (size_t n = 0; n < 9; ++n) {
    const double d = std::abs(static_cast<double>(n) - 4);
    CHECK(table[n] == Approx(-0.7 * std::log(1 + 0.4 * d)));
  }
}

TEST_CASE("bam with exponent 1 and alibi's amplitudes is alibi up to its epsilon") {
  const int64_t H = 6, T = 50;
  Theta theta{{{}, std::vector<double>(6, 1.0), std::vector<double>(6, 0.0)}};
  for (int64_t h = 0; h < H; ++h) theta.values[0].push_back(std::log(alibi_slope(h, H)));
  const std::vector<double> bam = table_of("bam", theta, H, T), alibi = table_of("alibi", {}, H, T);
  for (size_t i = 0; i < bam.size(); ++i) CHECK(std::abs(bam[i] - alibi[i]) < 1.01e-5);
}

TEST_CASE("bam whose amplitude vanishes is nope") {
  const Theta theta{{{-700, -700}, {1, 2.5}, {0, 0.3}}};
  for (double b : table_of("bam", theta, 2, 50)) CHECK((b <= 0 && b > -1e-290));
}

TEST_CASE("bam's curve at chosen points") {
  // |x| + eps with x = -d - (e^mu - e^-mu); mu = log 2 has its location at 1.5.
  const Theta theta{{{std::log(2.0), 0, 0}, {2, 0, -1}, {std::log(2.0), 0.7, 0}}};
  const std::vector<double> b = table_of("bam", theta, 3, 4);
  for (int64_t d = 0; d < 4; ++d) {
    const auto i = static_cast<size_t>(d);
    const double x = static_cast<double>(d);
    CHECK(b[i] == Approx(-2 * (x + 1.50001) * (x + 1.50001)));
    CHECK(b[4 + i] == Approx(-1));
    CHECK(b[8 + i] == Approx(d == 0 ? -1e4 : -1 / (x + 1e-5)));  // -1e5 before the bound
  }
}

TEST_CASE("bam's initial values by rule") {
  const PriorInfo& bam = *find_prior("bam");
  const int64_t H = 6;
  const auto initial = [&](const std::string& rule, const std::string& name, int64_t h) {
    Options o = default_options(bam.options);
    o.set("init", rule);
    for (const MechanismParameter& p : bam.parameters(o, shape_of(H))) {
      if (p.name == name) return bam.initial(o, shape_of(H), p, h, 0.25, -1.75);
    }
    FAIL("no parameter " << name);
    return 0.0;
  };
  const double slopes[] = {1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8};
  for (int64_t h = 0; h < H; ++h) {
    CHECK(initial("uniform", "theta_alpha", h) == 0);
    CHECK(initial("uniform", "theta_beta", h) == 0);
    CHECK(initial("laplace", "theta_alpha", h) == Approx(std::log(slopes[h])));
    CHECK(initial("laplace", "theta_beta", h) == 1);
    CHECK(initial("linear", "theta_alpha", h) == 0);
    CHECK(initial("linear", "theta_beta", h) == Approx(0.2 * static_cast<double>(h)).margin(1e-15));
    CHECK(initial("normal", "theta_alpha", h) == -1.75);
    CHECK(initial("normal", "theta_beta", h) == -1.75);
    for (const char* rule : {"uniform", "laplace", "linear", "normal"}) {
      CHECK(initial(rule, "theta_mu", h) == 0);
    }
  }
  Options linear = default_options(bam.options);
  linear.set("init", std::string("linear"));
  const auto one = bam.parameters(linear, shape_of(1));
  CHECK(bam.initial(linear, shape_of(1), one.at(1), 0, 0, 0) == 0);
}

TEST_CASE("bam declares three parameters per layer and trains those that are named") {
  const PriorInfo& bam = *find_prior("bam");
  Options o = default_options(bam.options);
  auto p = bam.parameters(o, shape_of(5));
  REQUIRE(p.size() == 3);
  const char* names[] = {"theta_alpha", "theta_beta", "theta_mu"};
  for (size_t i = 0; i < 3; ++i) {
    CHECK(p[i].name == names[i]);
    CHECK(p[i].shape == std::vector<int64_t>{5});
    CHECK(p[i].trained == (i < 2));
    CHECK_FALSE(p[i].shared);
  }
  o.set("train", StringList{"theta_mu"});
  o.set("share", true);
  p = bam.parameters(o, shape_of(5));
  for (size_t i = 0; i < 3; ++i) {
    CHECK(p[i].trained == (i == 2));
    CHECK(p[i].shared);
  }
}

TEST_CASE("nape is alibi of half the heads, and nothing in the other half, where scales act") {
  const int64_t T = 20;
  for (const int64_t H : {2, 5, 8, 12}) {
    INFO(H << " heads");
    const int64_t half = H / 2;
    const std::vector<double> nape = table_of("nape", {}, H, T);
    const std::vector<double> harmonic = table_of("nape", {}, H, T, Nape<double>::kHarmonic);
    const std::vector<double> alibi = table_of("alibi", {}, half, T);
    for (size_t i = 0; i < nape.size(); ++i) {
      const double d = static_cast<double>(i % T), h = static_cast<double>(i / T);
      CHECK(nape[i] == (i < alibi.size() ? alibi[i] : 0));
      CHECK(harmonic[i] == (i < alibi.size() ? Approx(-d / (h + 1)) : Approx(0)));
    }
    CHECK(find_prior("nape")->first_scaled_head(H) == half);
  }
}

TEST_CASE("nape's other slopes: those of all heads in the first half, halves of halves") {
  const int64_t H = 12, T = 5, sloped = 6 * T;
  const std::vector<double> of_all = table_of("nape", {}, H, T, Nape<double>::kExponentialOfAll);
  const std::vector<double> halving = table_of("nape", {}, H, T, Nape<double>::kHalving);
  const std::vector<double> alibi = table_of("alibi", {}, H, T);
  for (int64_t i = 0; i < H * T; ++i) {
    const auto at = static_cast<size_t>(i);
    CHECK(of_all[at] == (i < sloped ? alibi[at] : 0));
    CHECK(halving[at] ==
          (i < sloped ? -std::ldexp(static_cast<double>(i % T), -(static_cast<int>(i / T))) : 0));
  }
}

TEST_CASE("nape's slopes are refused a number of heads on which they do not depend") {
  const PriorInfo& nape = *find_prior("nape");
  Options o = default_options(nape.options);
  o.set("slope_heads", std::string("H"));
  CHECK(nape.parameters(o, shape_of(4)).empty());
  for (const char* slopes : {"harmonic", "halving"}) {
    o.set("slopes", std::string(slopes));
    CHECK_THROWS_AS(nape.parameters(o, shape_of(4)), Error);
  }
}

TEST_CASE("kerple's power kernel with exponent 1 and alibi's slopes is alibi") {
  const int64_t H = 6, T = 50;
  Theta theta{{{}, std::vector<double>(6, 1.0)}};
  for (int64_t h = 0; h < H; ++h) theta.values[0].push_back(alibi_slope(h, H));
  const std::vector<double> alibi = table_of("alibi", {}, H, T);
  const std::vector<double> kerple = table_of("kerple", theta, H, T, Kerple<double>::kPower);
  for (size_t i = 0; i < alibi.size(); ++i) CHECK(kerple[i] == Approx(alibi[i]));
}

TEST_CASE("kerple's curves at chosen points") {
  const Theta theta{{{2, 0.5}, {3, 0.25}}};
  const std::vector<double> logarithmic = table_of("kerple", theta, 2, 6);
  const std::vector<double> power = table_of("kerple", theta, 2, 6, Kerple<double>::kPower);
  CHECK(logarithmic[0] == 0);
  CHECK(power[0] == 0);
  CHECK(logarithmic[1] == Approx(-2 * std::log(4.0)));
  CHECK(logarithmic[5] == Approx(-2 * std::log(16.0)));
  CHECK(logarithmic[6 + 4] == Approx(-0.5 * std::log(2.0)));
  CHECK(power[2] == Approx(-16));
  CHECK(power[6 + 4] == Approx(-0.5 * std::sqrt(2.0)));
}

TEST_CASE("kerple's parameters begin at random and stay within their limits") {
  const PriorInfo& kerple = *find_prior("kerple");
  Options o = default_options(kerple.options);
  auto p = kerple.parameters(o, shape_of(3));
  REQUIRE(p.size() == 2);
  CHECK((p[0].name == "r1" && p[1].name == "r2"));
  for (const MechanismParameter& r : p) {
    CHECK(r.shape == std::vector<int64_t>{3});
    CHECK((r.trained && !r.shared));
    CHECK((r.minimum == 0.01 && r.maximum == INFINITY));
  }
  CHECK(kerple.initial(o, shape_of(3), p[0], 0, 0.75, 0) == 1.5);
  CHECK(kerple.initial(o, shape_of(3), p[1], 0, 0.75, 0) == 0.75);
  CHECK(kerple.initial(o, shape_of(3), p[1], 0, 0.001, 0) == 0.01);
  o.set("kernel", std::string("power"));
  p = kerple.parameters(o, shape_of(3));
  CHECK(p[0].maximum == INFINITY);
  CHECK(p[1].maximum == 2);
}

TEST_CASE("t5's buckets: one per distance below 16, then equal widths in log d up to 128") {
  // The first distance of each bucket, starting with 16: 16 * 8^(k / 16), rounded up.
  const std::vector<int64_t> first = {16, 19, 21, 24, 27, 31, 35, 40,
                                      46, 52, 59, 67, 77, 87, 99, 113};
  Theta theta{{{}}};
  for (int k = 0; k < 32; ++k) theta.values[0].push_back(k);
  const std::vector<double> table = table_of("t5", theta, 1, 1000);
  for (int64_t d = 0; d < 1000; ++d) {
    const auto reached = std::upper_bound(first.begin(), first.end(), d) - first.begin();
    INFO("distance " << d);
    CHECK(table[static_cast<size_t>(d)] == (d < 16 ? d : 15 + reached));
  }
}

TEST_CASE("t5 has one table for all layers unless told otherwise") {
  const PriorInfo& t5 = *find_prior("t5");
  Options o = default_options(t5.options);
  const auto p = t5.parameters(o, shape_of(3));
  REQUIRE(p.size() == 1);
  CHECK(p[0].shape == std::vector<int64_t>{3, 32});
  CHECK((p[0].trained && p[0].shared));
  CHECK(t5.initial(o, shape_of(3), p[0], 5, 0.5, 1.5) == Approx(0.03));
  o.set("share", false);
  CHECK_FALSE(t5.parameters(o, shape_of(3))[0].shared);
}

TEST_CASE("t5 as in DAPE's code: sqrt(D) times a table of Xavier's initial values") {
  const PriorInfo& t5 = *find_prior("t5");
  const ModelShape shape = shape_of(4);  // D 8
  Options o = default_options(t5.options);
  CHECK(table_shape(t5, o, shape, 9).gain == 1);
  o.set("gain", std::string("sqrt(D)"));
  o.set("init", std::string("xavier"));
  const TableShape with_gain = table_shape(t5, o, shape, 9);
  CHECK(with_gain.gain == Approx(std::sqrt(8.0)));
  // std sqrt(2 / (fan_in + fan_out)) of a table of 32 buckets for 4 heads.
  CHECK(t5.initial(o, shape, t5.parameters(o, shape)[0], 5, 0.5, 1.5) ==
        Approx(1.5 * std::sqrt(2.0 / 36)));
  Theta theta{{{}}};
  for (int k = 0; k < 4 * 32; ++k) theta.values[0].push_back(k);
  std::vector<double> table(4 * 9);
  t5.as<TableFamily>()->table(theta.pointers().data(), with_gain, table.data());
  const std::vector<double> plain = table_of("t5", theta, 4, 9);
  for (size_t i = 0; i < table.size(); ++i) CHECK(table[i] == Approx(std::sqrt(8.0) * plain[i]));
}

TEST_CASE("rope's frequencies fall from 1 in powers of its base") {
  const PriorInfo& rope = *find_prior("rope");
  Options o = default_options(rope.options);
  CHECK(o.number("theta") == 10000);
  const std::vector<double> f = rope.as<RotaryFamily>()->inverse_frequencies(o, 8, 40);
  REQUIRE(f.size() == 4);
  for (size_t c = 0; c < 4; ++c) {
    CHECK(f[c] == Approx(std::pow(10.0, -static_cast<double>(c))));
  }
}

TEST_CASE("scaled rope: pairs that turn fast stay, those that turn slowly are divided") {
  const RotaryFamily& rope = *find_prior("rope")->as<RotaryFamily>();
  Options o = default_options(find_prior("rope")->options);
  o.set("theta", 500000.0);
  const int64_t D = 64, T = 2048;
  const auto frequencies = [&](const char* scaling, double factor) {
    o.set("scaling", std::string(scaling));
    o.set("factor", factor);
    return rope.inverse_frequencies(o, D, T);
  };
  const std::vector<double> plain = frequencies("none", 1);
  for (const char* scaling : {"linear", "ntk", "yarn", "llama3"}) {
    INFO(scaling);
    const std::vector<double> one = frequencies(scaling, 1), eight = frequencies(scaling, 8);
    for (size_t c = 0; c < plain.size(); ++c) CHECK(one[c] == Approx(plain[c]));
    CHECK(eight.front() == Approx(scaling == std::string("linear") ? plain[0] / 8 : plain[0]));
    CHECK(eight.back() == Approx(plain.back() / 8));
    for (size_t c = 1; c < plain.size(); ++c) CHECK(eight[c] < eight[c - 1]);
    CHECK(rope.amplitude(o) ==
          Approx(scaling == std::string("yarn") ? 0.1 * std::log(8.0) + 1 : 1));
  }
  // theta 500000: in 2,048 positions, pair 5.7 would turn 32 times, pair 14.1 once.
  const std::vector<double> yarn = frequencies("yarn", 8), llama = frequencies("llama3", 8);
  for (size_t c = 0; c < plain.size(); ++c) {
    INFO("pair " << c);
    const double turns = 2048 * plain[c] / (2 * M_PI);
    const double kept = std::clamp((15 - static_cast<double>(c)) / 10, 0.0, 1.0);
    CHECK(yarn[c] == Approx(plain[c] * (kept + (1 - kept) / 8)));
    const double smooth = std::clamp((turns - 1) / 3, 0.0, 1.0);
    CHECK(llama[c] == Approx(plain[c] * (smooth + (1 - smooth) / 8)));
  }
}

TEST_CASE("rope_local is rope in a window: its own, the model's, or the training length + 1") {
  const PriorInfo& local = *find_prior("rope_local");
  Options o = default_options(local.options);
  CHECK(local.window(o, 512, 0) == 513);
  CHECK(local.window(o, 512, 1000) == 1000);
  o.set("window", 64.0);
  CHECK(local.window(o, 512, 0) == 64);
  CHECK(local.window(o, 512, 1000) == 64);
  CHECK(local.as<RotaryFamily>()->inverse_frequencies(o, 8, 40) ==
        find_prior("rope")->as<RotaryFamily>()->inverse_frequencies(o, 8, 40));
  CHECK(find_prior("rope")->window == nullptr);
}

TEST_CASE("a factor without scaling is refused, and scaling without a factor") {
  for (const char* name : {"rope", "rope_local"}) {
    const PriorInfo& rope = *find_prior(name);
    Options factor = default_options(rope.options);
    factor.set("factor", 2.0);
    CHECK_THROWS_AS(rope.parameters(factor, shape_of(2)), Error);
    for (const char* scaling : {"linear", "ntk", "yarn", "llama3"}) {
      INFO(name << ", " << scaling);
      Options o = default_options(rope.options);
      o.set("scaling", std::string(scaling));
      CHECK_THROWS_AS(rope.parameters(o, shape_of(2)), Error);
      o.set("factor", 2.0);
      CHECK(rope.parameters(o, shape_of(2)).empty());
    }
  }
}

TEST_CASE("rope refuses an odd head dimension, learned a table shorter than the sequence") {
  ModelShape odd = shape_of(2);
  odd.head_dim = 7;
  const PriorInfo &rope = *find_prior("rope"), &learned = *find_prior("learned");
  CHECK_THROWS_AS(rope.parameters(default_options(rope.options), odd), Error);
  Options o = default_options(learned.options);
  o.set("positions", 39.0);
  CHECK_THROWS_AS(learned.parameters(o, shape_of(2)), Error);
}

TEST_CASE("the learned table is as long as the sequence unless told otherwise") {
  const PriorInfo& learned = *find_prior("learned");
  Options o = default_options(learned.options);
  const auto p = learned.parameters(o, shape_of(3));
  REQUIRE(p.size() == 1);
  CHECK(p[0].shape == std::vector<int64_t>{40, 24});
  CHECK(learned.initial(o, shape_of(3), p[0], 5, 0.5, 1.5) == Approx(0.03));
  o.set("positions", 100.0);
  CHECK(learned.parameters(o, shape_of(3))[0].shape == std::vector<int64_t>{100, 24});
}

TEST_CASE("sinusoids: sine on even channels, cosine on odd ones, one frequency for both") {
  const PriorInfo& sinusoidal = *find_prior("sinusoidal");
  const auto embedding = [&](int64_t position, int64_t c, int64_t C) {
    return sinusoidal.as<EmbeddingFamily>()->value(default_options(sinusoidal.options), position, c,
                                                   C);
  };
  for (int64_t position : {0, 1, 37}) {
    const auto x = static_cast<double>(position);
    CHECK(embedding(position, 0, 4) == Approx(std::sin(x)));
    CHECK(embedding(position, 1, 4) == Approx(std::cos(x)));
    CHECK(embedding(position, 2, 4) == Approx(std::sin(x / 100)));
    CHECK(embedding(position, 3, 4) == Approx(std::cos(x / 100)));
  }
}

TEST_CASE("BAM's sinusoids: every channel has a frequency of its own") {
  const PriorInfo& sinusoidal = *find_prior("sinusoidal");
  Options o = default_options(sinusoidal.options);
  o.set("variant", std::string("bam"));
  for (int64_t position : {0, 1, 37}) {
    const auto x = static_cast<double>(position);
    const auto* const embedding = sinusoidal.as<EmbeddingFamily>();
    CHECK(embedding->value(o, position, 0, 4) == Approx(std::sin(x)));
    CHECK(embedding->value(o, position, 1, 4) == Approx(std::cos(x / 10)));
    CHECK(embedding->value(o, position, 2, 4) == Approx(std::sin(x / 100)));
    CHECK(embedding->value(o, position, 3, 4) == Approx(std::cos(x / 1000)));
  }
}

/// t of the only head, with parameters of one element each, for a row that sees n keys.
double scale_value(const ScaleInfo& scale, const Options& o, const std::vector<double>& theta,
                   int64_t n) {
  std::vector<const double*> pointers;
  for (const double& x : theta) pointers.push_back(&x);
  return scale.as<LengthKind>()->value(constants_of(scale, o, 1), pointers.data(), 0, n);
}

TEST_CASE("ssmax is s log n, or s log (n + 1)") {
  const ScaleInfo& ssmax = *find_scale("ssmax");
  Options o = default_options(ssmax.options);
  CHECK(scale_value(ssmax, o, {1.5}, 1) == 0);
  CHECK(scale_value(ssmax, o, {1.5}, 8) == Approx(1.5 * 3 * std::log(2.0)));
  o.set("offset", 1.0);
  CHECK(scale_value(ssmax, o, {1.5}, 7) == Approx(1.5 * 3 * std::log(2.0)));
  o.set("delta", 1.0);
  CHECK(scale_value(ssmax, o, {1.5}, 7) == Approx(1 + 1.5 * 3 * std::log(2.0)));
  o.set("delta", 0.0);
  const auto p = ssmax.parameters(o, shape_of(3));
  REQUIRE(p.size() == 1);
  CHECK(p[0].name == "s");
  CHECK(p[0].shape == std::vector<int64_t>{3});
  CHECK(p[0].trained);
  CHECK(ssmax.initial(o, shape_of(3), p[0], 0, 0.5, 2) == 1);
  o.set("init", 0.5);
  o.set("init_std", 0.25);
  CHECK(ssmax.initial(o, shape_of(3), p[0], 0, 0.5, 2) == 1);
  CHECK(ssmax.initial(o, shape_of(3), p[0], 0, 0.5, -1) == 0.25);
}

TEST_CASE("sentmax is delta + beta log(n + 1)^gamma, finite for one key and a negative gamma") {
  const ScaleInfo& sentmax = *find_scale("sentmax");
  Options o = default_options(sentmax.options);
  const double log2 = std::log(2.0);
  CHECK(scale_value(sentmax, o, {0.5, 2}, 3) == Approx(1 + 0.5 * 4 * log2 * log2));
  CHECK(scale_value(sentmax, o, {0.5, -1}, 1) == Approx(1 + 0.5 / log2));
  CHECK(scale_value(sentmax, o, {0.5, 0}, 1000) == Approx(1.5));
  o.set("delta", 0.0);
  CHECK(scale_value(sentmax, o, {0.5, 1}, 7) == Approx(0.5 * 3 * log2));
  const auto p = sentmax.parameters(o, shape_of(3));
  REQUIRE(p.size() == 2);
  CHECK((p[0].trained && p[1].trained));
  CHECK(sentmax.initial(o, shape_of(3), p[0], 0, 0.5, 7) == Approx(0.55));
  CHECK(sentmax.initial(o, shape_of(3), p[1], 0, 0.5, -2) == Approx(-0.2));
  o.set("train_gamma", false);
  o.set("gamma", -1.0);
  o.set("gamma_std", 0.0);
  CHECK_FALSE(sentmax.parameters(o, shape_of(3))[1].trained);
  CHECK(sentmax.initial(o, shape_of(3), p[1], 0, 0.5, -2) == -1);
}

TEST_CASE("a constant scale is the same for all rows, one by length is a table") {
  const ScaleInfo& constant = *find_scale("constant");
  Options o = default_options(constant.options);
  o.set("t", 0.25);
  for (int64_t n : {1, 17}) CHECK(scale_value(constant, o, {}, n) == 0.25);

  const ScaleInfo& by_length = *find_scale("by_length");
  o = default_options(by_length.options);
  const auto p = by_length.parameters(o, shape_of(3));
  REQUIRE(p.size() == 1);
  CHECK(p[0].shape == std::vector<int64_t>{3, 40});
  CHECK(by_length.initial(o, shape_of(3), p[0], 5, 0.5, 7) == 1);
  o.set("lengths", 50.0);
  CHECK(by_length.parameters(o, shape_of(3))[0].shape == std::vector<int64_t>{3, 50});
  const FormulaConstants c = constants_of(by_length, o, 3);
  const LengthKind& kind = *by_length.as<LengthKind>();
  CHECK(kind.longest(c) == 50);
  std::vector<double> t(150), dt(150, 0.0);
  for (size_t i = 0; i < t.size(); ++i) t[i] = static_cast<double>(i);
  const double* theta[] = {t.data()};
  double* dtheta[] = {dt.data()};
  CHECK(kind.value(c, theta, 2, 1) == 100);
  CHECK(kind.value(c, theta, 1, 50) == 99);
  kind.accumulate(c, theta, 1, 50, 0.5, dtheta);
  CHECK(dt[99] == 0.5);
  o.set("lengths", 39.0);
  CHECK_THROWS_AS(by_length.parameters(o, shape_of(3)), Error);
}

TEST_CASE("adaptive is delta + softplus(u) log(n + 1)^(g tanh w), and its gates begin small") {
  const Adaptive scale(FormulaConstants{{0.5, 2}});
  const auto value = [&scale](double u, double w, int64_t n) {
    const double gates[] = {u, w};
    return scale.value(gates, n);
  };
  const double log2 = std::log(2.0);
  CHECK(value(0, 0, 9) == Approx(0.5 + log2));
  CHECK(value(-1, std::atanh(0.5), 3) == Approx(0.5 + std::log1p(std::exp(-1.0)) * 2 * log2));
  CHECK(value(800, -800, 1) == Approx(0.5 + 800 / (log2 * log2)));
  CHECK(value(-800, 800, 1 << 20) == 0.5);
  const ScaleInfo& adaptive = *find_scale("adaptive");
  Options o = default_options(adaptive.options);
  const FormulaConstants c = constants_of(adaptive, o, 3);
  CHECK((c.of[0] == 1 && c.of[1] == 2));
  const auto gates = adaptive.parameters(o, shape_of(3));
  REQUIRE(gates.size() == 2);
  for (const MechanismParameter& p : gates) {
    CHECK((p.gate && p.trained));
    CHECK(p.shape == std::vector<int64_t>{3, 24});
    CHECK(adaptive.initial(o, shape_of(3), p, 5, 0.5, -2) == Approx(-0.04));
  }
  o.set("bias", true);
  const auto with = adaptive.parameters(o, shape_of(3));
  REQUIRE(with.size() == 4);
  for (size_t k = 2; k < 4; ++k) {
    CHECK((with[k].trained && !with[k].gate));
    CHECK(with[k].shape == std::vector<int64_t>{3});
    CHECK(adaptive.initial(o, shape_of(3), with[k], 1, 0.5, -2) == 0);
  }
}

TEST_CASE("the adaptive temperature is 1 for sharp rows and never less") {
  for (double H : {0.0, 0.3, 0.5, 7.0, 20.0}) CHECK(entropy_scale_of(H) == 1);
  CHECK(entropy_scale_of(0.6) == Approx(1).epsilon(1e-2));  // no jump above 0.5
  CHECK(entropy_scale_of(1) == Approx(-0.037 + 0.481 - 2.3 + 4.917 - 1.791));
  CHECK(entropy_scale_of(2) == Approx(2.099));
}

TEST_CASE("a scale multiplies the bias too with bam, and only the content with the other priors") {
  for (const PriorInfo& prior : all_priors()) {
    CHECK(find_scale("ssmax")->default_scale_bias(prior.name) == (prior.name == "bam"));
  }
  for (const ScaleInfo& scale : all_scales()) {
    const bool entropy = scale.name == "entropy";  // it scales both with any prior
    CHECK((scale.default_scale_bias != nullptr) == (scale.name == "ssmax" || entropy));
    if (entropy) CHECK(scale.default_scale_bias("nope"));
  }
}

TEST_CASE("names in the registries are unique, and unknown ones are not found") {
  for (const PriorInfo& prior : all_priors()) CHECK(find_prior(prior.name) == &prior);
  for (const ScaleInfo& scale : all_scales()) CHECK(find_scale(scale.name) == &scale);
  CHECK(find_prior("") == nullptr);
  CHECK(find_prior("Bam") == nullptr);
  CHECK(find_scale("softmax") == nullptr);
}

}  // namespace
}  // namespace bamtrain::testing
