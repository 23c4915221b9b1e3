#include "priors/registry.h"

#include <algorithm>

#include "priors/alibi.h"
#include "priors/bam.h"
#include "priors/embedding.h"
#include "priors/fire.h"
#include "priors/kerple.h"
#include "priors/nape.h"
#include "priors/rope.h"
#include "priors/t5.h"
#include "priors/table_prior.h"

namespace bamtrain {

namespace {

std::vector<MechanismParameter> no_parameters(const Options&, const PriorShape&) { return {}; }

template <template <class> class P>
void set_table(PriorInfo& p) {
  p.family = Family::table;
  p.table = TableHooks<P>::table;
  p.table_adjoint = TableHooks<P>::table_adjoint;
}

PriorInfo nope() {
  PriorInfo p;
  p.name = "nope";
  p.formula = "b = 0";
  p.family = Family::none;
  p.parameters = no_parameters;
  return p;
}

PriorInfo alibi() {
  PriorInfo p;
  p.name = "alibi";
  p.formula = "b = -m_h d, m_h = 2^(-8h/H)";
  p.parameters = no_parameters;
  set_table<Alibi>(p);
  return p;
}

bool contains(const StringList& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

PriorInfo bam() {
  PriorInfo p;
  p.name = "bam";
  p.formula =
      "b = -exp(theta_alpha) (|j - i - (exp(theta_mu) - exp(-theta_mu))| + 1e-5)^theta_beta; at "
      "least -1e4, and without a gradient there: beside a key well above it such a key has no "
      "weight, unless a scale acts on the bias with a t below about 0.002, where t b is above -20";
  p.options = {
      {"init",
       "initial values: uniform (all zero), laplace (ALiBi's slopes), linear (theta_beta from 0 to "
       "1 over the heads), normal (theta_alpha, theta_beta ~ N(0, 1))",
       std::string("uniform"),
       {"uniform", "laplace", "linear", "normal"}},
      {"train",
       "which parameters are trained; the others stay at their initial values",
       StringList{"theta_alpha", "theta_beta"},
       {"theta_alpha", "theta_beta", "theta_mu"}},
      {"share", "one set of parameters for all layers instead of one per layer", false},
      decay_option("theta_alpha, theta_beta and theta_mu, where trained", false),
  };
  p.parameters = [](const Options& o, const PriorShape& s) {
    std::vector<MechanismParameter> out;
    for (const char* name : {"theta_alpha", "theta_beta", "theta_mu"}) {
      out.push_back(
          {name, {s.heads}, contains(o.list("train"), name), o.flag("share"), o.text("init")});
      out.back().decays = o.flag("decay");
    }
    return out;
  };
  p.initial = [](const Options&, const PriorShape& s, const MechanismParameter& q, int64_t h,
                 double, double normal) {
    if (q.name == "theta_mu") return 0.0;
    const bool alpha = q.name == "theta_alpha";
    if (q.init == "laplace") return alpha ? std::log(alibi_slope(h, s.heads)) : 1.0;
    if (q.init == "linear") {
      if (alpha || s.heads == 1) return 0.0;
      return static_cast<double>(h) / static_cast<double>(s.heads - 1);
    }
    if (q.init == "normal") return normal;
    return 0.0;
  };
  set_table<Bam>(p);
  return p;
}

PriorInfo nape() {
  PriorInfo p;
  p.name = "nape";
  p.formula = "b = -m_h d in the first H/2 heads, where no scale acts, 0 in the others";
  p.options = {{"slopes",
                "m_h: exponential (ALiBi's; language models), harmonic (1/h, h from 1; synthetic "
                "tasks) or halving (2^(1-h))",
                std::string("exponential"),
                {"exponential", "harmonic", "halving"}},
               {"slope_heads",
                "exponential: ALiBi's slopes for H/2 heads, or the first H/2 of those for H",
                std::string("H/2"),
                {"H/2", "H"}}};
  p.parameters = [](const Options& o, const PriorShape& s) {
    if (o.text("slope_heads") == "H" && o.text("slopes") != "exponential") {
      throw Error(ExitCode::config, "model.attention.prior.slope_heads",
                  "\"H/2\" with slopes that do not depend on it, " + o.text("slopes"), "\"H\"",
                  "remove it, or set model.attention.prior.slopes to \"exponential\"");
    }
    if (s.heads < 2) {
      throw Error(ExitCode::config, "model.heads",
                  "at least 2 for nape, whose first H/2 have a bias", std::to_string(s.heads),
                  "raise it, or choose alibi or nope");
    }
    return std::vector<MechanismParameter>{};
  };
  p.form = [](const Options& o) -> int {
    const std::string& slopes = o.text("slopes");
    if (slopes == "harmonic") return Nape<double>::kHarmonic;
    if (slopes == "halving") return Nape<double>::kHalving;
    return o.text("slope_heads") == "H" ? Nape<double>::kExponentialOfAll
                                        : Nape<double>::kExponential;
  };
  p.first_scaled_head = nape_alibi_heads;
  set_table<Nape>(p);
  return p;
}

PriorInfo kerple() {
  PriorInfo p;
  p.name = "kerple";
  p.formula = "b = -r1 log(1 + r2 d), or -r1 d^r2";
  p.options = {{"kernel",
                "logarithmic: -r1 log(1 + r2 d); power: -r1 d^r2, r2 <= 2",
                std::string("logarithmic"),
                {"logarithmic", "power"}},
               decay_option("r1 and r2", true, false)};
  p.parameters = [](const Options& o, const PriorShape& s) {
    MechanismParameter r1 = {"r1", {s.heads}, true, false, "uniform in [0, 2)"};
    MechanismParameter r2 = {"r2", {s.heads}, true, false, "uniform in [0, 1)"};
    r1.minimum = r2.minimum = Kerple<double>::kFloor;
    r1.decays = r2.decays = o.flag("decay");
    if (o.text("kernel") == "power") r2.maximum = Kerple<double>::kMaxPower;
    return std::vector<MechanismParameter>{r1, r2};
  };
  p.initial = [](const Options&, const PriorShape&, const MechanismParameter& q, int64_t,
                 double uniform, double) {
    return std::max(Kerple<double>::kFloor, (q.name == "r1" ? 2 : 1) * uniform);
  };
  p.form = [](const Options& o) -> int {
    return o.text("kernel") == "power" ? Kerple<double>::kPower : Kerple<double>::kLogarithmic;
  };
  set_table<Kerple>(p);
  return p;
}

/// cable and kcable: W x + w0 per head, the gates whose softplus is summed.
PriorInfo summed(const char* name, SumBias bias, const char* formula) {
  PriorInfo p;
  p.name = name;
  p.formula = std::string(formula) + ", S the running sum of softplus(W x + w0)";
  p.family = Family::sums;
  p.sum_bias = bias;
  p.options = {{"content_scale",
                "s = content_scale <q, k>: 1/sqrt(D) (the paper), 1 (its published module) or "
                "1/sqrt(C), C = width (its published notebook)",
                std::string("1/sqrt(D)"),
                {"1/sqrt(D)", "1", "1/sqrt(C)"}},
               decay_option("weight, the gates' matrix, not on their bias", true, true)};
  p.content_scale = [](const Options& o, const PriorShape& s) {
    const std::string& scale = o.text("content_scale");
    if (scale == "1/sqrt(C)") return 1 / std::sqrt(static_cast<double>(s.width));
    return scale == "1" ? 1.0 : 0.0;
  };
  p.parameters = [](const Options& o, const PriorShape& s) {
    MechanismParameter weight = {"weight", {s.heads, s.width}, true, false, "normal, std 0.02"};
    weight.gate = true;
    weight.decays = o.flag("decay");
    return std::vector<MechanismParameter>{weight, {"bias", {s.heads}, true, false, "0"}};
  };
  p.initial = [](const Options&, const PriorShape&, const MechanismParameter& q, int64_t, double,
                 double normal) { return q.gate ? 0.02 * normal : 0.0; };
  return p;
}

PriorInfo fire() {
  PriorInfo p;
  p.name = "fire";
  p.formula =
      "b = f(psi(d) / psi(max(i, |m| L0))), psi(x) = log(|c| x + 1), f a network of 32 hidden "
      "ReLU, whose output bias b2 softmax does not read: it drifts with the rounding of its "
      "gradient";
  p.family = Family::fire;
  p.options = {{"threshold_length", "L0; 0: the training length", 0.0, {}, 0.0, 1e9, true},
               decay_option("c, m, w1 and w2, not on b1 and b2", true, false)};
  p.parameters = [](const Options& o, const PriorShape& s) {
    constexpr int64_t F = kFireHidden;
    std::vector<MechanismParameter> out = {{"c", {1}, true, false, "0.1"},
                                           {"m", {1}, true, false, "1"},
                                           {"w1", {F}, true, false, "uniform in [-1, 1)"},
                                           {"b1", {F}, true, false, "uniform in [-1, 1)"},
                                           {"w2", {s.heads, F}, true, false, "uniform, 1/sqrt(32)"},
                                           {"b2", {s.heads}, true, false, "uniform, 1/sqrt(32)"}};
    for (MechanismParameter& q : out) {
      q.decays = o.flag("decay") && q.name != "b1" && q.name != "b2";
    }
    return out;
  };
  p.initial = [](const Options&, const PriorShape&, const MechanismParameter& q, int64_t,
                 double uniform, double) {
    if (q.name == "c") return 0.1;
    if (q.name == "m") return 1.0;
    const double bound = q.name.back() == '1' ? 1 : 1 / std::sqrt(1.0 * kFireHidden);
    return bound * (2 * uniform - 1);
  };
  p.threshold_length = [](const Options& o, int64_t T) {
    const double length = o.number("threshold_length");
    return length > 0 ? length : static_cast<double>(T);
  };
  return p;
}

PriorInfo t5() {
  PriorInfo p;
  p.name = "t5";
  p.formula = "b = gain bias[bucket(d)]: 32 buckets, exact below 16, then by log d up to 128";
  p.options = {{"share", "one set of biases for all layers instead of one per layer", true},
               {"gain",
                "1, or sqrt(D): the table then stands beside the products before 1/sqrt(D), as in "
                "DAPE's code",
                std::string("1"),
                {"1", "sqrt(D)"}},
               {"init",
                "initial values: normal (std 0.02) or xavier (normal, std sqrt(2 / (32 + H)); "
                "DAPE's code)",
                std::string("normal"),
                {"normal", "xavier"}},
               decay_option("bias, its table", true, false)};
  p.parameters = [](const Options& o, const PriorShape& s) {
    MechanismParameter table = {
        "bias", {s.heads, T5<double>::kBuckets}, true, o.flag("share"), o.text("init")};
    table.decays = o.flag("decay");
    return std::vector<MechanismParameter>{table};
  };
  p.initial = [](const Options&, const PriorShape& s, const MechanismParameter& q, int64_t, double,
                 double normal) {
    if (q.init != "xavier") return 0.02 * normal;
    return std::sqrt(2 / static_cast<double>(T5<double>::kBuckets + s.heads)) * normal;
  };
  p.gain = [](const Options& o, const PriorShape& s) {
    return o.text("gain") == "1" ? 1 : std::sqrt(static_cast<double>(s.head_dim));
  };
  set_table<T5>(p);
  return p;
}

RopeScaling rope_scaling(const Options& o) {
  const std::string& name = o.text("scaling");
  if (name == "linear") return RopeScaling::linear;
  if (name == "ntk") return RopeScaling::ntk;
  if (name == "yarn") return RopeScaling::yarn;
  return name == "llama3" ? RopeScaling::llama3 : RopeScaling::none;
}

int64_t randomized_length(const Options& o, int64_t T) {
  if (!o.flag("randomized")) return 0;
  const auto length = static_cast<int64_t>(o.number("randomized_length"));
  return length > 0 ? length : 4 * T;
}

void check_randomized(const Options& o, int64_t T) {
  const std::string key = "model.attention.prior.randomized_length";
  const auto length = static_cast<int64_t>(o.number("randomized_length"));
  if (length != 0 && !o.flag("randomized")) {
    throw Error(ExitCode::config, key, "0 unless positions are randomized", std::to_string(length),
                "set model.attention.prior.randomized, or remove it");
  }
  if (length != 0 && length < T) {
    throw Error(ExitCode::config, key, "0 or at least data.sequence_length = " + std::to_string(T),
                std::to_string(length), "raise it, or set it to 0");
  }
}

PriorInfo rope() {
  PriorInfo p;
  p.name = "rope";
  p.formula = "q, k rotated by position * theta^(-2c/D), half-split pairs";
  p.family = Family::rotary;
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
       "of frequencies for lengths past data.sequence_length: linear (position "
       "interpolation), ntk, yarn (with its attention temperature), llama3",
       std::string("none"),
       {"none", "linear", "ntk", "yarn", "llama3"}},
      {"factor",
       "by how much scaling stretches the length; above 1 with scaling",
       1.0,
       {},
       1.0,
       1e6},
      {"randomized",
       "training positions are a sorted random subset of the randomized_length first, anew "
       "for every sequence",
       false},
      {"randomized_length",
       "positions that training draws from and an evaluation may reach; 0: four times "
       "data.sequence_length",
       0.0,
       {},
       0.0,
       1e9,
       true}};
  p.parameters = [](const Options& o, const PriorShape& s) {
    check_randomized(o, s.sequence_length);
    if (s.head_dim % 2 != 0) {
      throw Error(ExitCode::config, "model.attention.prior",
                  "an even head dimension (model.head_dim, or width / heads) for rope",
                  std::to_string(s.head_dim),
                  "set model.head_dim, or change model.width or model.heads");
    }
    const RopeScaling scaling = rope_scaling(o);
    const std::string factor_key = "model.attention.prior.factor";
    if (scaling == RopeScaling::none && o.number("factor") != 1) {
      throw Error(ExitCode::config, factor_key, "1 without scaling",
                  std::to_string(o.number("factor")), "set model.attention.prior.scaling");
    }
    if (scaling != RopeScaling::none && o.number("factor") == 1) {
      throw Error(ExitCode::config, factor_key,
                  "above 1 for " + o.text("scaling") + ": a factor of 1 scales nothing", "1",
                  "set it to the evaluated length over the training length, or remove scaling");
    }
    if (scaling == RopeScaling::ntk && s.head_dim == 2) {
      throw Error(ExitCode::config, "model.attention.prior.scaling",
                  "a head dimension (model.head_dim, or width / heads) above 2 for ntk", "2",
                  "choose another");
    }
    if (scaling == RopeScaling::yarn && o.number("theta") <= 1) {
      throw Error(ExitCode::config, "model.attention.prior.theta", "above 1 for yarn", "1",
                  "raise it");
    }
    return std::vector<MechanismParameter>{};
  };
  p.inverse_frequencies = [](const Options& o, int64_t D, int64_t T) {
    std::vector<double> f;
    for (int64_t c = 0; c < D / 2; ++c) {
      f.push_back(
          scaled_rope_frequency(rope_scaling(o), o.number("factor"), o.number("theta"), c, D, T));
    }
    return f;
  };
  p.rotary_amplitude = [](const Options& o) {
    return rope_amplitude(rope_scaling(o), o.number("factor"));
  };
  p.randomized_positions = randomized_length;
  return p;
}

PriorInfo rope_local() {
  PriorInfo p = rope();
  p.name = "rope_local";
  p.formula += ", in a window";
  p.options.push_back({"window",
                       "a key is visible iff i - j < window, in the layers with this prior; 0: "
                       "model.attention.window, or data.sequence_length + 1 where that is 0",
                       0.0,
                       {},
                       0.0,
                       1e9,
                       true});
  p.window = [](const Options& o, int64_t T, int64_t all) {
    const auto own = static_cast<int64_t>(o.number("window"));
    return own > 0 ? own : all > 0 ? all : T + 1;
  };
  return p;
}

PriorInfo sinusoidal() {
  PriorInfo p;
  p.name = "sinusoidal";
  p.formula = "embedding += sin, cos(position / 10000^(2c/C))";
  p.family = Family::embedding;
  p.options = {
      {"variant",
       "pair: channels 2c and 2c + 1 share a frequency, as in the original; bam: channel c "
       "has 10000^(-c/C), as in BAM's code",
       std::string("pair"),
       {"pair", "bam"}}};
  p.parameters = no_parameters;
  p.embedding = [](const Options& o, int64_t position, int64_t c, int64_t C) {
    return sinusoidal_embedding(o.text("variant") == "pair", position, c, C);
  };
  return p;
}

PriorInfo learned() {
  PriorInfo p;
  p.name = "learned";
  p.formula = "embedding += P[position]";
  p.family = Family::embedding;
  p.options = {
      {"positions", "length of the table; 0: the training length", 0.0, {}, 0.0, 1e9, true}};
  p.parameters = [](const Options& o, const PriorShape& s) {
    const auto n = static_cast<int64_t>(o.number("positions"));
    const int64_t positions = n ? n : s.sequence_length;
    if (positions < s.sequence_length) {
      throw Error(ExitCode::config, "model.attention.prior.positions",
                  "at least data.sequence_length = " + std::to_string(s.sequence_length),
                  std::to_string(positions), "raise it, or set it to 0");
    }
    return std::vector<MechanismParameter>{{"weight", {positions, s.width}, true, true, "normal"}};
  };
  p.initial = [](const Options&, const PriorShape&, const MechanismParameter&, int64_t, double,
                 double normal) { return kLearnedEmbeddingStd * normal; };
  return p;
}

}  // namespace

const std::vector<PriorInfo>& all_priors() {
  static const std::vector<PriorInfo> priors = {
      nope(),
      alibi(),
      nape(),
      bam(),
      kerple(),
      t5(),
      fire(),
      summed("cable", SumBias::difference, "b = S_j - S_i"),
      summed("kcable", SumBias::log_square, "b = -log(1 + (S_i - S_j)^2)"),
      rope(),
      rope_local(),
      sinusoidal(),
      learned()};
  return priors;
}

const PriorInfo* find_prior(const std::string& name) {
  for (const PriorInfo& p : all_priors()) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

}  // namespace bamtrain
