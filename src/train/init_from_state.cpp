#include "train/init_from_state.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "checkpoint/part.h"
#include "core/error.h"
#include "core/json.h"

namespace bamtrain {

namespace {

using nlohmann::json;

constexpr int64_t kMaxState = int64_t{1} << 26;

/// What no tensor's shape shows, and without which the weights mean something else.
constexpr std::array kOfWeights = {"model.heads", "model.head_dim", "model.mlp.kind",
                                   "model.norm.kind", "model.embed_scale"};

struct Part {
  const char* key;
  bool is_new;
};

/// "model.attention.scale" of "model.attention.scale.offset"; null: no option of a mechanism.
const Part* part_of(const std::array<Part, 3>& parts, const std::string& key) {
  for (const Part& p : parts) {
    const std::string of = p.key;
    if (key == of || key.starts_with(of + ".")) return &p;
  }
  return nullptr;
}

}  // namespace

void check_init_from_state(const TrainRun& run, NewParts of, const Warn& warn) {
  const std::string path = run.config.init_from.folder + "/state.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const json state =
      parse_json(InputFile(path, ExitCode::checkpoint, kDamagedRemedy).text(kMaxState),
                 {path, ExitCode::checkpoint, kDamagedRemedy});
  if (!state.is_object() || !state.value("config", json()).is_object()) {
    throw Error(ExitCode::checkpoint, path + ": config", "the run's config", "none",
                kDamagedRemedy);
  }
  const json& before = state["config"];
  const std::array<Part, 3> parts = {{{"model.attention.prior", of.prior},
                                      {"model.attention.scale", of.scale},
                                      {"model.attention.normalizer", of.normalizer}}};
  std::set<std::string> told;
  for (const std::string& key : run.refused_keys(before)) {
    if (!key.starts_with("model.")) continue;
    std::string differs = key;
    if (const Part* part = part_of(parts, key)) {
      if (part->is_new) continue;
      const std::string name = std::string(part->key) + ".name";
      if (text_at(before, name) != text_at(run.resolved, name)) {
        differs = name;
      } else if (!of_formula(key.substr(key.rfind('.') + 1))) {
        continue;
      }
    }
    const std::string theirs = text_at(before, differs), ours = text_at(run.resolved, differs);
    if (std::find(kOfWeights.begin(), kOfWeights.end(), differs) != kOfWeights.end()) {
      throw Error(ExitCode::checkpoint, path + ": config." + differs, ours + ", as the run has it",
                  theirs, "change " + differs + ", or use another folder");
    }
    if (!told.insert(differs).second) continue;
    warn(path + ": config." + differs + " is " + theirs + ", and " + differs + " of this run " +
         ours);
  }
}

}  // namespace bamtrain
