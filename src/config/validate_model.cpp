#include <algorithm>
#include <map>
#include <optional>

#include "config/config_checks.h"
#include "config/mechanism.h"
#include "core/error.h"

namespace bamtrain {

namespace {

class ModelChecks : ConfigChecks {
 public:
  using ConfigChecks::ConfigChecks;

  void check() const {
    heads();
    mechanisms();
    pattern();
  }

 private:
  void heads() const {
    const ModelConfig& m = c_.model;
    if (m.own_head_dim == 0 && m.width % m.heads != 0) {
      refuse(
          "model.heads", "a divisor of model.width = " + text(m.width) + " without model.head_dim",
          text(m.heads),
          "use " + divisors_near(m.width, m.heads) + ", change model.width, or set model.head_dim");
    }
    if (m.kv_heads != 0 && m.heads % m.kv_heads != 0) {
      refuse("model.kv_heads", "a divisor of model.heads = " + text(m.heads), text(m.kv_heads),
             "use " + divisors_near(m.heads, m.kv_heads) + ", or 0 for as many as heads");
    }
  }

  /// Checks each mechanism against this shape; the registries refuse what is not defined for it.
  void mechanisms() const {
    const ScaleChoice& scale = c_.model.attention.scale;
    if (use_ == ConfigUse::training && scale.info().evaluation_only) {
      refuse("model.attention.scale", "a scale that trains",
             "\"" + scale.name() + "\", for evaluation only",
             "train with another scale, and evaluate with bamtrain eval --set "
             "model.attention.scale=" +
                 scale.name());
    }
    for (size_t i = 0; i < priors().size(); ++i) {
      const auto layer = static_cast<int64_t>(i);
      if (!causal() && priors()[i].info().causal_only) {
        refuse(base_path(i), "a bidirectional prior with model.attention.causal false",
               "\"" + priors()[i].name() + "\", which is defined for causal attention only",
               "choose another, or remove model.attention.causal");
      }
      accept(priors()[i], base_path(i), shape());
      if (const MixChoice& mix = c_.model.attention.prior.mix_of(layer)) {
        accept(mix, prior_path(i), c_.model.attention.prior.mix_shape(layer, shape()));
      }
    }
    accept(scale, "model.attention.scale", shape());
    const NormalizerChoice& normalizer = c_.model.attention.normalizer;
    accept(normalizer, "model.attention.normalizer", shape());
    if (!causal() && traits_of(normalizer.info().kind).causal_only) {
      refuse("model.attention.normalizer",
             "a bidirectional normalizer with model.attention.causal false",
             "\"" + normalizer.name() + "\", which is defined for causal attention only",
             "choose another, or remove model.attention.causal");
    }
    if (!traits_of(normalizer.info().kind).takes_scale && !scale.info().is<std::monostate>()) {
      throw Error(ExitCode::config,
                  origin_.at("model.attention.scale", "model.attention.normalizer.name"),
                  "\"none\" with " + normalizer.name() + ", which has no temperature",
                  "\"" + scale.name() + "\"",
                  "set model.attention.scale to none, or choose another normalizer");
    }
    if (normalizer.info().kind != NormalizerKind::softmax && scale.info().is<EntropyKind>()) {
      refuse("model.attention.scale",
             "a scale for " + normalizer.name() + ": \"" + scale.name() +
                 "\" is derived from softmax's entropy",
             "\"" + scale.name() + "\"", "choose another, or none");
    }
  }

  /// `path`: the key of the choice.
  template <class Info>
  void accept(const Choice<Info>& choice, const std::string& path, const ModelShape& shape) const {
    try {
      choice.parameters(shape);
    } catch (const Error& e) {
      const auto word = [&path](const std::string& text) { return with_keys(text, path); };
      throw e.reworded(word).at(origin_.at(word(e.where())));
    }
  }

  /// Checks how the priors of a list relate to the layers and to each other.
  void pattern() const {
    const int64_t layers = c_.model.layers, n = static_cast<int64_t>(priors().size());
    if (layers % n != 0) {
      refuse(kPrior, "a list whose length is a divisor of model.layers = " + text(layers), text(n),
             "give " + divisors_near(layers, n) + " priors, or change model.layers");
    }
    same_randomization();
    std::map<std::string, size_t> owners;  // prior index by name of a shared parameter
    for (size_t i = 0; i < priors().size(); ++i) {
      for (const MechanismParameter& p : priors()[i].parameters(shape())) {
        if (!p.shared) continue;
        const size_t owner = owners.emplace(p.name, i).first->second;
        if (priors()[i] == priors()[owner]) continue;
        refuse(base_path(i),
               "no second prior that shares " + p.name + " between layers, as " + base_path(owner) +
                   " does",
               priors()[i].name(),
               "set share to false in one of them, or give both the same options");
      }
    }
  }

  /// A batch draws one kind of random positions, for all randomized layers.
  void same_randomization() const {
    std::optional<size_t> first;
    for (size_t i = 0; i < priors().size(); ++i) {
      const Randomization own = randomization(priors()[i]);
      if (!own) continue;
      if (!first) first = i;
      const Randomization other = randomization(priors()[*first]);
      if (own.range != other.range) {
        refuse(base_path(i) + ".randomized_length", text(other.range) + ", as in another layer",
               text(own.range), "give all randomized priors the same range");
      }
      if (own == other) continue;
      refuse(base_path(i),
             "randomized positions or distances drawn and evaluated as in " + base_path(*first),
             priors()[i].name() + " and " + priors()[*first].name(),
             "give both the same randomized_draw and eval_positions, and no alibi or "
             "transformer_xl together with a rope");
    }
  }
};

}  // namespace

void check_model(const RunConfig& config, const Origin& origin, ConfigUse use) {
  ModelChecks(config, origin, use).check();
}

}  // namespace bamtrain
