// config.json: which models are Llamas, and what is written for each kind.

#include "model/huggingface_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"
#include "model/build.h"
#include "model/model_config.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain {
namespace {

using OrderedJson = nlohmann::ordered_json;
using testing::normalizer;
using testing::prior;
using testing::scale;

constexpr int64_t kTrained = 48;

ModelConfig model(const PriorConfig& p, const ScaleChoice& s = scale("none")) {
  ModelConfig c;
  c.vocab = 101;
  c.width = 64;
  c.layers = 4;
  c.heads = 8;
  c.kv_heads = 2;
  c.mlp.hidden = 96;
  c.norm.eps = 1e-6;
  c.attention.prior = p;
  c.attention.scale = s;
  return c;
}

OrderedJson config_of(const ModelConfig& c, const SpecialTokens& tokens = {3, 4, 5}) {
  return huggingface_config(c, kTrained, Dtype::f32, tokens);
}

}  // namespace

TEST_CASE("learned positions with LayerNorm, biases and no gate are GPT-2; every other part not") {
  ModelConfig gpt2 = model(prior("learned", {{"positions", 60.0}}));
  gpt2.kv_heads = 8;
  gpt2.bias = true;
  gpt2.norm.kind = NormKind::layernorm;
  gpt2.mlp.kind = MlpKind::gelu;
  REQUIRE(is_gpt2(gpt2, kTrained));
  CHECK_FALSE(is_llama(gpt2, kTrained));
  OrderedJson expected = OrderedJson::parse(R"({
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 101,
    "n_positions": 60, "n_embd": 64, "n_layer": 4, "n_head": 8, "n_inner": 96,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-06, "resid_pdrop": 0.0,
    "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": false, "bos_token_id": 3,
    "eos_token_id": 4, "torch_dtype": "float32"})");
  CHECK(config_of(gpt2).dump() == expected.dump());
  ModelConfig c = gpt2;
  c.tied = c.attention.document_mask = true;
  CHECK(is_gpt2(c, kTrained));
  for (const auto& [kind, name] :
       {std::pair(MlpKind::gelu_erf, "gelu"), std::pair(MlpKind::relu, "relu")}) {
    c.mlp.kind = kind;
    CHECK(config_of(c)["activation_function"] == name);
  }
  const auto other = [&](auto&& change) {
    ModelConfig changed = gpt2;
    change(changed);
    return !is_gpt2(changed, kTrained) && config_of(changed)["model_type"] == "bamtrain";
  };
  CHECK(other([](ModelConfig& m) { m.norm.kind = NormKind::rmsnorm; }));
  CHECK(other([](ModelConfig& m) { m.bias = false; }));
  CHECK(other([](ModelConfig& m) { m.mlp.kind = MlpKind::geglu; }));
  CHECK(other([](ModelConfig& m) { m.kv_heads = 2; }));
  CHECK(other([](ModelConfig& m) { m.norm_position = NormPosition::post; }));
  CHECK(other([](ModelConfig& m) { m.embed_scale = true; }));
  CHECK(other([](ModelConfig& m) { m.attention.window = 7; }));
  CHECK(other([](ModelConfig& m) { m.attention.prior = prior("sinusoidal"); }));
  CHECK(other([](ModelConfig& m) { m.attention.scale = scale("ssmax"); }));
  CHECK(other([](ModelConfig& m) { m.attention.normalizer = normalizer("entmax"); }));
}

TEST_CASE("rope with RMSNorm and SwiGLU is a Llama; every other part makes it none") {
  const ModelConfig rope = model(prior("rope"));
  CHECK(is_llama(rope, kTrained));
  ModelConfig c = rope;
  c.bias = c.tied = c.attention.document_mask = true;
  c.kv_heads = 8;
  CHECK(is_llama(c, kTrained));
  CHECK(is_llama(model(PriorConfig({prior("rope"), prior("rope")})), kTrained));
  for (const char* scaling : {"linear", "ntk", "yarn", "llama3"}) {
    CHECK(is_llama(model(prior("rope", {{"scaling", std::string(scaling)}, {"factor", 4.0}})),
                   kTrained));
  }

  c = rope;
  c.norm.kind = NormKind::layernorm;
  CHECK_FALSE(is_llama(c, kTrained));
  c = rope;
  c.mlp.kind = MlpKind::geglu;
  CHECK_FALSE(is_llama(c, kTrained));
  c = rope;
  c.attention.window = 9;
  CHECK_FALSE(is_llama(c, kTrained));
  c = rope;
  c.embed_scale = true;
  CHECK_FALSE(is_llama(c, kTrained));
  for (NormPosition position : {NormPosition::post, NormPosition::both}) {
    c = rope;
    c.norm_position = position;
    CHECK_FALSE(is_llama(c, kTrained));
  }
  CHECK_FALSE(
      is_llama(model(PriorConfig({prior("rope"), prior("rope", {{"theta", 2e4}})})), kTrained));
  for (const PriorInfo& p : all_priors()) {
    if (p.name != "rope") CHECK_FALSE(is_llama(model(prior(p.name)), kTrained));
  }
  for (const ScaleInfo& s : all_scales()) {
    if (s.name != "none") CHECK_FALSE(is_llama(model(prior("rope"), scale(s.name)), kTrained));
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    c = rope;
    c.attention.normalizer = normalizer(n.name);
    CHECK(is_llama(c, kTrained) == (n.name == "softmax"));
  }
}

TEST_CASE("a Llama's config.json is complete and holds nothing of bamtrain's") {
  ModelConfig c = model(prior("rope", {{"theta", 1e4}}));
  c.bias = c.tied = true;
  const OrderedJson expected = OrderedJson::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 101,
    "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 8, "intermediate_size": 96, "hidden_act": "silu", "rms_norm_eps": 1e-6,
    "attention_bias": true, "mlp_bias": true, "rope_theta": 10000.0, "rope_scaling": null,
    "max_position_embeddings": 48, "tie_word_embeddings": true, "bos_token_id": 3,
    "eos_token_id": 4, "torch_dtype": "float32"})");
  CHECK(config_of(c) == expected);
  c.own_head_dim = 6;
  CHECK(is_llama(c, kTrained));
  CHECK(config_of(c)["head_dim"] == 6);
  c.own_head_dim = 0;
  CHECK(huggingface_config(c, kTrained, Dtype::bf16, {})["torch_dtype"] == "bfloat16");
  CHECK(huggingface_config(c, kTrained, Dtype::f32, {})["bos_token_id"].is_null());
}

TEST_CASE("rope's scaling is written in transformers' terms") {
  const auto written = [](const std::string& scaling) {
    const OrderedJson j =
        config_of(model(prior("rope", {{"theta", 1e4}, {"scaling", scaling}, {"factor", 4.0}})));
    CHECK(j["max_position_embeddings"] == 4 * kTrained);
    return OrderedJson{{"theta", j["rope_theta"]}, {"scaling", j["rope_scaling"]}};
  };
  CHECK(written("linear") ==
        OrderedJson::parse(R"({"theta": 1e4, "scaling": {"rope_type": "linear", "factor": 4.0}})"));
  CHECK(written("llama3") == OrderedJson::parse(R"({"theta": 1e4, "scaling": {
      "rope_type": "llama3", "factor": 4.0, "original_max_position_embeddings": 48,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0}})"));
  const OrderedJson yarn = written("yarn")["scaling"];
  CHECK(yarn["rope_type"] == "yarn");
  CHECK(yarn["original_max_position_embeddings"] == kTrained);
  CHECK(yarn["attention_factor"].get<double>() == Approx(1.1386294361).epsilon(1e-9));
  CHECK((yarn["beta_fast"] == 32 && yarn["beta_slow"] == 1));
  // ntk is equivalent to this base: 10,000 * 4^(8/6).
  const OrderedJson ntk = written("ntk");
  CHECK(ntk["scaling"].is_null());
  CHECK(ntk["theta"].get<double>() == Approx(63496.042078728).epsilon(1e-10));
  CHECK(config_of(model(prior("rope", {{"randomized", true}})))["max_position_embeddings"] ==
        4 * kTrained);
}

namespace {

/// yarn as transformers computes it from a Llama's config.json: with the member's factor, or with
/// the factor of positions, as in transformers 4.52.
struct Yarn {
  std::vector<double> frequencies;
  double amplitude = 0;

  Yarn(const OrderedJson& config, bool by_positions) {
    const OrderedJson& s = config["rope_scaling"];
    const auto D = config["head_dim"].get<double>(), theta = config["rope_theta"].get<double>();
    const auto original = s["original_max_position_embeddings"].get<double>();
    const double factor = by_positions ? config["max_position_embeddings"].get<double>() / original
                                       : s["factor"].get<double>();
    const auto dimension = [&](double rotations) {
      return D * std::log(original / (rotations * 2 * M_PI)) / (2 * std::log(theta));
    };
    const double low = std::max(std::floor(dimension(s["beta_fast"])), 0.0);
    double high = std::min(std::ceil(dimension(s["beta_slow"])), D - 1);
    if (low == high) high += 0.001;
    for (double pair = 0; pair < D / 2; ++pair) {
      const double turned = std::pow(theta, 2 * pair / D);
      const double kept = 1 - std::min(std::max((pair - low) / (high - low), 0.0), 1.0);
      frequencies.push_back((1 - kept) / (factor * turned) + kept / turned);
    }
    amplitude = s["attention_factor"].get<double>();
  }
};

}  // namespace

TEST_CASE(
    "transformers computes yarn of a Llama's config as the model does, however long it trained") {
  struct Case {
    int64_t T;
    double original, factor;
    bool randomized;
  };
  for (const Case& k : {Case{48, 0, 4, false}, Case{128, 32, 2, false}, Case{4096, 512, 4, false},
                        Case{64, 512, 2.5, false}, Case{64, 48, 4.0 / 3, false},
                        Case{64, 0, 2, true}, Case{300, 40, 1.1, true}}) {
    INFO(k.T << " " << k.original << " " << k.factor << " " << k.randomized);
    for (const double theta : {100.0, 1e4}) {
      ModelConfig c = model(prior("rope", {{"theta", theta},
                                           {"scaling", std::string("yarn")},
                                           {"factor", k.factor},
                                           {"original_length", k.original},
                                           {"randomized", k.randomized}}));
      c.own_head_dim = 32;
      REQUIRE(is_llama(c, k.T));
      const OrderedJson config = huggingface_config(c, k.T, Dtype::f32, {});
      const PriorChoice& rope = c.attention.prior.of(0);
      const RotaryFamily& family = *rope.info().as<RotaryFamily>();
      const std::vector<double> ours = family.inverse_frequencies(rope.options, 32, k.T);
      for (const bool by_positions : {false, true}) {
        const Yarn theirs(config, by_positions);
        REQUIRE(theirs.frequencies.size() == ours.size());
        for (size_t i = 0; i < ours.size(); ++i) {
          CHECK(theirs.frequencies[i] == Approx(ours[i]).epsilon(1e-12));
        }
        CHECK(theirs.amplitude == Approx(family.amplitude(rope.options)).epsilon(1e-12));
      }
    }
  }
  // A factor of 1.3 would give 62.4 positions.
  const ModelConfig c = model(prior("rope", {{"scaling", std::string("yarn")}, {"factor", 1.3}}));
  CHECK_FALSE(is_llama(c, kTrained));
  const OrderedJson own = config_of(c);
  CHECK(own["model_type"] == "bamtrain");
  CHECK((own["priors"][0]["factor"] == 1.3 && own["priors"][0]["original_length"] == kTrained));
}

TEST_CASE("any other model brings its code, with derived numbers written out") {
  ModelConfig c =
      model(PriorConfig({prior("bam"), prior("rope_local"), prior("fire"), prior("alibi")}),
            scale("ssmax", {{"offset", 1.0}}));
  c.attention.document_mask = true;
  c.norm.kind = NormKind::layernorm;
  c.mlp.kind = MlpKind::gelu;
  const OrderedJson j = config_of(c);
  CHECK(j["architectures"] == OrderedJson{"BamtrainForCausalLM"});
  CHECK(j["auto_map"]["AutoModelForCausalLM"] == "modeling_bamtrain.BamtrainForCausalLM");
  CHECK(j["auto_map"]["AutoConfig"] == "configuration_bamtrain.BamtrainConfig");
  CHECK(j["model_type"] == "bamtrain");
  CHECK((j["mlp"] == "gelu" && j["norm"] == "layernorm" && j["norm_eps"] == 1e-6));
  CHECK((j["norm_position"] == "pre" && j["embed_scale"] == false && j["head_dim"] == 8));
  CHECK(j["document_start"] == 5);
  CHECK(j["max_position_embeddings"] == kTrained);
  REQUIRE(j["priors"].size() == 4);
  const std::vector<std::string> names = {"bam", "rope_local", "fire", "alibi"};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(j["priors"][i]["name"] == names[i]);
    CHECK(j["priors"][i]["window"] == (i == 1 ? kTrained + 1 : 0));
    CHECK(j["priors"][i]["scale_bias"] == (i == 0));  // ssmax: true with bam
  }
  CHECK(j["priors"][1]["theta"] == 1e4);
  CHECK(j["priors"][2]["threshold_length"] == kTrained);
  CHECK(j["scale"] ==
        OrderedJson::parse(R"({"name": "ssmax", "decay": false, "delta": 0.0, "init": 1.0,
                                      "init_std": 0.0, "offset": 1.0, "parameters": {"s": [8]}})"));
  CHECK(j["priors"][0]["parameters"] ==
        OrderedJson::parse(R"({"theta_alpha": [8], "theta_beta": [8], "theta_mu": [8]})"));
  CHECK(j["priors"][2]["parameters"]["w2"] == OrderedJson{8, 32});
  CHECK_FALSE(j["priors"][3].contains("parameters"));
  CHECK(j["normalizer"] == OrderedJson{{"name", "softmax"}});
  c.attention.document_mask = false;
  CHECK(config_of(c)["document_start"].is_null());
}

TEST_CASE("the normalizer is written with its options, a word of one as the word") {
  ModelConfig c = model(prior("bam"));
  const auto written = [&c](const NormalizerChoice& n) {
    c.attention.normalizer = n;
    return config_of(c)["normalizer"];
  };
  CHECK(written(normalizer("softmax")) == OrderedJson{{"name", "softmax"}});
  CHECK(written(normalizer("entmax", {{"alpha", 1.75}, {"learned", true}})) ==
        OrderedJson::parse(R"({
      "name": "entmax", "alpha": 1.75, "decay": false, "learned": true,
      "parameters": {"alpha": [8]}})"));
  CHECK(written(normalizer("topk")) ==
        OrderedJson::parse(R"({"name": "topk", "k": 32, "of": "row"})"));
  CHECK(written(normalizer("topk", {{"k", 0.0}, {"of", std::string("sequence")}})) ==
        OrderedJson::parse(R"({"name": "topk", "k": "n/2", "of": "sequence"})"));
  CHECK(written(normalizer("stick_breaking")) == OrderedJson{{"name", "stick_breaking"}});
}

TEST_CASE("the block is written out, its activation in transformers' terms") {
  ModelConfig c = model(prior("rope"));
  c.norm_position = NormPosition::both;
  c.embed_scale = true;
  const auto written = [&c](MlpKind kind, const char* mlp, const char* hidden_act) {
    c.mlp.kind = kind;
    const OrderedJson j = config_of(c);
    CHECK((j["mlp"] == mlp && j["hidden_act"] == hidden_act));
    CHECK((j["norm_position"] == "both" && j["embed_scale"] == true));
  };
  written(MlpKind::swiglu, "swiglu", "silu");
  written(MlpKind::geglu, "geglu", "gelu_pytorch_tanh");
  written(MlpKind::gelu, "gelu", "gelu_pytorch_tanh");
  written(MlpKind::gelu_erf, "gelu_erf", "gelu");
  written(MlpKind::relu, "relu", "relu");
  c.norm_position = NormPosition::post;
  CHECK(config_of(c)["norm_position"] == "post");
}

TEST_CASE("tables have their lengths, windows are those of the layers") {
  ModelConfig c = model(prior("learned"), scale("by_length"));
  c.attention.window = 7;
  OrderedJson j = config_of(c);
  CHECK(j["priors"][0]["positions"] == kTrained);
  CHECK(j["scale"]["lengths"] == kTrained);
  CHECK(j["priors"][0]["window"] == 7);
  c = model(prior("learned", {{"positions", 99.0}}), scale("by_length", {{"lengths", 77.0}}));
  j = config_of(c);
  CHECK(j["priors"][0]["positions"] == 99);
  CHECK_FALSE(j["priors"][0].contains("parameters"));  // the table is a weight of the model
  CHECK(j["scale"]["lengths"] == 77);
  for (const ScaleInfo& s : all_scales()) {
    const OrderedJson of = config_of(model(prior("bam"), scale(s.name)));
    CHECK(of["scale"]["name"] == s.name);
    CHECK(of["priors"][0]["scale_bias"] == (s.name == "ssmax" || s.name == "entropy"));
  }
}

}  // namespace bamtrain
