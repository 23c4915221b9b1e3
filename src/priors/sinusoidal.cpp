#include "priors/sinusoidal.h"

#include <cmath>

#include "priors/prior.h"

namespace bamtrain {

double sinusoidal_embedding(bool paired, int64_t position, int64_t c, int64_t C) {
  const int64_t exponent = paired ? c - c % 2 : c;
  const double angle = static_cast<double>(position) *
                       pow(10000.0, -static_cast<double>(exponent) / static_cast<double>(C));
  return c % 2 == 0 ? sin(angle) : cos(angle);
}

PriorInfo sinusoidal_prior() {
  PriorInfo p;
  p.name = "sinusoidal";
  p.formula = "embedding += sin, cos(position / 10000^(2c/C))";
  p.options = {{"variant",
                "pair: channels 2c and 2c + 1 share a frequency, as in the original paper; bam: "
                "channel c has 10000^(-c/C), as in BAM's code",
                std::string("pair"),
                {"pair", "bam"}}};
  p.randomized = Randomized::positions;
  add_randomized_options(&p.options, *p.randomized);
  p.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    check_randomized(o, s.sequence_length);
    return {};
  };
  p.family = EmbeddingFamily{[](const Options& o, int64_t position, int64_t c, int64_t C) {
    return sinusoidal_embedding(o.text("variant") == "pair", position, c, C);
  }};
  return p;
}

}  // namespace bamtrain
