#include "run/init_from_sizes.h"

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_file.h"
#include "core/abbreviate.h"
#include "core/error.h"
#include "model/huggingface_config.h"

namespace bamtrain {
namespace {

using nlohmann::json;

class Sizes {
 public:
  Sizes(const std::string& path, const json& source) : path_(path), source_(source) {}

  void size(const char* member, int64_t tensors) const {
    const json found = source_.value(member, json());
    if (!found.is_null()) require_same(member, found, tensors);
  }

  /// Compares the shapes of a mechanism's parameters if both models have it.
  void shapes(const std::string& place, const json& theirs, const json& ours) const {
    if (!theirs.is_object() || !ours.is_object()) return;
    if (theirs.value("name", json()) != ours.value("name", json())) return;
    const json found = theirs.value("parameters", json());
    if (found.is_null()) return;
    require_same(place + ".parameters", found, ours.value("parameters", json::object()));
  }

 private:
  void require_same(const std::string& place, const json& found, const json& tensors) const {
    if (found == tensors) return;
    throw Error(ExitCode::checkpoint, path_ + ": " + place,
                tensors.dump() + ", as in the tensors next to it", abbreviate(found.dump()),
                kDamagedRemedy);
  }

  const std::string& path_;
  const json& source_;
};

}  // namespace

void check_init_from_sizes(const RunConfig& config, NewParts parts, const std::string& path,
                           const json& source) {
  const ModelConfig& m = config.model;
  const Sizes sizes(path, source);
  sizes.size("vocab_size", m.vocab);
  sizes.size("hidden_size", m.width);
  sizes.size("num_hidden_layers", m.layers);
  sizes.size("num_key_value_heads", m.kv_heads);
  sizes.size("intermediate_size", m.mlp.hidden);
  sizes.size("n_embd", m.width);
  sizes.size("n_layer", m.layers);
  sizes.size("n_inner", m.mlp.hidden);
  const json positions =
      huggingface_prior(m, 0, config.data.sequence_length).value("positions", json());
  if (positions.is_number() && !parts.prior) sizes.size("n_positions", positions.get<int64_t>());

  const json ours = huggingface_config(m, config.data.sequence_length, Dtype::f32, {});
  for (const auto& [member, is_new] :
       {std::pair("scale", parts.scale), std::pair("normalizer", parts.normalizer)}) {
    if (!is_new) sizes.shapes(member, source.value(member, json()), ours.value(member, json()));
  }
  const json theirs = source.value("priors", json::array());
  const json priors = ours.value("priors", json::array());
  if (theirs.empty() || priors.empty()) return;
  for (size_t l = 0; l < static_cast<size_t>(m.layers); ++l) {
    const json &found = theirs[l % theirs.size()], &prior = priors[l % priors.size()];
    const std::string place = "priors[" + std::to_string(l % theirs.size()) + "]";
    if (!parts.prior) sizes.shapes(place, found, prior);
    if (parts.mix) continue;
    sizes.shapes(place + ".mix", found.value("mix", json()), prior.value("mix", json()));
  }
}

}  // namespace bamtrain
