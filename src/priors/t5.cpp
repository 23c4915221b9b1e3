#include "priors/t5.h"

#include <cmath>

namespace bamtrain {

PriorInfo t5_prior() {
  PriorInfo p;
  p.name = T5<double>::kName;
  p.formula = "b = gain bias[bucket(d)]: 32 buckets, exact below 16, then by log d up to 128";
  p.options = {{"share", "one set of biases for all layers instead of one per layer", true},
               {"gain",
                "1, or sqrt(D): the table is then added before logits are multiplied by 1/sqrt(D), "
                "as in DAPE's code",
                std::string("1"),
                {"1", "sqrt(D)"}},
               {"init",
                "initial values: normal (std 0.02) or xavier (normal, std sqrt(2 / (32 + H)); "
                "DAPE's code)",
                std::string("normal"),
                {"normal", "xavier"}},
               decay_option("bias, its table", true, false)};
  p.parameters = [](const Options& o, const ModelShape& s) {
    MechanismParameter table = {
        "bias", {s.heads, T5<double>::kBuckets}, true, o.flag("share"), o.text("init")};
    table.decays = o.flag("decay");
    return MechanismParameters{table};
  };
  p.initial = [](const Options&, const ModelShape& s, const MechanismParameter& q, int64_t, double,
                 double normal) {
    if (q.init != "xavier") return 0.02 * normal;
    return std::sqrt(2 / static_cast<double>(T5<double>::kBuckets + s.heads)) * normal;
  };
  p.family = table_family<T5>(nullptr, [](const Options& o, const ModelShape& s) {
    return o.text("gain") == "1" ? 1 : std::sqrt(static_cast<double>(s.head_dim));
  });
  return p;
}

}  // namespace bamtrain
