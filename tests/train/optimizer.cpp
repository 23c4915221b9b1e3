#include "train/optimizer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>

#include "catch.h"
#include "mixes/registry.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"

using namespace bamtrain;

namespace {

PriorChoice default_prior(const char* name) { return PriorChoice(*find_prior(name)); }

ModelConfig tiny_bam() {
  ModelConfig c;
  c.vocab = 11;
  c.width = 8;
  c.layers = 1;
  c.heads = c.kv_heads = 2;
  c.mlp.hidden = 8;
  c.bias = true;
  c.attention.prior = default_prior("bam");
  c.attention.scale = ScaleChoice(*find_scale("ssmax"));
  return c;
}

/// A step with gradients 0 moves exactly the parameters with weight decay. With gradients 1,
/// AdamW's first step has size lr and moves every trained parameter by its own rate.
struct Fixture {
  ModelConfig config;
  ParameterLayout layout{config, 16};
  std::unique_ptr<Backend> backend = make_reference_backend();
  Arena arena;
  Tensor master_weights, gradients;

  explicit Fixture(const ModelConfig& c = tiny_bam()) : config(c) {}

  void step(OptimizerConfig o, double gradient) {
    Optimizer optimizer(o, layout, *backend);
    arena.add("masters", &master_weights, Dtype::f64, {layout.elements()});
    arena.add("gradients", &gradients, Dtype::f64, {layout.elements()});
    optimizer.plan(arena, {{{0, layout.elements()}}}, layout.elements());
    arena.commit();
    for (int64_t i = 0; i < master_weights.size(); ++i) master_weights.ptr<double>()[i] = 1;
    for (int64_t i = 0; i < gradients.size(); ++i) gradients.ptr<double>()[i] = gradient;
    double squared_norm = gradient * gradient * static_cast<double>(gradients.size());
    optimizer.prepare(1, o.lr, 1);
    optimizer.clip(Tensor(&squared_norm, Dtype::f64, {1}));
    const FlatRange all = {0, layout.elements()};
    optimizer.update({&all, 1}, master_weights, {}, gradients);
  }
  double value(const std::string& name) const {
    return layout.view(master_weights, name).ptr<double>()[0];
  }
};

}  // namespace

TEST_CASE("matrices and embeddings decay; norms, biases, priors and scales do not") {
  Fixture f;
  OptimizerConfig o;
  o.lr = 0.5;
  o.weight_decay = 0.1;
  f.step(o, 0);
  CHECK(f.value("model.embed_tokens.weight") == Approx(0.95));
  CHECK(f.value("lm_head.weight") == Approx(0.95));
  CHECK(f.value("model.layers.0.self_attn.q_proj.weight") == Approx(0.95));
  CHECK(f.value("model.layers.0.self_attn.q_proj.bias") == 1);
  CHECK(f.value("model.norm.weight") == 1);
  CHECK(f.value("model.layers.0.self_attn.prior.theta_alpha") == 1);
  CHECK(f.value("model.layers.0.self_attn.scale.s") == 1);
}

TEST_CASE("of a prior and a scale decay the parameters that the text of their option names") {
  using Names = std::vector<std::string>;
  // The mechanism's parameters, sorted: those with weight decay, or those without.
  const auto of_mechanism = [](const ModelConfig& c, bool decay) {
    Names names;
    const ParameterLayout layout(c, 16);
    for (const Parameter& p : layout.all()) {
      const bool own = p.group == ParameterGroup::prior || p.group == ParameterGroup::scale;
      if (own && p.decays() == decay) names.push_back(p.leaf());
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  const auto decaying = [&](const ModelConfig& c) { return of_mechanism(c, true); };
  // Those of `all` that occur as words in the text.
  const auto named_in = [](const std::string& text, const Names& all) {
    Names words = {""}, found;
    for (const char c : text) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        words.back() += c;
      } else {
        words.emplace_back();
      }
    }
    std::copy_if(all.begin(), all.end(), std::back_inserter(found), [&](const std::string& name) {
      return std::find(words.begin(), words.end(), name) != words.end();
    });
    return found;
  };
  size_t known = 0;
  const auto check = [&](const MechanismInfo& info, const auto& with) {
    const auto option = std::find_if(info.options.begin(), info.options.end(),
                                     [](const OptionSpec& o) { return o.name == "decay"; });
    if (option == info.options.end()) return;
    INFO(info.name);
    ++known;
    const std::string lead = "weight decay acts on ";
    REQUIRE(option->description.starts_with(lead));
    const std::string text = option->description.substr(lead.size());
    const size_t excluded = std::min(text.find(", not on "), text.size());
    const Names decays = decaying(with(std::optional(true)));
    const Names kept = of_mechanism(with(std::optional(true)), false);
    INFO(text);
    CHECK_FALSE(decays.empty());
    CHECK(named_in(text.substr(0, excluded), decays) == decays);
    CHECK(named_in(text.substr(0, excluded), kept).empty());
    CHECK(named_in(text.substr(excluded), kept) == kept);
    const bool by_default = std::get<bool>(option->default_value);
    CHECK(decaying(with(std::nullopt)) == (by_default ? decays : Names()));
    CHECK(decaying(with(std::optional(false))).empty());
  };
  for (const MixInfo& m : all_mixes()) {
    check(m, [&m](std::optional<bool> decay) {
      ModelConfig c = tiny_bam();
      MixChoice chosen(m);
      if (decay) chosen.options.set("decay", *decay);
      c.attention.prior = PriorChoice(*find_prior("alibi"));
      c.attention.prior.mixes = {chosen};
      c.attention.scale = ScaleChoice(*find_scale("none"));
      return c;
    });
  }
  for (const PriorInfo& p : all_priors()) {
    check(p, [&p](std::optional<bool> decay) {
      ModelConfig c = tiny_bam();
      PriorChoice chosen(p);
      if (decay) chosen.options.set("decay", *decay);
      c.attention.prior = chosen;
      c.attention.scale = ScaleChoice(*find_scale("none"));
      return c;
    });
  }
  for (const ScaleInfo& s : all_scales()) {
    check(s, [&s](std::optional<bool> decay) {
      ModelConfig c = tiny_bam();
      c.attention.prior = default_prior("nope");
      c.attention.scale = ScaleChoice(s);
      if (decay) c.attention.scale.options.set("decay", *decay);
      if (s.name == "adaptive") c.attention.scale.options.set("bias", true);
      return c;
    });
  }
  CHECK(known >= 10);
}

TEST_CASE("learning-rate multipliers: the name wins over the group, fixed parameters never move") {
  Fixture f;
  OptimizerConfig o;
  o.lr = 0.01;
  o.eps = 0;
  o.weight_decay = 0;
  o.lr_multipliers = {{"prior", 2}, {"theta_beta", 3}, {"s", 5}};
  f.step(o, 1);
  CHECK(f.value("model.norm.weight") == Approx(0.99));
  CHECK(f.value("model.layers.0.self_attn.prior.theta_alpha") == Approx(0.98));
  CHECK(f.value("model.layers.0.self_attn.prior.theta_beta") == Approx(0.97));
  CHECK(f.value("model.layers.0.self_attn.prior.theta_mu") == 1);
  CHECK(f.value("model.layers.0.self_attn.scale.s") == Approx(0.95));
}

TEST_CASE("learning-rate multipliers: a mix of heads is a group within the prior's") {
  ModelConfig c = tiny_bam();
  c.attention.prior.mixes = {MixChoice(*find_mix("dape"))};
  const auto values = [&c](const std::map<std::string, double>& multipliers) {
    Fixture f(c);
    OptimizerConfig o;
    o.lr = 0.01;
    o.eps = 0;
    o.weight_decay = 0;
    o.lr_multipliers = multipliers;
    f.step(o, 1);
    const std::string attention = "model.layers.0.self_attn.";
    return std::vector<double>{f.value(attention + "prior.theta_beta"),
                               f.value(attention + "mix.weight1"),
                               f.value(attention + "mix.bias2")};
  };
  const auto check = [&](const std::map<std::string, double>& multipliers,
                         const std::vector<double>& expected) {
    const std::vector<double> found = values(multipliers);
    for (size_t i = 0; i < 3; ++i) CHECK(found[i] == Approx(expected[i]));
  };
  check({{"prior", 2}}, {0.98, 0.98, 0.98});
  check({{"mix", 3}}, {0.99, 0.97, 0.97});
  check({{"prior", 2}, {"mix", 3}, {"bias2", 5}}, {0.98, 0.97, 0.95});
  REQUIRE_THROWS_AS(Fixture().step({.lr_multipliers = {{"mix", 2}}}, 1), Error);
}

TEST_CASE(
    "parameters with limits stay within them at any learning rate, their neighbours need not") {
  for (const char* kernel : {"logarithmic", "power"}) {
    ModelConfig c = tiny_bam();
    c.width = 32;
    c.heads = c.kv_heads = 16;  // the vectors of all heads fill their space without gaps
    PriorChoice kerple = default_prior("kerple");
    kerple.options.set("kernel", std::string(kernel));
    c.attention.prior = kerple;
    const std::string of_attention = "model.layers.0.self_attn.";
    const auto moved = [&](double gradient, const std::string& name) {
      Fixture f(c);
      OptimizerConfig o;
      o.lr = 1000;
      o.eps = 0;
      o.weight_decay = 0;
      f.step(o, gradient);
      return f.value(of_attention + name);
    };
    INFO(kernel);
    CHECK(moved(1, "prior.r1") == 0.01);
    CHECK(moved(1, "prior.r2") == 0.01);
    CHECK(moved(-1, "prior.r1") == Approx(1001));
    CHECK(moved(-1, "prior.r2") == (kernel == std::string("power") ? Approx(2) : Approx(1001)));
    for (const char* neighbour : {"o_proj.bias", "scale.s"}) {
      CHECK(moved(1, neighbour) == Approx(-999));
      CHECK(moved(-1, neighbour) == Approx(1001));
    }
  }
}

TEST_CASE("a multiplier for nothing in the model is an error that names it") {
  Fixture f;
  OptimizerConfig o;
  o.lr_multipliers = {{"theta_gamma", 2}};
  REQUIRE_THROWS_AS(Optimizer(o, f.layout, *f.backend), Error);
  o.lr_multipliers = {{"theta_mu", 2}};  // fixed
  REQUIRE_THROWS_AS(Optimizer(o, f.layout, *f.backend), Error);
}

TEST_CASE("the gradients' norm is brought to the limit before a step") {
  OptimizerConfig o;
  o.name = OptimizerKind::radam;  // its first steps follow the gradient
  o.lr = 1;
  o.beta1 = 0;
  o.weight_decay = 0;
  const auto moved = [&](double clip) {
    Fixture f;
    o.clip = clip;
    f.step(o, 3);
    return 1 - f.value("model.norm.weight");
  };
  Fixture f;
  const double norm = 3 * std::sqrt(static_cast<double>(f.layout.elements()));
  CHECK(moved(norm / 4) == Approx(0.75));
  CHECK(moved(2 * norm) == 3);
  CHECK(moved(0) == 3);
}
