#include "config/changes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "config/document.h"
#include "config/keys.h"
#include "config/mechanism.h"
#include "config/renamed_keys.h"
#include "config/validate.h"
#include "core/json.h"
#include "model/length_options.h"
#include "normalizers/registry.h"
#include "scales/registry.h"

namespace bamtrain {

namespace {

using nlohmann::json;

/// Whether only `now` lacks a learning rate multiplier of something it does not train. Earlier
/// programs accepted such a multiplier, without effect.
bool is_removed_idle_multiplier(const std::string& path, const json& now) {
  const std::string multipliers = "optimizer.lr_multipliers.";
  if (!path.starts_with(multipliers) || find_value(now, path) != nullptr) return false;
  RunConfig c = default_run_config(config_version_of(now));
  for (const Key& key : all_keys()) {
    if (const json* value = find_value(now, key.path)) key.set(c, *value, Origin{});
  }
  const std::vector<std::string> names = multiplier_names(c);
  return std::find(names.begin(), names.end(), path.substr(multipliers.size())) == names.end();
}

/// Whether the key only affects evaluation and samples: without document masks, training does not
/// read it.
bool is_idle_document_start(const std::string& path, const json& before, const json& now) {
  const auto masks = [](const json& config) {
    const json* value = find_value(config, "model.attention.document_mask");
    return value != nullptr && *value != json(false);
  };
  return path == "data.document_start" && !masks(before) && !masks(now);
}

/// `before`, with mechanism options that its program did not know set to their defaults.
json with_newer_options(json before) {
  const int64_t version = config_version_of(before);
  const auto complete = [version](json& mechanism, const auto& registry) {
    if (!mechanism.is_object()) return;
    for (const MechanismInfo& m : registry) {
      if (mechanism.value("name", json()) != json(m.name)) continue;
      const json defaults = mechanism_json(m, default_options(m.options, version));
      for (const auto& [option, value] : defaults.items()) mechanism.emplace(option, value);
    }
  };
  const json::json_pointer prior("/model/attention/prior"), scale("/model/attention/scale"),
      normalizer("/model/attention/normalizer");
  if (before.contains(prior) && before[prior].is_array()) {
    for (json& of_layer : before[prior]) of_layer = with_defaults(of_layer, version);
  } else if (before.contains(prior)) {
    before[prior] = with_defaults(before[prior], version);
  }
  if (before.contains(scale)) complete(before[scale], all_scales());
  if (before.contains(normalizer)) complete(before[normalizer], all_normalizers());
  return before;
}

/// `now`, with the numbers that `before` took from the model it started from (init_from.folder).
json with_kept_lengths(json now, const json& before) {
  const json* const folder = find_value(before, "init_from.folder");
  const json* const theirs = find_value(before, "model.attention");
  const json* const ours = find_value(now, "model.attention");
  if (folder == nullptr || *folder == "" || theirs == nullptr || ours == nullptr) return now;
  now["model"]["attention"] = with_lengths_of(*ours, *theirs);
  return now;
}

}  // namespace

bool is_newer_default(const std::string& path, const json& before, const json& now) {
  const Key* key = find_key(path);
  const json* value = find_value(now, path);
  return key != nullptr && !key->required && path != "config_version" &&
         find_value(before, path) == nullptr && value != nullptr &&
         *value == json(key->get(default_run_config(config_version_of(before))));
}

std::vector<std::string> changed_keys(const json& a, const json& b) {
  const std::map<std::string, json> before = leaves_of(a), now = leaves_of(b);
  std::vector<std::string> changed;
  for (const auto& [path, value] : before) {
    const auto it = now.find(path);
    if (it == now.end() || it->second != value) changed.push_back(path);
  }
  for (const auto& [path, value] : now) {
    if (before.count(path) == 0) changed.push_back(path);
  }
  std::sort(changed.begin(), changed.end());
  return changed;
}

std::vector<std::string> keys_refused_on_resume(const json& before, const json& given,
                                                const std::vector<std::string>& allow_change) {
  const json now = with_kept_lengths(given, before);
  const json current = with_current_names(before);
  std::vector<std::string> refused = changed_keys(with_newer_options(current), now);
  std::erase_if(refused, [&](const std::string& path) {
    if (path == "config_version" && find_value(before, path) && find_value(now, path) &&
        have_same_defaults(config_version_of(before), config_version_of(now))) {
      return true;
    }
    // The step number determines the position in the data; these two determine how.
    if (path == "train.tokens_per_step" || path == "data.sequence_length") return false;
    if (is_newer_default(path, before, now) || is_removed_idle_multiplier(path, now) ||
        is_idle_document_start(path, before, now)) {
      return true;
    }
    const Key* key = find_owner(path);
    return (key != nullptr && key->free_on_resume) ||
           std::any_of(allow_change.begin(), allow_change.end(),
                       [&path](const std::string& tree) { return lies_in(path, tree); });
  });
  return refused;
}

}  // namespace bamtrain
