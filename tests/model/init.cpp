// Initial values: the moments of each rule for each kind of tensor, and what they depend on.

#include <algorithm>
#include <cmath>

#include "build.h"
#include "catch.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kLength = 50;

ModelConfig config(InitKind init) {
  ModelConfig c = small_config();
  c.vocab = 800;
  c.width = 96;
  c.layers = 3;
  c.mlp.hidden = 160;
  c.bias = true;
  c.norm.kind = NormKind::layernorm;
  c.init = init;
  c.attention.prior = prior("learned");
  c.attention.scale = scale("ssmax");
  return c;
}

std::vector<double> initial(const ModelConfig& c, const std::string& name, uint64_t seed = 1,
                            Dtype t = Dtype::f64) {
  const ParameterLayout layout(c, kLength);
  const Parameter* p = layout.find(name);
  REQUIRE(p != nullptr);
  const Memory out(t, {p->size}, -77);
  initialize(*p, c, kLength, seed, out.tensor());
  return read(out.tensor(), Role::parameter).x;
}

/// Mean, standard deviation and the share beyond two deviations are within five standard errors of
/// N(0, deviation^2). The share distinguishes a normal from a uniform distribution (4.6 % against
/// 0).
void check_normal(const std::vector<double>& x, double deviation) {
  const double n = static_cast<double>(x.size());
  double mean = 0, square = 0, beyond = 0;
  for (double v : x) {
    mean += v / n;
    square += v * v / n;
    beyond += std::abs(v) > 2 * deviation ? 1 / n : 0;
  }
  CHECK(std::abs(mean) < 5 * deviation / std::sqrt(n));
  CHECK(std::abs(std::sqrt(square) - deviation) < 5 * deviation / std::sqrt(2 * n));
  CHECK(std::abs(beyond - 0.0455) < 5 * std::sqrt(0.0455 / n));
}

/// U(-bound, bound): moments as above, and values fill the interval without leaving it.
void check_uniform(const std::vector<double>& x, double bound) {
  const double n = static_cast<double>(x.size());
  double mean = 0, square = 0;
  for (double v : x) {
    mean += v / n;
    square += v * v / n;
  }
  const double deviation = bound / std::sqrt(3.0);
  CHECK(std::abs(mean) < 5 * deviation / std::sqrt(n));
  CHECK(std::abs(std::sqrt(square) - deviation) < 5 * deviation / std::sqrt(n));
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  CHECK(*low >= -bound);
  CHECK(*high <= bound);
  CHECK(*low < -bound * (1 - 20 / n));
  CHECK(*high > bound * (1 - 20 / n));
}

/// N(0, deviation^2) truncated at two deviations. Moments and the share within one deviation are
/// within five standard errors of the truncated density's. Values fill the interval without leaving
/// it.
void check_cut_normal(const std::vector<double>& x, double deviation) {
  const double n = static_cast<double>(x.size()), kept = std::erf(std::sqrt(2.0));
  const double density = std::exp(-2.0) / std::sqrt(2 * std::acos(-1.0));  // at two deviations
  const double second = 1 - 4 * density / kept, fourth = 3 - 28 * density / kept;
  double mean = 0, square = 0, within = 0;
  for (double v : x) {
    mean += v / deviation / n;
    square += v * v / (deviation * deviation) / n;
    within += std::abs(v) < deviation ? 1 / n : 0;
  }
  CHECK(second == Approx(0.87962566 * 0.87962566).epsilon(1e-7));
  CHECK(std::abs(mean) < 5 * std::sqrt(second / n));
  CHECK(std::abs(square - second) < 5 * std::sqrt((fourth - second * second) / n));
  const double share = std::erf(std::sqrt(0.5)) / kept;
  CHECK(std::abs(within - share) < 5 * std::sqrt(share * (1 - share) / n));
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  CHECK(*low >= -2 * deviation);
  CHECK(*high <= 2 * deviation);
  // A tail of probability 20 / n has no draw with probability e^-20.
  const double tail = 20 / n * kept / density * deviation;
  CHECK(*low < -2 * deviation + tail);
  CHECK(*high > 2 * deviation - tail);
}

void check_all(const std::vector<double>& x, double value) {
  CHECK(std::count(x.begin(), x.end(), value) == static_cast<int64_t>(x.size()));
}

constexpr const char* kInputMatrices[] = {"self_attn.q_proj", "self_attn.k_proj",
                                          "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"};
constexpr const char* kLayer = "model.layers.1.";

TEST_CASE("gpt2: 0.02, residual projections less by the root of twice the layers, biases zero") {
  const ModelConfig c = config(InitKind::gpt2);
  check_normal(initial(c, "model.embed_tokens.weight"), 0.02);
  check_normal(initial(c, "lm_head.weight"), 0.02);
  for (const char* m : kInputMatrices) {
    check_normal(initial(c, std::string(kLayer) + m + ".weight"), 0.02);
    check_all(initial(c, std::string(kLayer) + m + ".bias"), 0);
  }
  check_normal(initial(c, "model.layers.1.self_attn.o_proj.weight"), 0.02 / std::sqrt(6.0));
  check_normal(initial(c, "model.layers.1.mlp.down_proj.weight"), 0.02 / std::sqrt(6.0));
}

TEST_CASE("torch: uniform within the root of the inputs, embeddings N(0, 1), biases likewise") {
  const ModelConfig c = config(InitKind::torch);
  check_normal(initial(c, "model.embed_tokens.weight"), 1);
  check_uniform(initial(c, "lm_head.weight"), 1 / std::sqrt(96.0));
  for (const char* m : kInputMatrices) {
    check_uniform(initial(c, std::string(kLayer) + m + ".weight"), 1 / std::sqrt(96.0));
    check_uniform(initial(c, std::string(kLayer) + m + ".bias"), 1 / std::sqrt(96.0));
  }
  check_uniform(initial(c, "model.layers.1.self_attn.o_proj.weight"), 1 / std::sqrt(96.0));
  check_uniform(initial(c, "model.layers.1.mlp.down_proj.weight"), 1 / std::sqrt(160.0));
  check_uniform(initial(c, "model.layers.1.mlp.down_proj.bias"), 1 / std::sqrt(160.0));
}

TEST_CASE("neox: root of 2 / 5C, residual projections 2 / (L root C)") {
  const ModelConfig c = config(InitKind::neox);
  const double small = std::sqrt(2 / (5 * 96.0));
  check_normal(initial(c, "model.embed_tokens.weight"), small);
  check_normal(initial(c, "lm_head.weight"), small);
  for (const char* m : kInputMatrices) {
    check_normal(initial(c, std::string(kLayer) + m + ".weight"), small);
    check_all(initial(c, std::string(kLayer) + m + ".bias"), 0);
  }
  check_normal(initial(c, "model.layers.1.self_attn.o_proj.weight"), 2 / (3 * std::sqrt(96.0)));
  check_normal(initial(c, "model.layers.1.mlp.down_proj.weight"), 2 / (3 * std::sqrt(96.0)));
}

TEST_CASE("plain: 0.02 everywhere, biases zero") {
  const ModelConfig c = config(InitKind::plain);
  for (const char* m : {"model.embed_tokens", "lm_head", "model.layers.1.self_attn.q_proj",
                        "model.layers.1.self_attn.o_proj", "model.layers.1.mlp.gate_proj",
                        "model.layers.1.mlp.down_proj"}) {
    check_normal(initial(c, std::string(m) + ".weight"), 0.02);
  }
  check_all(initial(c, "model.layers.1.self_attn.o_proj.bias"), 0);
}

TEST_CASE("lecun: normal within two deviations, those of the root of the inputs; biases zero") {
  ModelConfig c = config(InitKind::lecun);
  c.bias.head = true;
  check_cut_normal(initial(c, "model.embed_tokens.weight"), 0.02);
  for (const char* m : kInputMatrices) {
    check_cut_normal(initial(c, std::string(kLayer) + m + ".weight"), 1 / std::sqrt(96.0));
    check_all(initial(c, std::string(kLayer) + m + ".bias"), 0);
  }
  check_cut_normal(initial(c, "model.layers.1.mlp.down_proj.weight"), 1 / std::sqrt(160.0));
  check_cut_normal(initial(c, "lm_head.weight"), 1 / std::sqrt(96.0));
  check_all(initial(c, "lm_head.bias"), 0);
  c.own_head_dim = 10;
  check_cut_normal(initial(c, "model.layers.1.self_attn.o_proj.weight"), 1 / std::sqrt(40.0));
}

TEST_CASE("the output projection's inputs are those of the heads, whatever the width") {
  ModelConfig c = config(InitKind::torch);
  c.own_head_dim = 10;  // 40 in all, with a width of 96
  for (const char* part : {"weight", "bias"}) {
    check_uniform(initial(c, std::string("model.layers.1.self_attn.o_proj.") + part),
                  1 / std::sqrt(40.0));
    check_uniform(initial(c, std::string("model.layers.1.self_attn.q_proj.") + part),
                  1 / std::sqrt(96.0));
  }
}

TEST_CASE("norms begin as the identity, mechanisms as their registries say, under every rule") {
  for (InitKind init :
       {InitKind::gpt2, InitKind::torch, InitKind::neox, InitKind::plain, InitKind::lecun}) {
    ModelConfig c = config(init);
    for (const char* n : {"model.norm", "model.layers.0.input_layernorm",
                          "model.layers.2.post_attention_layernorm"}) {
      check_all(initial(c, std::string(n) + ".weight"), 1);
      check_all(initial(c, std::string(n) + ".bias"), 0);
    }
    check_normal(initial(c, "model.embed_positions.weight"), 0.02);
    check_all(initial(c, "model.layers.0.self_attn.scale.s"), 1);
    c.attention.prior = prior("bam");
    check_all(initial(c, "model.layers.0.self_attn.prior.theta_alpha"), 0);
    c.attention.prior = prior("bam", {{"init", std::string("linear")}});
    const std::vector<double> beta = initial(c, "model.layers.2.self_attn.prior.theta_beta");
    for (size_t h = 0; h < 4; ++h) CHECK(beta[h] == Approx(static_cast<double>(h) / 3));
    c.attention.scale = scale("adaptive", {{"bias", true}});
    check_normal(initial(c, "model.layers.1.self_attn.scale.beta_weight"), 0.02);
    check_normal(initial(c, "model.layers.1.self_attn.scale.gamma_weight"), 0.02);
    check_all(initial(c, "model.layers.1.self_attn.scale.beta_bias"), 0);
    check_all(initial(c, "model.layers.1.self_attn.scale.gamma_bias"), 0);
  }
}

TEST_CASE("the network of a mix begins uniform within the roots of what its layers read") {
  ModelConfig c = config(InitKind::gpt2);
  c.heads = c.kv_heads = 48;
  for (const char* base : {"alibi", "rope"}) {
    c.attention.prior = mixed("dape", prior(base), {{"hidden", 64.0}});
    const double first = 1 / std::sqrt(base == std::string("alibi") ? 96.0 : 48.0);
    const std::string path = "model.layers.1.self_attn.mix.";
    check_uniform(initial(c, path + "weight1"), first);
    check_uniform(initial(c, path + "bias1"), first);
    check_uniform(initial(c, path + "weight2"), 1.0 / 8);
    check_uniform(initial(c, path + "bias2"), 1.0 / 8);
  }
}

TEST_CASE("normal inits of mechanisms differ by head, layer and parameter") {
  ModelConfig c = config(InitKind::gpt2);
  c.heads = c.kv_heads = 48;
  c.attention.prior = prior("bam", {{"init", std::string("normal")}});
  c.attention.scale = scale("ssmax", {{"init", 0.5}, {"init_std", 0.1}});
  std::vector<double> all, s;
  for (int64_t l = 0; l < c.layers; ++l) {
    for (const char* theta : {"theta_alpha", "theta_beta"}) {
      const auto x = initial(c, layer_prefix(l) + "self_attn.prior." + theta);
      all.insert(all.end(), x.begin(), x.end());
    }
    for (double x : initial(c, layer_prefix(l) + "self_attn.scale.s")) s.push_back(x - 0.5);
  }
  check_normal(all, 1);
  check_normal(s, 0.1);
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("values depend on seed and name alone") {
  ModelConfig c = config(InitKind::gpt2);
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  const std::vector<double> x = initial(c, name, 1);
  CHECK(initial(c, name, 1) == x);
  for (const std::vector<double>& other :
       {initial(c, name, 2), initial(c, name, uint64_t{1} << 40 | 1),
        initial(c, "model.layers.0.self_attn.q_proj.weight", 1),
        initial(c, "model.layers.1.self_attn.o_proj.weight", 1)}) {
    // Independent streams: the correlation is within five standard errors of zero.
    double dot = 0;
    for (size_t i = 0; i < x.size(); ++i) dot += x[i] * other[i];
    CHECK(std::abs(dot) < 5 * norm(x) * norm(other) / std::sqrt(static_cast<double>(x.size())));
  }
  // With more rows, more layers or other mechanisms, existing elements stay the same.
  const std::vector<double> embedding = initial(c, "model.embed_tokens.weight");
  c.vocab = 900;
  c.layers = 5;
  c.attention.prior = prior("bam");
  const std::vector<double> larger = initial(c, "model.embed_tokens.weight");
  CHECK(std::equal(embedding.begin(), embedding.end(), larger.begin()));
  CHECK(initial(c, name, 1) == x);
}

TEST_CASE("fp32 values are the fp64 ones rounded, whatever the number of threads") {
  for (InitKind init : {InitKind::gpt2, InitKind::torch, InitKind::lecun}) {
    const ModelConfig c = config(init);
    for (const char* name :
         {"model.embed_tokens.weight", "lm_head.weight", "model.embed_positions.weight"}) {
      std::vector<double> truth = initial(c, name);
      for (double& x : truth) x = rounded(x, Dtype::f32);
      for (int threads : {1, 2, 3, 4}) {
        const Threads limit(threads);
        check_equal(initial(c, name, 1, Dtype::f32), truth);
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::testing
