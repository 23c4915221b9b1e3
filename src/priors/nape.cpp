#include "priors/nape.h"

namespace bamtrain {

namespace {

int form_of(const Options& o) {
  const std::string& slopes = o.text("slopes");
  if (slopes == "harmonic") return Nape<double>::kHarmonic;
  if (slopes == "halving") return Nape<double>::kHalving;
  return o.text("slope_heads") == "H" ? Nape<double>::kExponentialOfAll
                                      : Nape<double>::kExponential;
}

}  // namespace

PriorInfo nape_prior() {
  PriorInfo p;
  p.name = Nape<double>::kName;
  p.formula = "b = -m_h d in the first H/2 heads, which no scale acts on; b = 0 in the others";
  p.options = {
      {"slopes",
       "m_h: exponential (ALiBi's; language models), harmonic (1/h, h from 1; synthetic "
       "tasks) or halving (2^(1-h))",
       std::string("exponential"),
       {"exponential", "harmonic", "halving"}},
      {"slope_heads",
       "with exponential: ALiBi's slopes for H/2 heads, or the first H/2 of its slopes for H heads",
       std::string("H/2"),
       {"H/2", "H"}}};
  p.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    if (o.text("slope_heads") == "H" && o.text("slopes") != "exponential") {
      throw Error(ExitCode::config, "{slope_heads}",
                  "\"H/2\" with slopes that do not use it, " + o.text("slopes"), "\"H\"",
                  "remove it, or set {slopes} to \"exponential\"");
    }
    if (s.heads < 2) {
      throw Error(ExitCode::config, "{model.heads}",
                  "at least 2 for nape, whose first H/2 have a bias", std::to_string(s.heads),
                  "raise it, or choose alibi or nope");
    }
    return {};
  };
  p.first_scaled_head = nape_alibi_heads;
  p.family = table_family<Nape>(form_of);
  return p;
}

}  // namespace bamtrain
