#include "run/init_from_lengths.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_file.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "core/json.h"
#include "model/length_options.h"
#include "record/named_checkpoint.h"
#include "run/init_from_model_type.h"

namespace bamtrain {
namespace {

using nlohmann::json;

int64_t count_in(const json& object, const char* member, int64_t otherwise) {
  const json value = object.value(member, json());
  const bool fits = value.is_number_integer() && value > 0 && value <= kMaxTrainedLength;
  return fits ? value.get<int64_t>() : otherwise;
}

/// For a folder with Llama's rope; one prior per layer if there are windows.
json rotary_attention(const std::string& type, const json& source) {
  json rope = {{"name", "rope"}};
  for (const char* group : {"rope_parameters", "rope_scaling"}) {
    const json object = source.value(group, json());
    if (!object.is_object()) continue;
    const json kind = object.value("rope_type", object.value("type", json("default")));
    if (kind != "yarn" && kind != "llama3") continue;
    // Without original_max_position_embeddings, transformers' yarn uses the model's positions.
    rope["original_length"] = count_in(object, "original_max_position_embeddings",
                                       count_in(source, "max_position_embeddings", 0));
  }
  const json defaults = source_defaults(type);
  const json given = source.contains("sliding_window") ? source["sliding_window"]
                                                       : defaults.value("sliding_window", json());
  const int64_t window = count_in({{"window", given}}, "window", 0);
  json priors = json::array();
  const int64_t layers = std::min<int64_t>(count_in(source, "num_hidden_layers", 1), 1 << 16);
  for (int64_t l = 0; l < (window > 0 ? layers : 1); ++l) {
    priors.push_back(rope);
    if (window > 0 && has_sliding_window(type, source, l)) priors.back()["window"] = window;
  }
  return {{"prior", priors}};
}

/// The training length of a Llama, from its positions, which linear scaling stretches; 0: unknown.
int64_t rotary_length(const json& source) {
  const int64_t positions = count_in(source, "max_position_embeddings", 0);
  double factor = 1;
  for (const char* group : {"rope_parameters", "rope_scaling"}) {
    const json object = source.value(group, json());
    if (!object.is_object()) continue;
    const json kind = object.value("rope_type", object.value("type", json("default")));
    const json found = object.value("factor", json());
    if (kind == "linear" && found.is_number()) factor = std::max(1.0, found.get<double>());
  }
  return static_cast<int64_t>(static_cast<double>(positions) / factor);
}

/// model.attention of a run's state; null if missing.
json attention_of(const json& state) {
  const json* const attention =
      state.is_object() ? find_value(state, "config.model.attention") : nullptr;
  return attention != nullptr && attention->is_object() ? *attention : json();
}

/// As with_lengths. Errors name `where`, and for priors also `priors`.
json lengths_in(json attention, int64_t T, const std::string& where, const std::string& priors) {
  try {
    return with_lengths(std::move(attention), T);
  } catch (const Error& e) {
    constexpr std::string_view kPrior = "prior";
    const bool of_prior = e.where().starts_with(kPrior);
    throw e.at(where + (of_prior ? priors + e.where().substr(kPrior.size()) : e.where()));
  }
}

/// The training length in a run's state; 0 if missing.
int64_t trained_length(const json& state, const std::string& path) {
  const json* const T = find_value(state, "config.data.sequence_length");
  if (T == nullptr) return 0;
  if (T->is_number_integer() && *T > 0 && *T <= kMaxTrainedLength) return T->get<int64_t>();
  throw Error(ExitCode::checkpoint, path + ": config.data.sequence_length",
              "an integer from 1 to " + std::to_string(kMaxTrainedLength), abbreviate(T->dump()),
              kDamagedRemedy);
}

/// The state of the checkpoint in `folder`; null if it cannot be read.
json readable_state(const std::string& folder) {
  try {
    return source_state(folder);
  } catch (const Error&) {
    return nullptr;
  }
}

/// The state of the newest checkpoint in a run's folder whose state can be read.
json newest_readable_state(const std::string& out_dir) {
  std::optional<std::string> name;
  try {
    for (name = checkpoint_before(out_dir, INT64_MAX); name;
         name = checkpoint_before(out_dir, *checkpoint_step(*name))) {
      json state = readable_state(out_dir + "/" + *name);
      if (state.is_object()) return state;
    }
  } catch (const Error&) {  // resuming reports more about such a folder
  }
  return nullptr;
}

}  // namespace

SourceAttention source_attention(const InitFromConfig& from) {
  const std::string type = source_model_type(from);
  if (const json state = source_state(from.folder); state.is_object()) {
    const std::string path = from.folder + "/state.json";
    const int64_t T = trained_length(state, path);
    if (T == 0) return {};
    return {lengths_in(attention_of(state), T, path + ": config.model.attention.", "prior"), T};
  }
  const json source = source_config(from.folder);
  if (!source.is_object()) return {};
  if (type == "gpt2") {
    const int64_t positions = count_in(source, "n_positions", 1024);
    return {{{"prior", {{"name", "learned"}, {"positions", positions}}}}, positions};
  }
  if (type != "bamtrain") return {rotary_attention(type, source), rotary_length(source)};
  json attention = {{"prior", source.value("priors", json())}};
  if (source.contains("scale")) attention["scale"] = source["scale"];
  const int64_t T = count_in(source, "max_position_embeddings", 512);
  return {lengths_in(std::move(attention), T, from.folder + "/config.json: ", "priors"), T};
}

json resumed_state(const RunConfig& c) {
  const std::string& from = c.checkpoint.resume;
  if (from == "never") return nullptr;
  json state = newest_readable_state(c.out_dir);
  if (state.is_object() || from == "auto") return state;
  return is_run_folder(from) ? newest_readable_state(from) : readable_state(from);
}

json resumed_attention(const json& state) {
  const json* const folder = find_value(state, "config.init_from.folder");
  return folder != nullptr && *folder != "" ? attention_of(state) : json();
}

}  // namespace bamtrain
