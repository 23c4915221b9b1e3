#include "priors/randomized.h"

#include <string>

namespace bamtrain {

void add_randomized_options(std::vector<OptionSpec>* options, Randomized what) {
  const bool positions = what == Randomized::positions;
  options->push_back(
      {"randomized",
       positions ? "train on a sorted random subset of the first randomized_length positions"
                 : "train on distance 0 and a sorted random subset of the distances below "
                   "randomized_length. It is redrawn for every step and layer, the same for all "
                   "sequences",
       false});
  options->push_back(length_option(
      "randomized_length",
      std::string(positions ? "positions" : "distances") + " that training draws from" +
          (positions ? " and an evaluation may reach" : "") +
          "; 0: that of init_from, else four times {model.sequence_length}",
      [](const Options& o, int64_t T, int64_t) {
        return o.flag("randomized") ? 4 * static_cast<double>(T) : 0;
      }));
  if (positions) {
    options->push_back({"randomized_draw",
                        "sequence: redrawn for every sequence, the same in all layers; step: "
                        "redrawn for every step and layer, the same for all sequences, as in Ruoss "
                        "et al.'s code (learned, sinusoidal: for every step)",
                        std::string("sequence"),
                        {"sequence", "step"}});
  }
  options->push_back({"eval_positions",
                      "positions of a randomized prior in evaluation; counted: 0, 1, 2, ...; "
                      "drawn: random as in training, from the seed and the sequence's number",
                      std::string("counted"),
                      {"counted", "drawn"}});
}

Randomization randomization_of(const Options& o, int64_t T, Randomized what) {
  Randomization r;
  if (!o.flag("randomized")) return r;
  const auto length = static_cast<int64_t>(o.number("randomized_length"));
  r.range = length > 0 ? length : 4 * T;
  r.what = what;
  r.of_step = what == Randomized::distances || o.text("randomized_draw") == "step";
  r.in_evaluation = o.text("eval_positions") == "drawn";
  return r;
}

void check_randomized(const Options& o, int64_t T) {
  const auto length = static_cast<int64_t>(o.number("randomized_length"));
  const auto unless_randomized = [&](const std::string& option, const std::string& idle,
                                     const std::string& found) {
    if (o.flag("randomized") || found == idle) return;
    throw Error(ExitCode::config, "{" + option + "}", idle + " unless positions are randomized",
                found, "set {randomized}, or remove it");
  };
  unless_randomized("randomized_length", "0", std::to_string(length));
  if (o.has("randomized_draw")) {
    unless_randomized("randomized_draw", "sequence", o.text("randomized_draw"));
  }
  unless_randomized("eval_positions", "counted", o.text("eval_positions"));
  if (length != 0 && length < T) {
    throw Error(ExitCode::config, "{randomized_length}",
                "0 or at least {model.sequence_length} = " + std::to_string(T),
                std::to_string(length), "raise it, or set it to 0");
  }
}

}  // namespace bamtrain
