// config.json in a folder of weights: differences from the run's model are refused or reported.

#include "run/init_from_settings.h"

#include <cstdlib>
#include <fstream>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "mixes/registry.h"
#include "model/huggingface_config.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::json;

namespace {

using Values = std::map<std::string, OptionValue>;

PriorChoice prior(const std::string& name, const Values& set = {}) {
  PriorChoice m(*find_prior(name));
  for (const auto& [option, value] : set) m.options.set(option, value);
  return m;
}

ScaleChoice scale(const std::string& name, const Values& set = {}) {
  ScaleChoice m(*find_scale(name));
  for (const auto& [option, value] : set) m.options.set(option, value);
  return m;
}

NormalizerChoice normalizer(const std::string& name, const Values& set = {}) {
  NormalizerChoice m(*find_normalizer(name));
  for (const auto& [option, value] : set) m.options.set(option, value);
  return m;
}

/// A run that starts from a folder with a config.json, and the warnings about it.
class FromFolder {
 public:
  FromFolder() {
    c.init_from.folder = w_.path(".");
    c.data.sequence_length = 48;
    ModelConfig& m = c.model;
    m.width = 64;
    m.layers = 4;
    m.heads = m.kv_heads = 4;
    m.norm.eps = 1e-5;
    m.attention.prior = prior("rope", {{"theta", 1e4}});
    m.attention.scale = scale("none");
  }

  std::vector<std::string> told(const json& folder, NewParts parts = {}) const {
    std::ofstream(w_.path("config.json")) << folder.dump();
    std::vector<std::string> out;
    check_init_from_settings(c, parts, [&](const std::string& text) {
      const std::string place = w_.path("./config.json: ");
      REQUIRE(text.starts_with(place));
      out.push_back(text.substr(place.size()));
    });
    return out;
  }

  /// The only warning.
  std::string one(const json& folder, NewParts parts = {}) const {
    const std::vector<std::string> all = told(folder, parts);
    INFO(folder.dump());
    for (const std::string& text : all) UNSCOPED_INFO(text);
    CHECK(all.size() == 1);
    return all.empty() ? "" : all[0];
  }

  /// The exported config.json of `m`.
  json exported(const ModelConfig& m) const {
    return huggingface_config(m, c.data.sequence_length, Dtype::f32, {3, 4, 5});
  }

  RunConfig c;

 private:
  Workplace w_;
};

json llama() {
  return {{"model_type", "llama"}, {"num_attention_heads", 4}, {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-5},  {"rope_theta", 10000},      {"rope_scaling", nullptr}};
}

std::string refusal(const FromFolder& f, const json& folder) {
  return error_of(ExitCode::checkpoint, [&] { f.told(folder); });
}

}  // namespace

TEST_CASE("of a folder with the run's own model, or without a word about it, nothing is told") {
  FromFolder f;
  CHECK(f.told(llama()).empty());
  for (const PriorInfo& p : all_priors()) {
    for (const ScaleInfo& s : all_scales()) {
      f.c.model.attention.prior = prior(p.name);
      f.c.model.attention.scale = scale(s.name);
      INFO(p.name << " and " << s.name);
      CHECK(f.told(f.exported(f.c.model)).empty());
    }
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    f.c.model.attention.normalizer = normalizer(n.name);
    INFO(n.name);
    CHECK(f.told(f.exported(f.c.model)).empty());
  }
  f.c.model.attention.normalizer = normalizer("softmax");
  for (const char* scaling : {"linear", "ntk", "yarn", "llama3"}) {
    f.c.model.attention.prior = prior("rope", {{"scaling", std::string(scaling)}, {"factor", 4.0}});
    f.c.model.attention.scale = scale("none");
    CHECK(f.told(f.exported(f.c.model)).empty());
  }
  FromFolder layers;
  ModelConfig& m = layers.c.model;
  m.attention.prior =
      PriorConfig({prior("bam"), prior("rope_local"), prior("fire"), prior("nape")});
  m.attention.scale = scale("ssmax");
  m.attention.window = 7;
  m.attention.document_mask = true;
  layers.c.data.document_start = 5;
  m.norm.kind = NormKind::layernorm;
  m.mlp.kind = MlpKind::gelu;
  CHECK(layers.told(layers.exported(m)).empty());
}

TEST_CASE("a folder that says nothing of its model is told of, but for a checkpoint") {
  const Workplace w;
  RunConfig c;
  c.init_from.folder = w.path(".");
  std::vector<std::string> out;
  const auto warn = [&out](const std::string& text) { out.push_back(text); };
  check_init_from_settings(c, {}, warn);
  REQUIRE(out.size() == 1);
  CHECK(out[0].starts_with(w.path("./config.json: no such file, so what shapes do not show")));
  std::ofstream(w.path("state.json")) << "{}";
  check_init_from_settings(c, {}, warn);
  CHECK(out.size() == 1);
}

TEST_CASE("another kind of norm is refused, which without biases has the same tensors") {
  FromFolder f;
  f.c.model.norm.kind = NormKind::layernorm;
  CHECK(refusal(f, llama()).find("config.json: rms_norm_eps: expected the eps of a layernorm") !=
        std::string::npos);
  CHECK(
      refusal(f, {{"norm", "rmsnorm"}})
          .find(
              "config.json: norm: expected \"layernorm\", by model.norm.kind, found \"rmsnorm\"") !=
      std::string::npos);
  f.c.model.norm.kind = NormKind::rmsnorm;
  CHECK(refusal(f, {{"layer_norm_eps", 1e-5}}).find("layer_norm_eps") != std::string::npos);
  CHECK(refusal(f, {{"norm", "layernorm"}}).find("model.norm.kind") != std::string::npos);
}

TEST_CASE("other heads, activations and embeddings are refused, which tensors do not show") {
  FromFolder f;
  json folder = llama();
  folder["head_dim"] = nullptr;
  CHECK(f.told(folder).empty());
  folder["head_dim"] = 16;
  CHECK(f.told(folder).empty());
  folder["head_dim"] = 8;
  CHECK(refusal(f, folder).find("config.json: head_dim: expected 16, by model.head_dim, found 8") !=
        std::string::npos);
  f.c.model.mlp.kind = MlpKind::gelu_erf;
  CHECK(refusal(f, {{"hidden_act", "gelu_pytorch_tanh"}}).find("expected \"gelu\"") !=
        std::string::npos);
  f.c.model.embed_scale = true;
  CHECK(refusal(f, {{"hidden_act", "gelu"}}).find("config.json: embed_scale: expected true") !=
        std::string::npos);
  f.c.model.norm_position = NormPosition::both;
  CHECK(f.told(f.exported(f.c.model)).empty());
}

TEST_CASE("another prior, and an option that its formula reads, are told") {
  FromFolder f;
  ModelConfig other = f.c.model;
  const auto told_of = [&](const PriorChoice& theirs, const PriorChoice& ours) {
    f.c.model.attention.prior = ours;
    other.attention.prior = theirs;
    json folder = f.exported(other);
    if (!folder.contains("priors")) FAIL("a Llama");
    return f.one(folder);
  };
  CHECK(told_of(prior("alibi"), prior("nope")) ==
        "priors[0].name is \"alibi\", but model.attention.prior.name of this run is \"nope\"");
  CHECK(told_of(prior("kerple", {{"kernel", std::string("power")}}), prior("kerple")) ==
        "priors[0].kernel is \"power\", but model.attention.prior.kernel of this run is "
        "\"logarithmic\"");
  CHECK(told_of(prior("nape", {{"slopes", std::string("harmonic")}}), prior("nape"))
            .find("priors[0].slopes is \"harmonic\"") == 0);
  // The folder has the number that an option selects.
  CHECK(told_of(prior("t5"), prior("t5", {{"gain", std::string("sqrt(D)")}})) ==
        "priors[0].gain is 1.0, but model.attention.prior.gain of this run is \"sqrt(D)\"");
  CHECK(told_of(prior("fire", {{"threshold_length", 64.0}}), prior("fire")) ==
        "priors[0].threshold_length is 64, but model.attention.prior.threshold_length of this run "
        "is 48");
  CHECK(told_of(prior("rope_local"), prior("rope_local", {{"window", 9.0}})) ==
        "priors[0].window is 49, but model.attention.prior.window of this run is 9");
  CHECK(told_of(prior("rope_local", {{"theta", 2e4}}), prior("rope_local"))
            .find("priors[0].theta is 20000.0, but model.attention.prior.theta of this run is "
                  "10000.0") == 0);
  // Initialisation options do not matter once parameters are trained.
  f.c.model.attention.prior = prior("bam");
  other.attention.prior =
      prior("bam", {{"init", std::string("laplace")}, {"train", StringList{"theta_mu"}}});
  CHECK(f.told(f.exported(other)).empty());
  // Priors are compared layer by layer.
  f.c.model.attention.prior = PriorConfig({prior("alibi"), prior("nope")});
  other.attention.prior = PriorConfig({prior("alibi"), prior("nape")});
  CHECK(f.one(f.exported(other)) ==
        "priors[1].name is \"nape\", but model.attention.prior[1].name of this run is \"nope\"");
  other.attention.prior = prior("alibi");
  other.attention.window = 9;
  f.c.model.attention.prior = prior("alibi");
  CHECK(f.one(f.exported(other)) ==
        "priors[0].window is 9, but model.attention.window of this run is 0");
}

TEST_CASE("an option that an older folder lacks stands for what it was before") {
  FromFolder f;
  ModelConfig& m = f.c.model;
  const auto exported_without = [&](const char* place, const std::string& option) {
    json folder = f.exported(m);
    json& mechanism = std::string(place) == "scale" ? folder[place] : folder[place].at(0);
    REQUIRE(mechanism.erase(option) == 1);
    return folder;
  };
  m.attention.prior = prior("t5", {{"gain", std::string("sqrt(D)")}});
  CHECK(f.one(exported_without("priors", "gain")) ==
        "priors[0].gain is missing, which means \"1\", but model.attention.prior.gain of this run "
        "is \"sqrt(D)\"");
  CHECK(f.told(exported_without("priors", "init")).empty());  // initialisation does not matter
  CHECK(f.told(exported_without("priors", "gain"), {true, false}).empty());
  m.attention.prior = prior("t5");
  CHECK(f.told(exported_without("priors", "gain")).empty());
  m.attention.prior = prior("sinusoidal", {{"variant", std::string("bam")}});
  CHECK(f.one(exported_without("priors", "variant"))
            .find("priors[0].variant is missing, which means \"pair\"") == 0);
  m.attention.prior = prior("nape", {{"slope_heads", std::string("H")}});
  CHECK(f.one(exported_without("priors", "slope_heads")).find("priors[0].slope_heads is missing") ==
        0);
  m.attention.prior = prior("bam");
  m.attention.scale = scale("ssmax", {{"delta", 1.0}});
  CHECK(f.one(exported_without("scale", "delta")) ==
        "scale.delta is missing, which means 0.0, but model.attention.scale.delta of this run is "
        "1.0");
  CHECK(f.told(exported_without("scale", "delta"), {false, true}).empty());
  m.attention.scale = scale("ssmax");
  CHECK(f.told(exported_without("scale", "delta")).empty());
}

TEST_CASE("what a bamtrain's config.json lacks has the default of the exported code") {
  FromFolder f;
  ModelConfig& m = f.c.model;
  m.attention.prior = prior("bam");
  m.heads = m.kv_heads = 8;
  const auto without = [&](const std::string& member) {
    json folder = f.exported(m);
    REQUIRE(folder.erase(member) == 1);
    return folder;
  };
  const auto of_prior_without = [&](const std::string& member) {
    json folder = f.exported(m);
    REQUIRE(folder["priors"][0].erase(member) == 1);
    return folder;
  };
  CHECK(refusal(f, without("num_attention_heads"))
            .find("config.json: num_attention_heads: expected 8, by model.heads, found no such "
                  "member, which means 12") != std::string::npos);
  m.heads = m.kv_heads = 12;
  m.own_head_dim = 16;
  for (const char* member :
       {"num_attention_heads", "norm", "norm_eps", "mlp", "scale", "document_start"}) {
    INFO(member);
    CHECK(f.told(without(member)).empty());
  }
  for (const char* member : {"window", "scale_bias"}) {
    INFO(member);
    CHECK(f.told(of_prior_without(member)).empty());
  }

  m.norm.kind = NormKind::layernorm;
  CHECK(refusal(f, without("norm"))
            .find("config.json: norm: expected \"layernorm\", by model.norm.kind, found no such "
                  "member, which means \"rmsnorm\"") != std::string::npos);
  m.norm.kind = NormKind::rmsnorm;
  m.norm.eps = 1e-6;
  CHECK(f.one(without("norm_eps")) ==
        "norm_eps is missing, which means 1e-05, but model.norm.eps of this run is 1e-06");
  m.norm.eps = 1e-5;
  m.mlp.kind = MlpKind::geglu;
  CHECK(refusal(f, without("mlp"))
            .find("config.json: mlp: expected \"geglu\", by model.mlp.kind, found no such member, "
                  "which means \"swiglu\"") != std::string::npos);
  m.mlp.kind = MlpKind::swiglu;
  m.attention.window = 9;
  CHECK(f.one(of_prior_without("window")) ==
        "priors[0].window is missing, which means 0, but model.attention.window of this run is 9");
  CHECK(f.one(of_prior_without("window"), {true, true}).find("priors[0].window is missing") == 0);
  m.attention.window = 0;
  m.attention.document_mask = true;
  CHECK(f.one(without("document_start")) ==
        "document_start is missing, which means null, but model.attention.document_mask of this "
        "run is true");
  m.attention.document_mask = false;
  m.attention.scale = scale("ssmax");
  CHECK(f.one(without("scale")) ==
        "scale.name is missing, which means \"none\", but model.attention.scale.name of this run "
        "is \"ssmax\"");
  CHECK(f.one(of_prior_without("scale_bias")) ==
        "priors[0].scale_bias is missing, which means false, but model.attention.scale.scale_bias "
        "of this run is true");
  for (const json& folder : {without("scale"), of_prior_without("scale_bias")}) {
    CHECK(f.told(folder, {false, true}).empty());
  }
  m.attention.prior = prior("fire");
  json older = without("max_position_embeddings");
  older["priors"][0].erase("threshold_length");
  CHECK(f.one(older) ==
        "priors[0].threshold_length is 512, but model.attention.prior.threshold_length of this run "
        "is 48");

  // These defaults are those of the code in an export.
  const char* source = std::getenv("BAMTRAIN_SOURCE");
  REQUIRE(source != nullptr);
  const std::string code =
      read_text(std::string(source) + "/src/export/huggingface/configuration_bamtrain.py");
  for (const char* parameter :
       {"num_attention_heads=12,", "mlp=\"swiglu\",", "norm=\"rmsnorm\",", "norm_eps=1e-5,",
        "embed_scale=False,", "\"window\": 0, \"scale_bias\": False}", "scale=None,",
        "self.scale = scale or {\"name\": \"none\"}", "document_start=None,",
        "max_position_embeddings=512,"}) {
    INFO(parameter);
    CHECK(code.find(parameter) != std::string::npos);
  }
}

TEST_CASE("another scale and its options are told, and whether documents are masked") {
  FromFolder f;
  ModelConfig& m = f.c.model;
  m.attention.prior = prior("bam");
  m.attention.scale = scale("ssmax");
  ModelConfig other = m;
  other.attention.scale = scale("ssmax", {{"offset", 1.0}});
  CHECK(f.one(f.exported(other)) ==
        "scale.offset is 1, but model.attention.scale.offset of this run is 0");
  other.attention.scale = scale("ssmax", {{"scale_bias", std::string("false")}});
  CHECK(f.one(f.exported(other)) ==
        "priors[0].scale_bias is false, but model.attention.scale.scale_bias of this run is true");
  other.attention.scale = scale("ssmax", {{"init", 2.0}, {"init_std", 0.5}});
  CHECK(f.told(f.exported(other)).empty());
  m.attention.scale = scale("none");
  other.attention.scale = scale("constant", {{"t", 2.0}});
  CHECK(f.one(f.exported(other)) ==
        "scale.name is \"constant\", but model.attention.scale.name of this run is \"none\"");
  other = m;
  other.attention.document_mask = true;
  CHECK(f.one(f.exported(other)) ==
        "document_start is 5, but model.attention.document_mask of this run is false");
  m.attention.document_mask = true;
  f.c.data.document_start = 1;
  CHECK(f.one(f.exported(other)) ==
        "document_start is 5, but data.document_start of this run is 1");
  other.attention.document_mask = false;
  CHECK(f.one(f.exported(other)) ==
        "document_start is null, but model.attention.document_mask of this run is true");
}

TEST_CASE("a Llama's rope is compared in all the ways that it is written") {
  FromFolder f;
  const auto set = [](const char* member, const json& value) {
    json folder = llama();
    folder[member] = value;
    return folder;
  };
  CHECK(f.one(set("rope_theta", 5e5)) ==
        "rope_theta is 500000.0, but model.attention.prior.theta of this run is 10000.0");
  CHECK(f.one(set("rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "default"}})) ==
        "rope_parameters.rope_theta is 500000.0, but model.attention.prior.theta of this run is "
        "10000.0");
  for (const char* type : {"rope_type", "type"}) {
    CHECK(f.one(set("rope_scaling", {{type, "linear"}, {"factor", 4}})) ==
          std::string("rope_scaling.") + type +
              " is \"linear\", but model.attention.prior.scaling of this run is \"none\"");
  }
  json folder = llama();
  folder.erase("rope_theta");
  CHECK(f.one(folder) ==
        "it has no rope_theta, but model.attention.prior.theta of this run is 10000.0");

  PriorChoice& rope = f.c.model.attention.prior.pattern[0];
  rope.options.set("scaling", std::string("linear"));
  rope.options.set("factor", 4.0);
  CHECK(f.told(set("rope_scaling", {{"type", "linear"}, {"factor", 4}})).empty());
  CHECK(f.one(set("rope_scaling", {{"type", "linear"}, {"factor", 2}})) ==
        "rope_scaling.factor is 2, but model.attention.prior.factor of this run is 4.0");
  CHECK(f.one(llama()) ==
        "rope_type is \"default\", but model.attention.prior.scaling of this run is \"linear\"");
  rope.options.set("scaling", std::string("llama3"));
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 4.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  CHECK(f.one(set("rope_scaling", llama3)) ==
        "rope_scaling.original_max_position_embeddings is 8192, but "
        "model.attention.prior.original_length of this run is 48");
  rope.options.set("original_length", 8192.0);
  CHECK(f.told(set("rope_scaling", llama3)).empty());
  rope.options.set("original_length", 0.0);
  // ntk is equivalent to this base: 10,000 * 4^(16/14).
  rope.options.set("scaling", std::string("ntk"));
  CHECK(f.told(set("rope_theta", 48760.54616817902)).empty());

  rope = prior("alibi");
  CHECK(f.one(llama()) ==
        "its prior is rope, but model.attention.prior.name of this run is \"alibi\"");
  json mistral = set("model_type", "mistral");
  mistral["sliding_window"] = nullptr;
  CHECK(f.one(mistral) ==
        "its prior is rope, but model.attention.prior.name of this run is \"alibi\"");
  f.c.model.attention.prior = prior("rope");
  mistral.erase("sliding_window");
  CHECK(f.one(mistral) == "sliding_window is 4096, but model.attention.window of this run is 0");
}

TEST_CASE("a Llama has no scale, and no window; a Mistral has one") {
  FromFolder f;
  json folder = llama();
  folder["sliding_window"] = 16;  // transformers does not read it in a Llama
  const std::string not_read = "sliding_window: ignored; a model of type ";
  CHECK(f.one(folder) == not_read + "llama has no such member");
  f.c.model.attention.window = 16;
  CHECK(f.told(folder).size() == 2);
  folder["model_type"] = "mistral";
  CHECK(f.told(folder).empty());
  f.c.model.attention.window = 0;
  CHECK(f.one(folder) == "sliding_window is 16, but model.attention.window of this run is 0");
  f.c.model.attention.window = 16;
  folder["use_sliding_window"] = false;  // or this one in a Mistral
  CHECK(f.one(folder) == "use_" + not_read + "mistral has no such member");
  folder.erase("use_sliding_window");
  f.c.model.attention.scale = scale("constant");
  CHECK(f.one(folder) ==
        "it has no logit scale, but model.attention.scale.name of this run is \"constant\"");
}

TEST_CASE("another normalizer and its options are told; a folder without one is a softmax") {
  FromFolder f;
  ModelConfig& m = f.c.model;
  m.attention.normalizer = normalizer("softmax");
  CHECK(f.told(llama()).empty());
  m.attention.normalizer = normalizer("entmax");
  CHECK(f.one(llama()) ==
        "its normalizer is softmax, but model.attention.normalizer.name of this run is \"entmax\"");
  CHECK(f.told(llama(), {false, false, true}).empty());

  m.attention.prior = prior("bam");
  ModelConfig other = m;
  other.attention.normalizer = normalizer("softmax");
  json folder = f.exported(other);
  CHECK(f.one(folder) ==
        "normalizer.name is \"softmax\", but model.attention.normalizer.name of this run is "
        "\"entmax\"");
  CHECK(f.told(folder, {false, false, true}).empty());
  folder.erase("normalizer");
  CHECK(f.one(folder) ==
        "normalizer.name is missing, which means \"softmax\", but model.attention.normalizer.name "
        "of this run is \"entmax\"");
  CHECK(refusal(f,
                [&] {
                  folder["normalizer"] = "entmax";
                  return folder;
                }())
            .find("config.json: normalizer: expected an object with a name") != std::string::npos);

  other.attention.normalizer = normalizer("entmax", {{"alpha", 2.0}});
  CHECK(f.one(f.exported(other)) ==
        "normalizer.alpha is 2.0, but model.attention.normalizer.alpha of this run is 1.5");
  m.attention.normalizer = normalizer("topk", {{"k", 0.0}});
  other.attention.normalizer = normalizer("topk");
  CHECK(f.one(f.exported(other)) ==
        "normalizer.k is 32, but model.attention.normalizer.k of this run is \"n/2\"");
}

TEST_CASE("of what init_from.new names there is no word") {
  FromFolder f;
  ModelConfig& m = f.c.model;
  ModelConfig other = m;
  other.norm.kind = m.norm.kind = NormKind::layernorm;
  other.attention.prior = prior("rope");
  m.attention.prior = prior("bam");
  m.attention.scale = scale("ssmax");
  CHECK(f.told(f.exported(other), {true, true}).empty());
  CHECK(f.one(f.exported(other), {false, true}).find("priors[0].name") == 0);
  CHECK(f.one(f.exported(other), {true, false}).find("scale.name") == 0);
  m.attention.window = 9;  // not part of any prior
  CHECK(f.one(f.exported(other), {true, true}).find("priors[0].window is 0") == 0);
  m.attention.window = 0;
  m.norm.kind = NormKind::rmsnorm;
  CHECK(f.told(llama(), {true, true}).empty());
  CHECK(f.one(llama(), {false, true}).find("its prior is rope") == 0);
  CHECK(f.one(llama(), {true, false}).find("it has no logit scale") == 0);
}

TEST_CASE("a mix and its base are told separately") {
  const auto mixed = [](const PriorChoice& base, const char* variant) {
    PriorConfig out(base);
    out.mixes = {MixChoice(*find_mix("dape"))};
    out.mixes[0].options.set("variant", std::string(variant));
    return out;
  };
  const PriorChoice power = prior("kerple", {{"kernel", std::string("power")}});
  const std::string kernel =
      "priors[0].kernel is \"power\", but model.attention.prior.base.kernel of this run is "
      "\"logarithmic\"";
  const std::string variant =
      "priors[0].mix.variant is \"concat\", but model.attention.prior.variant of this run is "
      "\"concat_residual\"";
  FromFolder f;
  ModelConfig& m = f.c.model;
  ModelConfig other = m;
  m.attention.prior = mixed(prior("kerple"), "concat_residual");
  CHECK(f.told(f.exported(m)).empty());
  other.attention.prior = mixed(power, "concat");
  CHECK(f.told(f.exported(other)) == std::vector<std::string>{variant, kernel});
  CHECK(f.one(f.exported(other), {.prior = true}) == variant);
  CHECK(f.one(f.exported(other), {.mix = true}) == kernel);
  CHECK(f.told(f.exported(other), {.prior = true, .mix = true}).empty());
  other.attention.prior = power;
  CHECK(f.one(f.exported(other), {.mix = true}) == kernel);
  CHECK(f.one(f.exported(other), {.prior = true}) ==
        "priors[0].mix.name is null, but model.attention.prior.name of this run is \"dape\"");

  m.attention.prior = mixed(prior("alibi"), "concat_residual");
  CHECK(f.one(llama(), {.mix = true}).find("its prior is rope") == 0);
  CHECK(f.one(llama(), {.prior = true}) ==
        "it has no mix, but model.attention.prior.name of this run is \"dape\"");
}

TEST_CASE("a config.json that is neither ours nor a Llama's is damaged") {
  const FromFolder f;
  CHECK(refusal(f, json::array()).find("config.json: expected an object, found array") !=
        std::string::npos);
  for (const json& priors : {json(), json::array(), json{{"name", 3}}, json::array({3})}) {
    CHECK(
        refusal(f, {{"priors", priors}}).find("config.json: priors: expected a list of objects") !=
        std::string::npos);
  }
  CHECK(refusal(f, {{"model_type", "bamtrain"}, {"norm", "rmsnorm"}})
            .find("config.json: priors: expected a list of objects with a name, found no such "
                  "member") != std::string::npos);
  CHECK(refusal(f, {{"priors", {{{"name", "rope"}}}}, {"num_attention_heads", 4}, {"scale", 3}})
            .find("config.json: scale: expected an object with a name, found 3") !=
        std::string::npos);
}
