// Whole models in fp64: compares the loss gradient with central differences, for every parameter
// tensor, over the mechanisms and shapes that a config can choose.

#include "differences.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "core/ignore_index.h"
#include "core/rng.h"
#include "mixes/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "thinned.h"

namespace bamtrain::testing {

void check_differences(const ModelConfig& config, const Batch& batch, int64_t entries,
                       int64_t trained_T, double h) {
  INFO(describe(config) << ", T " << batch.T);
  const Threads one(1);  // thousands of tiny passes
  Run run(config, Dtype::f64, batch.B, batch.T, ModelUse::training, trained_T);
  const double loss = run.differentiate(batch);
  CHECK(std::abs(run.loss(batch) - loss) <= 1e-13 * loss);
  for (const Parameter& p : run.parameters()) {
    const std::vector<double> g = run.gradient(p.name);
    double largest = 0;
    for (double x : g) largest = std::max(largest, std::abs(x));
    if (!p.trained) {
      INFO(p.name << " is not trained");
      CHECK(largest == 0);
      continue;
    }
    // Of matrices that multiply activations or sinusoids, (H, C) or (H D, C), two of each row.
    constexpr int64_t kOfRow = 2, kLarge = 200;
    const bool own = p.group == ParameterGroup::prior || p.group == ParameterGroup::scale;
    const bool sampled = own && (p.gate || p.size > kLarge) && !long_tests();
    const bool all = own && !sampled;
    const Rng pick(7, sampled ? describe(config) + p.name : p.name);
    const int64_t columns = p.size / p.shape[0];
    const int64_t some = sampled ? kOfRow * p.shape[0] : std::min(entries, p.size);
    for (int64_t e = 0; e < (all ? p.size : some); ++e) {
      // The first entry has the largest gradient, since tokens that do not occur have none.
      int64_t i = e;
      if (!all && e == 0) {
        i = std::max_element(g.begin(), g.end(),
                             [](double a, double b) { return std::abs(a) < std::abs(b); }) -
            g.begin();
      } else if (sampled) {
        i = e % p.shape[0] * columns +
            static_cast<int64_t>(
                pick.below(static_cast<uint64_t>(e), static_cast<uint64_t>(columns)));
      } else if (!all) {
        i = static_cast<int64_t>(pick.below(static_cast<uint64_t>(e), g.size()));
      }
      run.move(p, i, h);
      const double above = run.loss(batch);
      run.move(p, i, -2 * h);
      const double below = run.loss(batch);
      run.move(p, i, h);
      const double difference = (above - below) / (2 * h);
      INFO(p.name << "[" << i << "]: difference " << difference << ", gradient "
                  << g[static_cast<size_t>(i)]);
      CHECK(std::abs(difference - g[static_cast<size_t>(i)]) <= 1e-6 * largest + 2e-9);
    }
  }
}

namespace {

/// Varies the other choices of a model with n.
void vary(ModelConfig& c, size_t n) {
  constexpr MlpKind kMlps[] = {MlpKind::swiglu, MlpKind::geglu, MlpKind::gelu};
  constexpr int64_t kKeyHeads[] = {2, 4, 1};
  c.mlp.kind = kMlps[n % 3];
  c.kv_heads = kKeyHeads[n / 2 % 3];
  c.norm.kind = n % 2 ? NormKind::layernorm : NormKind::rmsnorm;
  c.tied = n / 2 % 2 == 1;
  c.bias = n / 3 % 2 == 1;
  c.attention.document_mask = n % 4 != 0;
  c.attention.window = n % 5 == 2 ? 7 : 0;
}

/// Norms in every position, head sizes that need not add up to the width, and scaled embeddings.
std::vector<ModelConfig> other_blocks() {
  std::vector<ModelConfig> all;
  for (NormPosition position : {NormPosition::pre, NormPosition::post, NormPosition::both}) {
    for (size_t n = 0; n < 6; ++n) {
      ModelConfig c = small_config();
      vary(c, n);
      c.layers = 1 + static_cast<int64_t>(n) % 3;
      c.norm_position = position;
      c.attention.prior = prior(n % 3 == 0 ? "rope" : n % 3 == 1 ? "learned" : "cable");
      c.attention.scale = scale(n % 2 ? "adaptive" : "none");
      c.embed_scale = n % 2 == 0;
      if (n % 3 == 0) {
        c.width = 22;
        c.own_head_dim = 4 + 2 * (n / 3);
      }
      if (n % 3 == 2) c.mlp.kind = n == 2 ? MlpKind::relu : MlpKind::gelu_erf;
      all.push_back(c);
    }
  }
  return all;
}

TEST_CASE(
    "norms anywhere, heads of any width, scaled embeddings: gradients agree with differences") {
  for (const ModelConfig& c : other_blocks()) check_differences(c, random_batch(2, 19, c.vocab));
}

TEST_CASE("biases by part, a head of classes: gradients of whole models agree with differences") {
  size_t n = 0;
  for (const auto& [name, part] : kBiasPartNames) {
    for (const int64_t classes : {0, 2, 9}) {
      ModelConfig c = small_config();
      vary(c, n++);
      c.norm.kind = NormKind::layernorm;
      c.norm_position = n % 2 ? NormPosition::post : NormPosition::pre;
      if (n % 3 == 1) c.mlp.kind = MlpKind::relu;
      c.bias = BiasParts();
      c.bias.*part = true;
      c.bias.head |= n % 2 == 0;
      c.tied = c.tied && classes == 0;
      c.classes = classes;
      c.attention.prior = prior(n % 2 ? "cable" : "alibi");  // with gates next to q, k and v
      const Batch batch = random_batch(2, 19, c.vocab);
      check_differences(c, classes > 0 ? with_classes(batch, classes) : batch);
    }
  }
}

TEST_CASE("every prior with every scale: gradients of whole models agree with differences") {
  size_t n = 0;
  for (const PriorInfo& p : all_priors()) {
    for (const ScaleInfo& s : all_scales()) {
      if (s.is<AdaptiveKind>() || s.evaluation_only) continue;  // tested below; no gradient
      for (int variation = 0; variation < 2; ++variation, ++n) {
        if (!is_run(n / 2, static_cast<size_t>(variation), 2)) continue;
        ModelConfig c = small_config();
        c.attention.prior = prior(p.name);
        c.attention.scale = scale(s.name);
        vary(c, n);
        check_differences(c, random_batch(2, 19, c.vocab));
      }
    }
  }
}

TEST_CASE("every prior with the adaptive scale: gradients of whole models agree with differences") {
  size_t n = 0;
  for (const PriorInfo& p : all_priors()) {
    for (bool bias : {false, true}) {
      ModelConfig c = small_config();
      c.attention.prior = prior(p.name);
      c.attention.scale =
          scale("adaptive", {{"bias", bias},
                             {"scale_bias", std::string(n % 3 == 1 ? "true" : "false")},
                             {"delta", n % 2 ? 1.0 : 0.3}});
      vary(c, n++);
      check_differences(c, random_batch(2, 19, c.vocab));
    }
  }
}

TEST_CASE(
    "every base of a mix with every scale: gradients of whole models agree with differences") {
  size_t n = 0, row = 0;
  for (const MixInfo& mix : all_mixes()) {
    for (const std::string& base : mix.bases) {
      ++row;
      for (const ScaleInfo& s : all_scales()) {
        if (s.evaluation_only) continue;
        ModelConfig c = small_config();
        const char* variants[] = {"concat_residual", "concat", "add_residual"};
        c.attention.prior = mixed(mix.name, prior(base),
                                  {{"variant", std::string(variants[n % 3])}, {"hidden", 4.0}});
        c.attention.scale = scale(s.name);
        vary(c, n++);
        if (!is_run(row, n, 2)) continue;
        check_differences(c, random_batch(2, 11, c.vocab), 2, 0, 1e-6);
      }
    }
  }
}

TEST_CASE("every content scale: gradients of whole models agree with differences") {
  size_t n = 0;
  for (const PriorInfo& p : all_priors()) {
    if (!p.is<SumsFamily>()) continue;
    for (const char* content : {"1", "1/sqrt(C)"}) {
      for (const char* scale_name : {"none", "sentmax"}) {
        ModelConfig c = small_config();
        c.attention.prior = prior(p.name, {{"content_scale", std::string(content)}});
        c.attention.scale = scale(scale_name);
        if (n % 4 == 1) c.attention.scale.options.set("scale_bias", std::string("true"));
        vary(c, n++);
        check_differences(c, random_batch(2, 19, c.vocab));
      }
    }
  }
  CHECK(n == 8);
}

TEST_CASE("layers of different priors: gradients of whole models agree with differences") {
  size_t n = 0, row = 0;
  for (const std::vector<std::string>& list :
       {std::vector<std::string>{"rope_local", "nope", "bam"},
        {"cable", "alibi"},
        {"fire", "rope", "kcable", "nape"},
        {"t5", "kcable", "cable", "t5"},
        {"transformer_xl", "cope", "alibi", "transformer_xl"}}) {
    ++row;
    size_t column = 0;
    for (const ScaleInfo& s : all_scales()) {
      if (s.evaluation_only) continue;
      ModelConfig c = small_config();
      c.layers = static_cast<int64_t>(list.size());
      c.attention.prior = priors(list);
      c.attention.scale = scale(s.name);
      vary(c, n++);
      if (!is_run(row, column++, 3)) continue;
      // A shorter training length, so that rope_local's window ends within the sequence.
      const int64_t trained = s.name == "by_length" ? 0 : 5;
      check_differences(c, random_batch(2, 19, c.vocab), 1, trained);
    }
  }
}

TEST_CASE("keys on both sides, of every prior: gradients of whole models agree with differences") {
  size_t n = 0;
  for (const PriorInfo& p : all_priors()) {
    if (p.causal_only) continue;
    for (const char* name : {n % 3 == 0 ? "none" : "ssmax", "adaptive"}) {
      ModelConfig c = small_config();
      c.attention.prior = prior(p.name);
      c.attention.scale = scale(name);
      vary(c, n++);
      c.attention.causal = false;
      Batch batch = random_batch(2, 17, c.vocab);
      if (n % 2 == 0) batch.set_lengths({17, 11});
      check_differences(c, batch, 2);
    }
  }
}

TEST_CASE("keys on both sides, of every base of a mix: gradients agree with differences") {
  size_t n = 0;
  for (const MixInfo& mix : all_mixes()) {
    for (const std::string& base : mix.bases) {
      ModelConfig c = small_config();
      c.attention.prior = mixed(mix.name, prior(base), {{"hidden", 4.0}});
      c.attention.scale = scale(n % 2 == 0 ? "ssmax" : "none");
      vary(c, n++);
      c.attention.causal = false;
      Batch batch = random_batch(2, 11, c.vocab);
      if (n % 2 == 0) batch.set_lengths({11, 7});
      check_differences(c, batch, 2, 0, 1e-6);
    }
  }
}

TEST_CASE("targets that count for nothing: gradients of whole models agree with differences") {
  for (const char* name : {"bam", "rope", "cable"}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(name);
    Batch batch = random_batch(2, 19, c.vocab);
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      if (i % 4 != 1) batch.targets[i] = kIgnoreIndex;
    }
    check_differences(c, batch);
  }
}

TEST_CASE("lengths past a tile: gradients of whole models agree with differences") {
  for (const char* name : {"bam", "rope", "learned"}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(name);
    c.attention.scale = scale("ssmax");
    c.attention.document_mask = true;
    check_differences(c, random_batch(2, 65, c.vocab), 2);
  }
}

TEST_CASE("every subset of bam's parameters, shared or not, is trained and no other") {
  const char* names[] = {"theta_alpha", "theta_beta", "theta_mu"};
  for (unsigned subset = 0; subset < 8; ++subset) {
    for (bool share : {false, true}) {
      StringList train;
      for (unsigned i = 0; i < 3; ++i) {
        if (subset >> i & 1) train.push_back(names[i]);
      }
      ModelConfig c = small_config();
      c.attention.prior = prior("bam", {{"train", train}, {"share", share}});
      c.attention.scale = scale(share ? "none" : "ssmax");
      c.attention.document_mask = true;
      const Batch batch = random_batch(2, 19, c.vocab);
      check_differences(c, batch, 1);
      // The trained ones have gradients.
      Run run(c, Dtype::f64, 2, 19);
      run.differentiate(batch);
      for (const std::string& name : train) {
        const std::string path = share ? "model." : "model.layers.1.self_attn.";
        CHECK(norm(run.gradient(path + "prior." + name)) > 1e-5);
      }
    }
  }
}

TEST_CASE("the scale on content or on both, with and without offset, differentiates") {
  for (const char* bias : {"true", "false"}) {
    for (double offset : {0.0, 1.0}) {
      for (const char* name : {"alibi", "bam"}) {
        ModelConfig c = small_config();
        c.attention.prior = prior(name);
        c.attention.scale = scale("ssmax", {{"scale_bias", std::string(bias)}, {"offset", offset}});
        c.attention.document_mask = true;
        c.attention.window = 6;
        check_differences(c, random_batch(2, 19, c.vocab), 1);
      }
    }
  }
}

TEST_CASE("a vocabulary whose logits are formed in chunks differentiates") {
  ModelConfig c = small_config();
  c.vocab = 60000;
  c.width = 8;
  c.heads = c.kv_heads = 1;
  c.layers = 1;
  c.mlp.hidden = 4;
  // 64 MiB of logits are 256 of these rows.
  const Batch batch = random_batch(1, 330, c.vocab);
  check_differences(c, batch, 1);
  Run run(c, Dtype::f64, 1, 330);
  const std::vector<double> z = run.logits(batch);
  double sum = 0;
  for (size_t r = 0; r < 330; ++r) {
    const double* row = z.data() + r * 60000;
    double total = 0;
    for (size_t v = 0; v < 60000; ++v) total += std::exp(row[v]);
    sum += std::log(total) - row[batch.targets[r]];
  }
  CHECK(run.loss(batch) == Approx(sum / 330).epsilon(1e-12));
}

}  // namespace
}  // namespace bamtrain::testing
