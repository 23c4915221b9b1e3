// Absolute positions added to the token embedding: a learned table (DAPE, table 2).

#include "priors/prior.h"

namespace bamtrain {

PriorInfo learned_prior() {
  PriorInfo p;
  p.name = "learned";
  p.formula = "embedding += P[position]";
  p.options = {length_option(
      "positions",
      "rows of the table; 0: those of init_from, else the training length, or randomized_length",
      [](const Options& o, int64_t T, int64_t) {
        return o.flag("randomized") ? 0.0 : static_cast<double>(T);
      })};
  p.randomized = Randomized::positions;
  add_randomized_options(&p.options, *p.randomized);
  p.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    check_randomized(o, s.sequence_length);
    const auto n = static_cast<int64_t>(o.number("positions"));
    const int64_t range = randomization_of(o, s.sequence_length, Randomized::positions).range;
    if (range > 0 && n != 0 && n != range) {
      throw Error(ExitCode::config, "{positions}",
                  "0 with {randomized}: the table has randomized_length = " +
                      std::to_string(range) + " rows",
                  std::to_string(n), "remove it");
    }
    const int64_t positions = range ? range : n ? n : s.sequence_length;
    if (positions < s.sequence_length) {
      throw Error(ExitCode::config, "{positions}",
                  "at least {model.sequence_length} = " + std::to_string(s.sequence_length),
                  std::to_string(positions), "raise it, or set it to 0");
    }
    return {{"weight", {positions, s.width}, true, true, "normal"}};
  };
  p.initial = [](const Options&, const ModelShape&, const MechanismParameter&, int64_t, double,
                 double normal) { return 0.02 * normal; };
  p.family = EmbeddingFamily{};
  return p;
}

}  // namespace bamtrain
