// The models from which a run may start, by their config.json.

#include "run/init_from_model_type.h"

#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "checkpoint/weights_folder.h"
#include "core/error.h"
#include "data/files.h"
#include "tools/support.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// A folder of which only config.json is read.
struct TypedFolder {
  Workplace w;
  InitFromConfig from;

  TypedFolder() { from.folder = w.path("."); }

  std::string type_of(const json& config) const {
    std::ofstream(w.path("config.json")) << config.dump();
    return source_model_type(from);
  }
  std::string refusal(const json& config, ExitCode code = ExitCode::checkpoint) const {
    return error_or_none(code, [&] { type_of(config); });
  }
};

/// Warnings for a config.json of this type with these members.
std::vector<std::string> told_of(const std::string& type, json config, const ModelConfig& model) {
  config["model_type"] = type;
  std::vector<std::string> told;
  check_source_members(type, model, "config.json", config,
                       [&told](const std::string& text) { told.push_back(text); });
  return told;
}

std::string refused_of(const std::string& type, const json& config, const ModelConfig& model = {}) {
  return error_or_none(ExitCode::checkpoint, [&] { told_of(type, config, model); });
}

bool says(const std::string& text, const std::string& words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

std::string cases() { return shared_data("../cases"); }

/// Runs a config of ../shared/cases on one of its folders.
Outcome run_case(const Workplace& w, const std::string& config, const std::string& folder,
                 const std::string& out) {
  json c = json::parse(read_text(cases() + "/" + config));
  c["data"]["train"] = cases() + "/shards";
  c["init_from"] = {{"folder", cases() + "/" + folder}};
  return run_config_into(w, c, out);
}

/// A Llama folder as export writes it, and runs that start from changed copies.
class LlamaFolder {
 public:
  LlamaFolder() {
    run_["model"]["attention"] = {{"prior", "rope"}};
    run_["train"]["stop_at"] = 1;
    run_["optimizer"]["lr"] = 1e-300;
    const Outcome first = run_config_into(w_, run_, "first");
    INFO(first.output);
    REQUIRE(first.code == 0);
    REQUIRE(run({bamtrain_program(), "export", "--checkpoint", w_.path("first/checkpoint-00000001"),
                 "--output", w_.path("hf")},
                threads(1))
                .code == 0);
    config_ = json::parse(read_text(w_.path("hf/config.json")));
    REQUIRE(config_["model_type"] == "llama");
  }

  json config() const { return config_; }
  std::string folder() const { return w_.path("changed"); }

  /// A run with these overrides from a folder with this config.json (null: none). Its tensors are
  /// the export's, these in each layer, and these at the top.
  Outcome begin(const json& config, const std::vector<std::pair<std::string, int64_t>>& of_layers,
                const std::vector<std::pair<std::string, int64_t>>& at_top,
                const std::vector<std::string>& overrides) const {
    fs::remove_all(folder());
    fs::remove_all(w_.path("next"));
    fs::create_directory(folder());
    if (!config.is_null()) std::ofstream(folder() + "/config.json") << config.dump();
    const WeightsFolder weights = WeightsFolder::open(w_.path("hf"));
    std::list<std::vector<char>> memory;
    std::vector<NamedTensor> tensors;
    for (const auto& [name, place] : weights.tensors()) {
      std::vector<char>& bytes = memory.emplace_back(static_cast<size_t>(place.entry->bytes));
      place.file->read(*place.entry, bytes.data());
      tensors.push_back({name, place.entry->dtype, place.entry->shape, bytes.data()});
    }
    std::vector<float> values(256, 0.25F);
    for (const auto& [name, size] : of_layers) {
      for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
        tensors.push_back({layer + name, Dtype::f32, {size}, values.data()});
      }
    }
    for (const auto& [name, size] : at_top) {
      tensors.push_back({name, Dtype::f32, {size}, values.data()});
    }
    write_weights(folder(), tensors, 1 << 30);
    json c = run_;
    c["init_from"] = {{"folder", folder()}, {"tokenizer", "any"}};
    return run_config_into(w_, c, "next", overrides);
  }

 private:
  Workplace w_;
  json run_ = small_run(w_), config_;
};

void check_refused(const Outcome& o, const std::string& words) {
  INFO(o.output);
  CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
  CHECK(says(o.output, words));
}

}  // namespace

TEST_CASE("the model types that are read are read, and others refused by name with a reason") {
  const TypedFolder f;
  for (const char* type : kSourceModelTypes) CHECK(f.type_of({{"model_type", type}}) == type);
  CHECK(f.type_of({{"priors", json::array()}}) == "bamtrain");
  for (const auto& [type, reason] :
       std::map<std::string, std::string>{{"granite", "multipliers"},
                                          {"smollm3", "some layers have no rope"},
                                          {"gemma2", "norms multiply by 1 + weight"},
                                          {"qwen3", "queries and keys are normalised"},
                                          {"mixtral", "experts"},
                                          {"nobodys", "something else from the same tensors"}}) {
    const std::string text = f.refusal({{"model_type", type}});
    CHECK(says(text,
               "config.json: model_type: expected one of llama, mistral, qwen2, gpt2, "
               "bamtrain, found \"" +
                   type + "\""));
    CHECK(says(text, reason));
  }
  CHECK(says(f.refusal({{"model_type", 3}}), "config.json: model_type: expected one of llama"));
}

TEST_CASE("a folder that does not say its type is refused unless init_from.model_type does") {
  TypedFolder f;
  std::ofstream(f.w.path("model.safetensors")) << "";
  CHECK(says(f.refusal({{"hidden_size", 3}}), "set init_from.model_type to \"llama\" or \"gpt2\""));
  fs::remove(f.w.path("config.json"));
  const auto of_folder = [&] {
    return error_or_none(ExitCode::checkpoint, [&] { source_model_type(f.from); });
  };
  CHECK(says(of_folder(), "found neither"));
  f.from.model_type = "gpt2";
  CHECK(source_model_type(f.from) == "gpt2");
  CHECK(f.type_of({{"hidden_size", 3}}) == "gpt2");
  const std::string other = f.refusal({{"model_type", "llama"}}, ExitCode::config);
  CHECK(says(other, "init_from.model_type: expected \"llama\", as "));
  fs::remove(f.w.path("config.json"));
  f.from.model_type = "";
  std::ofstream(f.w.path("state.json")) << "{}";
  CHECK(source_model_type(f.from) == "bamtrain");
}

TEST_CASE("what a Llama's config may say, and what it may not") {
  ModelConfig m;
  CHECK(told_of("llama", {{"attention_bias", false}, {"mlp_bias", nullptr}, {"use_cache", true}}, m)
            .empty());
  CHECK(says(refused_of("llama", {{"attention_bias", true}}),
             "config.json: attention_bias: expected false, as model.bias asks, found true"));
  m.bias.attention = true;
  CHECK(told_of("llama", {{"attention_bias", true}}, m).empty());
  CHECK(says(refused_of("llama", json::object(), m), "attention_bias: expected true"));
  m = {};
  for (const char* type : {"llama", "mistral", "qwen2"}) {
    for (const auto& [member, value] :
         std::map<std::string, json>{{"partial_rotary_factor", 0.5},
                                     {"rope_interleaved", true},
                                     {"auto_map", {{"AutoModel", "other.Model"}}},
                                     {"quantization_config", {{"bits", 4}}},
                                     {"tie_word_embeddings", 1},
                                     {"rope_scaling", {{"rope_type", "longrope"}}},
                                     {"rope_parameters", {{"rope_type", "dynamic"}}}}) {
      INFO(type);
      CHECK(says(refused_of(type, {{member, value}}), "config.json: " + member));
    }
  }
  for (const char* group : {"rope_scaling", "rope_parameters"}) {
    for (const json& wrong : {json("yarn"), json::array({1}), json(2), json(true)}) {
      CHECK(says(refused_of("llama", {{group, wrong}}), std::string("config.json: ") + group +
                                                            ": expected an object or null, found " +
                                                            wrong.dump()));
    }
    CHECK(told_of("llama", {{group, nullptr}}, m).empty());
  }
  const json with_mscale = {{"rope_type", "yarn"}, {"factor", 4}, {"mscale", 0.5}};
  CHECK(says(refused_of("llama", {{"rope_scaling", with_mscale}}), "rope_scaling.mscale"));
  CHECK(told_of("llama", {{"tie_word_embeddings", true}}, m).empty());
  m.tied = true;
  CHECK(says(refused_of("llama", {{"tie_word_embeddings", false}}, m), "change model.tied"));
  m = {};
  // transformers reads none of these members in such a model.
  CHECK(told_of("llama", {{"logits_scaling", 8}, {"embedding_multiplier", 12}}, m) ==
        std::vector<std::string>{"config.json: embedding_multiplier, logits_scaling: ignored; a "
                                 "model of type llama has no such member"});
}

TEST_CASE("GPT-2's logits are scaled in the one way that is read") {
  CHECK(told_of("gpt2", {{"scale_attn_weights", true}, {"n_ctx", 32}, {"resid_pdrop", 0.1}}, {})
            .empty());
  CHECK(says(refused_of("gpt2", {{"scale_attn_weights", false}}), "scale_attn_weights"));
  CHECK(says(refused_of("gpt2", {{"scale_attn_by_inverse_layer_idx", true}}),
             "config.json: scale_attn_by_inverse_layer_idx: expected false"));
  CHECK(source_defaults("gpt2")["activation_function"] == "gelu_new");
}

TEST_CASE("a model type has the tensors that its own code reads, and no others") {
  const std::string layer = "model.layers.12.";
  const std::vector<std::string> attention = {"q", "k", "v", "o"}, mlp = {"gate", "up", "down"};
  const json none, silent = json::object(), both = {{"attention_bias", true}, {"mlp_bias", true}};
  const json of_attention = {{"attention_bias", true}, {"mlp_bias", nullptr}};
  // Whether there are biases: `q` of queries, keys and values, `o` of outputs, `of_mlp` of the MLP.
  const auto check = [&](const std::string& type, const json& config, bool q, bool o, bool of_mlp) {
    INFO(type << " " << config.dump());
    const auto has = [&](const std::string& name) {
      return why_no_tensor(type, config, name).empty();
    };
    for (const std::string& name : attention) {
      CHECK(has(layer + "self_attn." + name + "_proj.weight"));
      CHECK(has(layer + "self_attn." + name + "_proj.bias") == (name == "o" ? o : q));
    }
    for (const std::string& name : mlp) {
      CHECK(has(layer + "mlp." + name + "_proj.weight"));
      CHECK(has(layer + "mlp." + name + "_proj.bias") == of_mlp);
    }
    for (const char* name : {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
                             "model.layers.0.input_layernorm.weight",
                             "model.layers.0.post_attention_layernorm.weight"}) {
      CHECK(has(name));
    }
    for (const char* name :
         {"lm_head.bias", "model.norm.bias", "model.layers.0.input_layernorm.bias",
          "model.layers.0.self_attn.q_norm.weight", "model.layers.0.self_attn.prior.r1",
          "model.layers.0.post_feedforward_layernorm.weight", "transformer.wte.weight",
          "model.layers.x.mlp.up_proj.weight", "model.layers.", "embed_tokens.weight", ""}) {
      INFO(name);
      CHECK_FALSE(has(name));
    }
  };
  for (const json& config : {none, silent, both}) {
    check("mistral", config, false, false, false);
    check("qwen2", config, true, false, false);
  }
  check("llama", silent, false, false, false);
  check("llama", both, true, true, true);
  check("llama", of_attention, true, true, false);
  check("llama", none, true, true, true);  // not specified
  CHECK(why_no_tensor("llama", silent, layer + "mlp.up_proj.bias") ==
        "no such tensor in a model of type llama whose config.json does not have mlp_bias true");
  for (const std::string prefix : {"", "transformer."}) {
    for (const char* name : {"wte.weight", "wpe.weight", "ln_f.bias", "h.0.ln_1.weight",
                             "h.11.attn.c_attn.bias", "h.2.mlp.c_proj.weight"}) {
      CHECK(why_no_tensor("gpt2", none, prefix + name).empty());
    }
    for (const char* name : {"wte.bias", "wpe.bias", "h.0.attn.q_proj.bias", "h.ln_1.weight",
                             "h.0.crossattention.c_attn.weight", "h.0.mlp.c_fc.scale"}) {
      CHECK(why_no_tensor("gpt2", none, prefix + name) == "no such tensor in a model of type gpt2");
    }
  }
  CHECK(why_no_tensor("gpt2", none, "lm_head.weight").empty());
  for (const char* name : {"lm_head.bias", "model.embed_tokens.weight"}) {
    CHECK_FALSE(why_no_tensor("gpt2", none, name).empty());
    CHECK(why_no_tensor("bamtrain", none, name).empty());
  }
}

TEST_CASE("biases that a model's type has not are refused by name, not taken") {
  const LlamaFolder f;
  const auto of_type = [&f](const std::string& type) {
    json config = f.config();
    config["model_type"] = type;
    if (type == "mistral") config["sliding_window"] = nullptr;
    for (const char* member : {"attention_bias", "mlp_bias"}) config.erase(member);
    return config;
  };
  using Sizes = std::vector<std::pair<std::string, int64_t>>;
  const Sizes qkv = {
      {"self_attn.q_proj.bias", 64}, {"self_attn.k_proj.bias", 32}, {"self_attn.v_proj.bias", 32}};
  Sizes qkvo = qkv;
  qkvo.emplace_back("self_attn.o_proj.bias", 64);
  const Sizes mlp = {
      {"mlp.gate_proj.bias", 96}, {"mlp.up_proj.bias", 96}, {"mlp.down_proj.bias", 64}};
  const std::vector<std::string> attention = {"model.bias=[\"attention\"]"};
  const std::string of_mlp = "model.bias=[\"mlp\"]", no = "no such tensor in a model ";
  check_refused(
      f.begin(of_type("mistral"), qkvo, {}, attention),
      "tensor \"model.layers.0.self_attn.k_proj.bias\": unexpected tensor, (32) f32: " + no +
          "of type mistral; correct config.json, take the tensor out, or use "
          "another folder");
  check_refused(f.begin(of_type("qwen2"), qkvo, {}, attention),
                "tensor \"model.layers.0.self_attn.o_proj.bias\": unexpected tensor, (64) f32: " +
                    no + "of type qwen2");
  for (const char* type : {"mistral", "qwen2"}) {
    check_refused(f.begin(of_type(type), mlp, {}, {of_mlp}),
                  "tensor \"model.layers.0.mlp.down_proj.bias\": unexpected tensor, (64) f32: " +
                      no + "of type " + type);
  }
  check_refused(f.begin(of_type("llama"), {}, {{"lm_head.bias", 211}}, {"model.bias=[\"head\"]"}),
                "tensor \"lm_head.bias\": unexpected tensor, (211) f32: " + no + "of type llama");
  check_refused(f.begin(of_type("llama"), mlp, {}, {of_mlp}),
                "of type llama whose config.json does not have mlp_bias true");

  const auto begins = [](const Outcome& o) {
    INFO(o.output);
    CHECK(o.code == 0);
  };
  begins(f.begin(of_type("qwen2"), qkv, {}, attention));
  begins(f.begin(of_type("mistral"), {}, {}, {}));
  json with_bias = of_type("llama");
  with_bias["attention_bias"] = true;
  begins(f.begin(with_bias, qkvo, {}, attention));
  with_bias["mlp_bias"] = true;
  Sizes all = qkvo;
  all.insert(all.end(), mlp.begin(), mlp.end());
  begins(f.begin(with_bias, all, {}, {"model.bias=[\"attention\",\"mlp\"]"}));
}

TEST_CASE("a folder has the tensors of its type, also where only a key says which it is") {
  const LlamaFolder f;
  check_refused(f.begin(nullptr, {}, {}, {"init_from.model_type=gpt2"}),
                f.folder() +
                    ": tensor \"transformer.wte.weight\": expected the names of a model of type "
                    "gpt2, found \"model.embed_tokens.weight\", as llama names it; set "
                    "init_from.model_type to \"llama\"");
  const Outcome o = f.begin(nullptr, {}, {}, {"init_from.model_type=llama"});
  INFO(o.output);
  CHECK(o.code == 0);
  check_refused(
      f.begin(nullptr, {}, {{"wte.weight", 4}}, {"init_from.model_type=gpt2"}),
      "tensor \"model.embed_tokens.weight\": unexpected tensor, (211, 64) f32: no such tensor in a "
      "model of type gpt2");
  check_refused(
      f.begin(nullptr, {}, {{"wte.weight", 4}}, {"init_from.model_type=llama"}),
      "tensor \"wte.weight\": unexpected tensor, (4) f32: no such tensor in a model of type llama; "
      "correct init_from.model_type");
  check_refused(f.begin({{"model_type", "gpt2"}, {"n_head", 4}}, {}, {}, {}),
                "as llama names it; correct config.json, or use another folder");
  if (cases().empty()) return;
  const Workplace w;
  json c = json::parse(read_text(cases() + "/run-gpt2.json"));
  c["data"]["train"] = cases() + "/shards";
  for (const auto& [folder, name] :
       {std::pair("gpt2-prefix", "transformer.wte"), std::pair("gpt2-no-prefix", "wte")}) {
    fs::create_directory(w.path(folder));
    fs::copy(cases() + "/" + folder + "/model.safetensors", w.path(folder));
    c["init_from"] = {{"folder", w.path(folder)}, {"model_type", "llama"}};
    check_refused(run_config_into(w, c, "out"),
                  std::string("expected the names of a model of type llama, found \"") + name +
                      ".weight\", as gpt2 names it; set init_from.model_type to \"gpt2\"");
    c["init_from"]["model_type"] = "gpt2";
    const Outcome right = run_config_into(w, c, folder);
    INFO(right.output);
    CHECK(right.code == 0);
  }
}

TEST_CASE("a layer has a sliding window as its type's config has it") {
  CHECK(has_sliding_window("mistral", {{"use_sliding_window", false}}, 0));
  CHECK_FALSE(has_sliding_window("llama", {{"sliding_window", 8}}, 0));
  CHECK_FALSE(has_sliding_window("qwen2", {{"sliding_window", 8}}, 40));
  const json used = {{"use_sliding_window", true}, {"max_window_layers", 2}};
  CHECK_FALSE(has_sliding_window("qwen2", used, 1));
  CHECK(has_sliding_window("qwen2", used, 2));
  const json types = {{"layer_types", {"full_attention", "sliding_attention"}}};
  CHECK_FALSE(has_sliding_window("qwen2", types, 0));
  CHECK(has_sliding_window("qwen2", types, 1));
  CHECK(source_defaults("mistral")["sliding_window"] == 4096);
}

TEST_CASE("first losses of public models are those of their own code, or they are refused") {
  if (cases().empty()) return;
  const Workplace w;
  const json right = json::parse(read_text(cases() + "/right-losses.json"));
  for (const char* folder : {"llama", "tied-head-copy", "inv-freq"}) {
    const Outcome o = run_case(w, "run-llama.json", folder, folder);
    INFO(o.output);
    REQUIRE(o.code == 0);
    // fp32, compared with the fp64 loss in right-losses.json.
    CHECK(read_metrics(w.path(folder))[0]["loss"].get<double>() ==
          Approx(right[folder].get<double>()).epsilon(1e-5));
  }
  for (const char* folder : {"granite", "smollm3"}) {
    const Outcome o = run_case(w, "run-llama.json", folder, folder);
    INFO(o.output);
    CHECK(o.code == static_cast<int>(ExitCode::checkpoint));
    CHECK(o.output.find(std::string("model_type: expected one of llama, mistral, qwen2, gpt2, "
                                    "bamtrain, found \"") +
                        folder + "\"") != std::string::npos);
    CHECK_FALSE(fs::exists(w.path(folder)));
  }
  std::vector<json> losses;
  for (const char* folder :
       {"gpt2-prefix", "gpt2-no-prefix", "gpt2-prefix-buffers", "gpt2-hub-names"}) {
    const Outcome o = run_case(w, "run-gpt2.json", folder, folder);
    INFO(o.output);
    REQUIRE(o.code == 0);
    losses.push_back(read_metrics(w.path(folder))[0]["loss"]);
    CHECK(losses.back() == losses.front());
  }
}
