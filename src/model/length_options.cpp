#include "model/length_options.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "core/abbreviate.h"
#include "core/error.h"
#include "core/options_json.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain {
namespace {

using nlohmann::json;

/// The number in `value`; 0 if it is not a number. Throws Error (ExitCode::checkpoint), at `place`,
/// if it is out of bounds.
double bounded_number(const json& value, double minimum, double maximum, bool integer,
                      const std::string& place) {
  if (!value.is_number()) return 0;
  const auto number = value.get<double>();
  const bool fits = number >= minimum && number <= maximum;
  if (fits && (!integer || number == std::floor(number))) return number;
  throw Error(ExitCode::checkpoint, place,
              fmt::format("{} from {:.10g} to {:.10g}", integer ? "an integer" : "a number",
                          minimum, maximum),
              abbreviate(value.dump()), "use another folder");
}

double number_in(const json& mechanism, const OptionSpec& o, const std::string& place) {
  return bounded_number(mechanism.value(o.name, json()), o.minimum, o.maximum, o.integer,
                        place + "." + o.name);
}

/// The options in `mechanism`; others have their defaults.
Options options_in(const json& mechanism, const std::vector<OptionSpec>& specs,
                   const std::string& place) {
  Options out = default_options(specs);
  for (const OptionSpec& o : specs) {
    const json value = mechanism.value(o.name, json());
    if (std::holds_alternative<double>(o.default_value) && value.is_number()) {
      out.set(o.name, number_in(mechanism, o, place));
    } else if (std::holds_alternative<bool>(o.default_value) && value.is_boolean()) {
      out.set(o.name, value.get<bool>());
    } else if (std::holds_alternative<std::string>(o.default_value) && value.is_string()) {
      out.set(o.name, value.get<std::string>());
    }
  }
  return out;
}

/// Null if this program does not know the mechanism.
const MechanismInfo* info_of(const json& mechanism, bool prior) {
  const json name = mechanism.is_object() ? mechanism.value("name", json()) : json();
  if (!name.is_string()) return nullptr;
  return prior ? static_cast<const MechanismInfo*>(find_prior(name))
               : static_cast<const MechanismInfo*>(find_scale(name));
}

/// Whether both mechanisms have the same options of length.
bool are_alike(const MechanismInfo& a, const MechanismInfo& b, bool prior) {
  if (a.name == b.name) return true;
  if (!prior) return false;
  return static_cast<const PriorInfo&>(a).is<RotaryFamily>() &&
         static_cast<const PriorInfo&>(b).is<RotaryFamily>();
}

int64_t window_in(const json& attention) {
  const json value = attention.value("window", json());
  return static_cast<int64_t>(bounded_number(value, 0, kMaxTrainedLength, true, "window"));
}

/// Calls set(info, option, options) for options of length in `mechanism`, at `place`, that are 0.
template <class Set>
void for_open_lengths(json* mechanism, bool prior, const std::string& place, Set&& set) {
  const MechanismInfo* const info = info_of(*mechanism, prior);
  if (info == nullptr) return;
  const Options options = options_in(*mechanism, info->options, place);
  for (const OptionSpec& o : info->options) {
    if (o.of_length == nullptr || number_in(*mechanism, o, place) != 0) continue;
    if (const double number = set(*info, o, options); number != 0) {
      (*mechanism)[o.name] = option_json(o, number);
    }
  }
}

/// Calls f(prior, place, n) for the priors of the layers in turn, without their mixes.
template <class F>
void for_priors(json* attention, F&& f) {
  if (!attention->is_object() || !attention->contains("prior")) return;
  json& priors = (*attention)["prior"];
  const size_t n = priors.is_array() ? priors.size() : 1;
  for (size_t i = 0; i < n; ++i) {
    json& prior = priors.is_array() ? priors[i] : priors;
    if (!prior.is_object()) continue;
    const std::string place = priors.is_array() ? "prior[" + std::to_string(i) + "]" : "prior";
    const bool mixed = prior.contains("base");
    f(mixed ? prior["base"] : prior, mixed ? place + ".base" : place, i);
  }
}

}  // namespace

json with_lengths(json attention, int64_t T) {
  require(T > 0 && T <= kMaxTrainedLength, "a length that a model is trained at");
  if (!attention.is_object()) return attention;
  const int64_t window = window_in(attention);
  const auto number = [&](const MechanismInfo&, const OptionSpec& o, const Options& options) {
    return o.of_length(options, T, window);
  };
  for_priors(&attention, [&](json& prior, const std::string& place, size_t) {
    for_open_lengths(&prior, true, place, number);
  });
  if (attention.contains("scale")) {
    for_open_lengths(&attention["scale"], false, "scale", number);
  }
  return attention;
}

json with_lengths_of(json attention, const json& source, const TakenLengths& taken) {
  if (!source.is_object() || !attention.is_object()) return attention;
  const int64_t window = window_in(attention);
  struct Theirs {
    json mechanism;
    std::string place;
  };
  const auto take = [&taken, window](json* ours, const Theirs& theirs, bool of_prior) {
    for_open_lengths(
        ours, of_prior, theirs.place,
        [&](const MechanismInfo& info, const OptionSpec& o, const Options& options) -> double {
          const MechanismInfo* const other = info_of(theirs.mechanism, of_prior);
          const bool alike = other != nullptr && are_alike(info, *other, of_prior);
          // Comparing two lengths shows whether the number depends on the length.
          const bool depends = o.of_length(options, 1, window) != o.of_length(options, 2, window);
          if (!alike || !depends) return 0;
          const double number = number_in(theirs.mechanism, o, theirs.place);
          const bool given = number == 0 && o.of_source_length && taken.T > 0;
          return given ? o.of_length(options, taken.T, window) : number;
        });
  };
  std::vector<Theirs> theirs;
  json copy = source;
  for_priors(&copy, [&theirs](const json& of_layer, const std::string& place, size_t) {
    theirs.push_back({of_layer, place});
  });
  if (taken.prior && !theirs.empty()) {
    for_priors(&attention, [&](json& ours, const std::string&, size_t i) {
      take(&ours, theirs[i % theirs.size()], true);
    });
  }
  if (taken.scale && attention.contains("scale") && source.contains("scale")) {
    take(&attention["scale"], {source["scale"], "scale"}, false);
  }
  return attention;
}

}  // namespace bamtrain
