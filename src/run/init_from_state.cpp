#include "run/init_from_state.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "model/length_options.h"
#include "record/run_files.h"

namespace bamtrain {

namespace {

using nlohmann::json;

/// Keys that no tensor's shape shows, and without which the weights mean something else.
constexpr std::array kOfWeights = {"model.heads", "model.head_dim", "model.mlp.kind",
                                   "model.norm.kind", "model.embed_scale"};

class Comparison {
 public:
  Comparison(std::string path, const json& before, const json& now, const Warn& warn)
      : path_(std::move(path)), before_(before), now_(now), warn_(warn) {}

  /// Compares a key that is not a mechanism's.
  void key(const std::string& key) const {
    const std::string theirs = text_at(before_, key), ours = text_at(now_, key);
    if (std::find(kOfWeights.begin(), kOfWeights.end(), key) != kOfWeights.end()) {
      throw Error(ExitCode::checkpoint, path_ + ": config." + key, ours + ", as in this run",
                  theirs, "change " + key + ", or use another folder");
    }
    tell(key, theirs, key, ours);
  }

  /// Compares a mechanism, for all layers or by layer.
  void mechanism(const std::string& key) const {
    of_layers(key, [this](const std::string& place, const json& theirs, const json& ours) {
      mechanism(place, theirs, place, ours);
    });
  }

  /// Compares the mix of heads separately from its base, the prior. The base is also compared with
  /// the prior of a run without a mix. `parts`: what is new.
  void prior(const std::string& key, NewParts parts) const {
    of_layers(key, [&](const std::string& place, const json& theirs, const json& ours) {
      // In resolved configurations, only a mix has a base.
      const bool mixed = ours.contains("base"), was_mixed = theirs.contains("base");
      if ((mixed || was_mixed) && !parts.mix) mechanism(place, theirs, place, ours);
      if (parts.prior) return;
      mechanism(was_mixed ? place + ".base" : place, was_mixed ? theirs["base"] : theirs,
                mixed ? place + ".base" : place, mixed ? ours["base"] : ours);
    });
  }

 private:
  /// Calls compare(place, theirs, ours) for the mechanism at `key`, or for each layer's in turn.
  template <class Compare>
  void of_layers(const std::string& key, Compare&& compare) const {
    const json *theirs = find_value(before_, key), *ours = find_value(now_, key);
    if (theirs == nullptr || ours == nullptr) return this->key(key);
    const size_t n = theirs->is_array() ? theirs->size() : 1;
    const size_t m = ours->is_array() ? ours->size() : 1;
    for (size_t i = 0; i < std::max(n, m); ++i) {
      const std::string place = std::max(n, m) > 1 ? key + "[" + std::to_string(i) + "]" : key;
      compare(place, theirs->is_array() ? (*theirs)[i % n] : *theirs,
              ours->is_array() ? (*ours)[i % m] : *ours);
    }
  }

  /// Compares name and options, except a base.
  void mechanism(const std::string& their_place, const json& theirs, const std::string& our_place,
                 const json& ours) const {
    const auto tell_option = [&](const std::string& option) {
      tell(their_place + "." + option, text_at(theirs, option), our_place + "." + option,
           text_at(ours, option));
    };
    if (text_at(theirs, "name") != text_at(ours, "name")) return tell_option("name");
    for (const auto& [option, value] : ours.items()) {
      // An option that the folder's program did not have is as it was before.
      if (!of_formula(option, theirs, ours) || !theirs.contains(option)) continue;
      if (option != "base" && theirs[option] != value) tell_option(option);
    }
  }

  void tell(const std::string& their_key, const std::string& theirs, const std::string& our_key,
            const std::string& ours) const {
    warn_(path_ + ": config." + their_key + " is " + theirs + ", but " + our_key +
          " of this run is " + ours);
  }

  std::string path_;
  const json &before_, &now_;
  const Warn& warn_;
};

}  // namespace

void check_init_from_state(const TrainRun& run, NewParts of, const Warn& warn) {
  const std::string& folder = run.config.init_from.folder;
  std::error_code ignored;
  if (!std::filesystem::exists(folder + "/state.json", ignored)) return;
  const Checkpoint source = open_checkpoint(folder);
  check_run_state(source);
  // Spells out numbers that follow from each training length, so that they are compared.
  const auto spelt_out = [](json config) {
    const json* const T = find_value(config, "data.sequence_length");
    const json* const attention = find_value(config, "model.attention");
    const bool counts = T != nullptr && T->is_number_integer() && *T > 0 && *T <= kMaxTrainedLength;
    if (!counts || attention == nullptr) return config;
    config["model"]["attention"] = with_lengths(*attention, T->get<int64_t>());
    return config;
  };
  const json before = spelt_out(source.state["config"]), now = spelt_out(run.resolved);
  const Comparison comparison(folder + "/state.json", before, now, warn);
  struct Part {
    std::string key;
    bool differs;
  } parts[] = {{"model.attention.prior", false},
               {"model.attention.scale", false},
               {"model.attention.normalizer", false}};
  for (const std::string& key : run.refused_keys(before)) {
    if (!key.starts_with("model.")) continue;
    const auto part = std::find_if(std::begin(parts), std::end(parts), [&key](const Part& p) {
      return key == p.key || key.starts_with(p.key + ".");
    });
    if (part == std::end(parts)) {
      comparison.key(key);
    } else {
      part->differs = true;
    }
  }
  const auto& [prior, scale, normalizer] = parts;
  if (prior.differs) comparison.prior(prior.key, of);
  if (scale.differs && !of.scale) comparison.mechanism(scale.key);
  if (normalizer.differs && !of.normalizer) comparison.mechanism(normalizer.key);
}

}  // namespace bamtrain
