#include "model/length_options.h"

#include <type_traits>

#include "core/options_json.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain {
namespace {

using nlohmann::json;

/// What `mechanism` says, the rest at its defaults.
Options options_in(const json& mechanism, const std::vector<OptionSpec>& specs) {
  Options out = default_options(specs);
  for (const OptionSpec& o : specs) {
    const json value = mechanism.value(o.name, json());
    std::visit(
        [&](const auto& fallback) {
          using T = std::decay_t<decltype(fallback)>;
          [[maybe_unused]] const bool fits = std::is_same_v<T, bool>          ? value.is_boolean()
                                             : std::is_same_v<T, double>      ? value.is_number()
                                             : std::is_same_v<T, std::string> ? value.is_string()
                                                                              : false;
          if constexpr (!std::is_same_v<T, StringList>) {
            if (fits) out.set(o.name, value.get<T>());
          }
        },
        o.fallback);
  }
  return out;
}

double number_in(const json& mechanism, const std::string& option) {
  const json value = mechanism.value(option, json());
  return value.is_number() ? value.get<double>() : 0;
}

/// Null: of none that this program knows.
const MechanismInfo* info_of(const json& mechanism, bool prior) {
  const json name = mechanism.is_object() ? mechanism.value("name", json()) : json();
  if (!name.is_string()) return nullptr;
  return prior ? static_cast<const MechanismInfo*>(find_prior(name))
               : static_cast<const MechanismInfo*>(find_scale(name));
}

/// Whether the one has the other's options, as far as lengths give them.
bool are_alike(const MechanismInfo& a, const MechanismInfo& b, bool prior) {
  if (a.name == b.name) return true;
  if (!prior) return false;
  return static_cast<const PriorInfo&>(a).is<RotaryFamily>() &&
         static_cast<const PriorInfo&>(b).is<RotaryFamily>();
}

int64_t window_in(const json& attention) {
  return static_cast<int64_t>(number_in(attention, "window"));
}

/// set(option, spec, options) for those of `mechanism` that are 0.
template <class Set>
void for_open_lengths(json* mechanism, bool prior, Set&& set) {
  const MechanismInfo* const info = info_of(*mechanism, prior);
  if (info == nullptr) return;
  const Options options = options_in(*mechanism, info->options);
  for (const OptionSpec& o : info->options) {
    if (o.of_length == nullptr || number_in(*mechanism, o.name) != 0) continue;
    if (const double number = set(*info, o, options); number != 0) {
      (*mechanism)[o.name] = option_json(o, number);
    }
  }
}

/// f(prior, n) for those of the layers in turn, without what mixes them.
template <class F>
void for_priors(json* attention, F&& f) {
  if (!attention->is_object() || !attention->contains("prior")) return;
  json& priors = (*attention)["prior"];
  const size_t n = priors.is_array() ? priors.size() : 1;
  for (size_t i = 0; i < n; ++i) {
    json& prior = priors.is_array() ? priors[i] : priors;
    if (prior.is_object()) f(prior.contains("base") ? prior["base"] : prior, i);
  }
}

}  // namespace

json with_lengths(json attention, int64_t T) {
  if (!attention.is_object()) return attention;
  const int64_t window = window_in(attention);
  const auto number = [&](const MechanismInfo&, const OptionSpec& o, const Options& options) {
    return o.of_length(options, T, window);
  };
  for_priors(&attention, [&](json& prior, size_t) { for_open_lengths(&prior, true, number); });
  if (attention.contains("scale")) for_open_lengths(&attention["scale"], false, number);
  return attention;
}

json with_lengths_of(json attention, const json& source, bool prior, bool scale) {
  if (!source.is_object() || !attention.is_object()) return attention;
  const int64_t window = window_in(attention);
  const auto take = [window](json* ours, const json& theirs, bool of_prior) {
    for_open_lengths(ours, of_prior,
                     [&](const MechanismInfo& info, const OptionSpec& o, const Options& options) {
                       const MechanismInfo* const other = info_of(theirs, of_prior);
                       const bool alike = other != nullptr && are_alike(info, *other, of_prior);
                       // Two lengths show whether any matters.
                       const bool depends =
                           o.of_length(options, 1, window) != o.of_length(options, 2, window);
                       return alike && depends ? number_in(theirs, o.name) : 0;
                     });
  };
  std::vector<json> theirs;
  json copy = source;
  for_priors(&copy, [&theirs](const json& of_layer, size_t) { theirs.push_back(of_layer); });
  if (prior && !theirs.empty()) {
    for_priors(&attention,
               [&](json& ours, size_t i) { take(&ours, theirs[i % theirs.size()], true); });
  }
  if (scale && attention.contains("scale") && source.contains("scale")) {
    take(&attention["scale"], source["scale"], false);
  }
  return attention;
}

}  // namespace bamtrain
