// Which models a run may begin with, by their config.json.

#include "run/init_from_model_type.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/error.h"
#include "data/files.h"
#include "tools/support.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// A folder whose config.json is all that is looked at.
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

/// What is told of a config.json of this type, and of no other member of `model`.
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

/// Runs a configuration of ../shared/cases on one of its folders.
Outcome run_case(const Workplace& w, const std::string& config, const std::string& folder,
                 const std::string& out) {
  json c = json::parse(read_text(cases() + "/" + config));
  c["data"]["train"] = cases() + "/shards";
  c["init_from"] = {{"folder", cases() + "/" + folder}};
  return run_config_into(w, c, out);
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
  const json with_mscale = {{"rope_type", "yarn"}, {"factor", 4}, {"mscale", 0.5}};
  CHECK(says(refused_of("llama", {{"rope_scaling", with_mscale}}), "rope_scaling.mscale"));
  CHECK(told_of("llama", {{"tie_word_embeddings", true}}, m).empty());
  m.tied = true;
  CHECK(says(refused_of("llama", {{"tie_word_embeddings", false}}, m), "change model.tied"));
  m = {};
  // transformers reads none of them in such a model.
  CHECK(told_of("llama", {{"logits_scaling", 8}, {"embedding_multiplier", 12}}, m) ==
        std::vector<std::string>{"config.json: embedding_multiplier, logits_scaling: not read; a "
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
    // fp32 against the fp64 of the right one.
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
