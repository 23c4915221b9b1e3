#pragma once
// What positional priors, logit scales and normalizers declare, each in its own registry: a name,
// options, and parameters with their initial values. Also a configuration's choice among them.

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/options.h"

namespace bamtrain {

/// What a mechanism may know about the model when it sizes and initializes its parameters.
struct ModelShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t width = 0;
  int64_t sequence_length = 0;  // T in training
  // For a mechanism used with a prior: whether that prior adds a bias to the logits.
  bool biased = true;
  bool causal = true;  // no query attends to later keys
};

/// A parameter of a mechanism: one per layer, or one for the whole model if `shared`.
struct MechanismParameter {
  std::string name;            // last part of the checkpoint name, e.g. "theta_alpha"
  std::vector<int64_t> shape;  // e.g. {H}
  bool trained = true;         // false: fixed at its initial value, but still stored
  bool shared = false;         // one for all layers
  std::string init;            // the rule, for `initial` and for the documentation
  // The optimizer clamps every element to this range.
  double minimum = -INFINITY, maximum = INFINITY;
  // Shape (H, C): multiplied with the attention's input, it gives one gate per head and token.
  bool gate = false;
  bool decays = false;  // weight decay acts on it
};

using MechanismParameters = std::vector<MechanismParameter>;

inline MechanismParameters no_parameters(const Options&, const ModelShape&) { return {}; }

/// The part of a registry's entry that all registries share.
///
/// A mechanism does not know its place in a configuration. Its descriptions and errors use names in
/// braces, which the config reader replaces by keys. {share} is the mechanism's option of that
/// name, {} the mechanism itself, {model.heads} a member of ModelShape, and {model.window} the
/// window of all layers.
struct MechanismInfo {
  std::string name;
  std::string formula;  // one line, for --print-schema and the documentation
  std::vector<OptionSpec> options = {};

  /// In the order of `theta` in the formula's hooks. Validates options against the shape. Throws
  /// Error (ExitCode::config) whose where() is a name in braces.
  MechanismParameters (*parameters)(const Options&, const ModelShape&) = no_parameters;
  /// Element `i` of the initial value of parameter `p`. The caller provides the random numbers
  /// `uniform` in [0, 1) and `normal`, which are functions of (seed, full parameter name, i). Null
  /// if the mechanism has no parameters.
  double (*initial)(const Options&, const ModelShape&, const MechanismParameter& p, int64_t i,
                    double uniform, double normal) = nullptr;
};

/// The entry with that name, or null.
template <class Info>
const Info* find_mechanism(const std::vector<Info>& registry, const std::string& name) {
  for (const Info& info : registry) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

/// For mechanisms with trained parameters: whether weight decay acts on them. `parameters` names
/// those whose `decays` the option sets, then any it leaves out: "weight, not on bias".
/// `default_v1` is the option's default in config_version 1.
inline OptionSpec decay_option(const std::string& parameters, bool default_value,
                               bool default_v1 = false) {
  OptionSpec o = {"decay", "weight decay acts on " + parameters, default_value};
  if (default_v1 != default_value) o.default_v1 = default_v1;
  return o;
}

/// A registry entry with its options, as a configuration chooses it by name.
template <class Info>
class Choice {
 public:
  Options options;  // complete: every option that the mechanism declares has a value

  /// No choice yet.
  Choice() = default;
  /// With every option at its default. REQUIRES: `info` outlives the choice, as registries do.
  explicit Choice(const Info& info) : Choice(info, default_options(info.options)) {}
  Choice(const Info& info, Options chosen) : options(std::move(chosen)), info_(&info) {}
  Choice(Info&&, Options = {}) = delete;

  explicit operator bool() const { return info_ != nullptr; }
  const Info& info() const {
    require(info_ != nullptr, "a mechanism that was chosen");
    return *info_;
  }
  const std::string& name() const { return info().name; }
  MechanismParameters parameters(const ModelShape& shape) const {
    return info().parameters(options, shape);
  }
  /// Names are unique in a registry, and so are entries.
  bool operator==(const Choice&) const = default;

 private:
  const Info* info_ = nullptr;
};

}  // namespace bamtrain
