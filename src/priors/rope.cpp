#include "priors/rope.h"

#include "priors/prior.h"

namespace bamtrain {

namespace {

RopeScaling rope_scaling(const Options& o) {
  const std::string& name = o.text("scaling");
  if (name == "linear") return RopeScaling::linear;
  if (name == "ntk") return RopeScaling::ntk;
  if (name == "yarn") return RopeScaling::yarn;
  return name == "llama3" ? RopeScaling::llama3 : RopeScaling::none;
}

std::vector<double> inverse_frequencies(const Options& o, int64_t D, int64_t T) {
  const auto original = static_cast<int64_t>(rope_original_length(o, T));
  std::vector<double> f;
  for (int64_t c = 0; c < D / 2; ++c) {
    f.push_back(scaled_rope_frequency(rope_scaling(o), o.number("factor"), o.number("theta"), c, D,
                                      original));
  }
  return f;
}

double amplitude(const Options& o) { return rope_amplitude(rope_scaling(o), o.number("factor")); }

}  // namespace

double rope_original_length(const Options& o, int64_t T) {
  const RopeScaling scaling = rope_scaling(o);
  if (scaling != RopeScaling::yarn && scaling != RopeScaling::llama3) return 0;
  const double length = o.number("original_length");
  return length > 0 ? length : static_cast<double>(T);
}

PriorInfo rope_prior() {
  PriorInfo p;
  p.name = "rope";
  p.formula = "q, k rotated by position * theta^(-2c/D), half-split pairs";
  p.options = {
      {"theta",
       "base of the frequencies: 500000 in BAM, 10000 in DAPE and ASEntmax",
       10000.0,
       {},
       1.0,
       1e12,
       false,
       500000.0},
      {"scaling",
       "frequency scaling for lengths beyond {model.sequence_length}: linear (position "
       "interpolation), ntk, yarn (with its attention temperature), llama3",
       std::string("none"),
       {"none", "linear", "ntk", "yarn", "llama3"}},
      {"factor",
       "factor by which scaling extends the length; above 1 with scaling",
       1.0,
       {},
       1.0,
       1e6},
      length_option(
          "original_length",
          "training length before scaling, in which yarn and llama3 count rotations; 0: that "
          "of init_from, else {model.sequence_length}",
          [](const Options& o, int64_t T, int64_t) { return rope_original_length(o, T); }, true)};
  p.randomized = Randomized::positions;
  add_randomized_options(&p.options, *p.randomized);
  p.parameters = [](const Options& o, const ModelShape& s) -> MechanismParameters {
    check_randomized(o, s.sequence_length);
    if (s.head_dim % 2 != 0) {
      throw Error(ExitCode::config, "{}",
                  "an even head dimension ({model.head_dim}, or width / heads) for rope",
                  std::to_string(s.head_dim),
                  "set {model.head_dim}, or change {model.width} or {model.heads}");
    }
    const RopeScaling scaling = rope_scaling(o);
    if (scaling == RopeScaling::none && o.number("factor") != 1) {
      throw Error(ExitCode::config, "{factor}", "1 without scaling",
                  std::to_string(o.number("factor")), "set {scaling}");
    }
    if (scaling != RopeScaling::none && o.number("factor") == 1) {
      throw Error(ExitCode::config, "{factor}",
                  "above 1 for " + o.text("scaling") + ": a factor of 1 scales nothing", "1",
                  "set it to the evaluated length over the training length, or remove scaling");
    }
    if (o.number("original_length") != 0 && rope_original_length(o, 1) == 0) {
      throw Error(ExitCode::config, "{original_length}", "0 without yarn or llama3",
                  std::to_string(static_cast<int64_t>(o.number("original_length"))),
                  "set {scaling}, or remove it");
    }
    if (scaling == RopeScaling::ntk && s.head_dim == 2) {
      throw Error(ExitCode::config, "{scaling}",
                  "a head dimension ({model.head_dim}, or width / heads) above 2 for ntk", "2",
                  "choose another");
    }
    if (scaling == RopeScaling::yarn && o.number("theta") <= 1) {
      throw Error(ExitCode::config, "{theta}", "above 1 for yarn", "1", "raise it");
    }
    return {};
  };
  p.family = RotaryFamily{inverse_frequencies, amplitude};
  return p;
}

PriorInfo rope_local_prior() {
  PriorInfo p = rope_prior();
  p.name = "rope_local";
  p.formula += ", with a sliding window";
  p.options.push_back(length_option(
      "window",
      "in layers with this prior, a key is visible iff i - j < window. 0: {model.window}; if that "
      "is 0, the window of init_from, else {model.sequence_length} + 1",
      [](const Options&, int64_t T, int64_t all) {
        return static_cast<double>(all > 0 ? all : T + 1);
      }));
  p.window = [](const Options& o, int64_t T, int64_t all) {
    const auto own = static_cast<int64_t>(o.number("window"));
    return own > 0 ? own : all > 0 ? all : T + 1;
  };
  return p;
}

}  // namespace bamtrain
