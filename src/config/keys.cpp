#include "config/keys.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "config/key_table.h"
#include "config/renamed_keys.h"
#include "config/task.h"
#include "core/closest_match.h"
#include "core/join.h"
#include "core/json.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain {

using namespace key_table;

namespace {

std::vector<Key> make_keys() {
  std::vector<Key> keys = {
      // First, because its version determines the defaults of all other keys.
      key("config_version",
          "version of this format; a newer program resumes a run with the defaults and rules of "
          "the run's version. Version 1 has other defaults where noted, and wsd's decay ends one "
          "step later. In 1 and 2 eval.require_all_lengths may be called eval.insist",
          integer_value(1, kConfigVersion), FIELD(config_version)),
      resumable(key("name", "label for logs and tables", any_text(), FIELD(name))),
      key("seed", "seed of weight initialization and data order", integer_value(0, kMaxInt64),
          FIELD(seed)),
      resumable(choice<DeviceKind>("device",
                                   "auto: a GPU if available, else the CPU; check: every operation "
                                   "on two backends, compared",
                                   kDeviceNames, FIELD(device))),
      required(resumable(key("out_dir", "folder for checkpoints and metrics.jsonl", nonempty_text(),
                             FIELD(out_dir)))),
  };
  for (const auto& section : {model_keys, data_keys, training_keys, evaluation_keys}) {
    std::vector<Key> more = section();
    std::move(more.begin(), more.end(), std::back_inserter(keys));
  }
  return keys;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// See unknown_key_remedy; empty if no name resembles the path.
std::string nearest_path(const std::string& path) {
  const std::string name = last_name(path);
  const std::string prefix = path.substr(0, path.size() - name.size());
  const std::string group = prefix.substr(0, prefix.find_last_not_of('.') + 1);
  const std::string sibling = closest_match(name, members(group));
  if (!sibling.empty()) return prefix + sibling;
  std::vector<std::string> names, paths;
  for (const Key& k : all_keys()) {
    names.push_back(last_name(k.path));
    paths.push_back(k.path);
  }
  const std::string near = closest_match(name, names);
  if (!near.empty()) return paths[std::ranges::find(names, near) - names.begin()];
  for (const KeyGroup& g : all_groups()) paths.push_back(g.path);
  return closest_match(path, paths);
}

}  // namespace

bool key_table::trains_on_shards(const json& document) {
  const json* train = find_value(document, "data.train");
  if (train == nullptr) return true;
  if (!train->is_array()) return !is_task(*train);
  return std::any_of(train->begin(), train->end(), [](const json& s) { return !is_task(s); });
}

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

const std::vector<KeyGroup>& all_groups() {
  static const std::vector<KeyGroup> groups = {
      {"model", "architecture"},
      {"model.mlp", "feed-forward layers"},
      {"model.norm", "normalization layers"},
      {"model.attention", "positional prior, logit scale, normalizer, mask"},
      {"init_from", "initial weights of a new run"},
      {"data", "training and validation data"},
      {"optimizer", "optimizer and weight decay"},
      {"schedule", "learning rate schedule"},
      {"train", "length, batch size and precision"},
      {"checkpoint", "saving and resuming"},
      {"checkpoint.best", "keeping the best checkpoint"},
      {"eval", "validation, and evaluation at the end"},
      {"sample", "text samples during training"},
      {"log", "logs during training"},
  };
  return groups;
}

const Key* find_key(const std::string& path) {
  for (const Key& k : all_keys()) {
    if (k.path == path) return &k;
  }
  return nullptr;
}

const Key* find_owner(const std::string& path) {
  for (const Key& k : all_keys()) {
    if (lies_in(path, k.path)) return &k;
  }
  return nullptr;
}

bool is_group(const std::string& path) {
  const std::vector<KeyGroup>& groups = all_groups();
  return std::any_of(groups.begin(), groups.end(),
                     [&path](const KeyGroup& g) { return g.path == path; });
}

std::vector<std::string> members(const std::string& group) {
  const std::string prefix = group.empty() ? "" : group + ".";
  std::vector<std::string> names;
  for (const Key& k : all_keys()) {
    if (k.path.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string rest = k.path.substr(prefix.size());
    const std::string name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::string unknown_key_remedy(const std::string& path) {
  if (const RenamedKey* const renamed = find_renamed_key(path)) {
    return "write \"" + renamed->now + "\", its name since config_version " +
           std::to_string(renamed->last_version + 1);
  }
  const std::string near = nearest_path(path);
  if (!near.empty()) return "did you mean " + near + "?";
  const size_t dot = path.rfind('.');
  const std::string group = dot == std::string::npos ? "" : path.substr(0, dot);
  return is_group(group) ? group + " has the keys " + join(members(group))
                         : "bamtrain help config lists the keys";
}

RunConfig default_run_config(int64_t version) {
  RunConfig c;
  c.config_version = version;
  c.model.attention.prior = PriorChoice(*find_prior("nope"));
  c.model.attention.scale = ScaleChoice(*find_scale("none"));
  c.model.attention.normalizer = NormalizerChoice(*find_normalizer("softmax"));
  return c;
}

}  // namespace bamtrain
