#include "priors/alibi.h"

namespace bamtrain {

namespace {
constexpr double kAsymmetry = 0.5;
}

PriorInfo alibi_prior() {
  PriorInfo p;
  p.name = Alibi<double>::kName;
  p.formula =
      "b = -m_h d; with P the largest power of two up to H, m_h = 2^(-8h/P) for h <= P and "
      "2^(-4(2(h-P)-1)/P) for h > P";
  p.options = {{"asymmetry",
                "how much nearer keys before the query count in bidirectional attention; 0: both "
                "sides alike",
                kAsymmetry,
                {},
                0.0,
                1.0}};
  p.randomized = Randomized::distances;
  add_randomized_options(&p.options, *p.randomized);
  p.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    check_randomized(o, s.sequence_length);
    if (s.causal && o.number("asymmetry") != kAsymmetry) {
      throw Error(ExitCode::config, "{asymmetry}", "its default: causal attention does not use it",
                  std::to_string(o.number("asymmetry")), "remove it");
    }
    return {};
  };
  TableFamily family = table_family<Alibi>();
  family.asymmetry = [](const Options& o) { return o.number("asymmetry"); };
  p.family = family;
  return p;
}

}  // namespace bamtrain
