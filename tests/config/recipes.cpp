// The papers' configs, compared with the papers' figures, each stated once here: sizes, budgets,
// optimizers, and what defines each baseline. Sources: BAM, appendix H and its code; Cable, section
// 4 and its code; ASEntmax, appendices F.1 and G.3; DAPE, appendices A and B and its code
// (GPT-NeoX).

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fixture.h"

using namespace bamtrain;

namespace {

struct Size {
  int64_t C, L, H, F;
};

/// What all models of a paper share.
struct Paper {
  int64_t vocab;
  bool tied, bias, document_mask;
  MlpKind mlp;
  NormKind norm;
  InitKind init;
  OptimizerKind optimizer;
  ScheduleKind schedule;
  int64_t warmup;
  double weight_decay = 0.1;
};

constexpr Paper kBam = {32768,
                        false,
                        false,
                        true,
                        MlpKind::swiglu,
                        NormKind::rmsnorm,
                        InitKind::torch,
                        OptimizerKind::radam,
                        ScheduleKind::cosine,
                        0};
// BAM's context extension: continues the optimizer state of a checkpoint, at the learning rate with
// which that run ended.
constexpr Paper kBamExtension = {32768,
                                 false,
                                 false,
                                 true,
                                 MlpKind::swiglu,
                                 NormKind::rmsnorm,
                                 InitKind::torch,
                                 OptimizerKind::radam,
                                 ScheduleKind::constant,
                                 0};
constexpr Paper kCable = {50304,
                          true,
                          true,
                          false,
                          MlpKind::gelu,
                          NormKind::layernorm,
                          InitKind::gpt2,
                          OptimizerKind::adamw,
                          ScheduleKind::cosine,
                          750};
constexpr Paper kDape = {50304,
                         false,
                         true,
                         false,
                         MlpKind::gelu_erf,
                         NormKind::layernorm,
                         InitKind::neox,
                         OptimizerKind::adamw,
                         ScheduleKind::cosine,
                         500};
constexpr Paper kAsentmax = {128256,
                             false,
                             false,
                             false,
                             MlpKind::swiglu,
                             NormKind::rmsnorm,
                             InitKind::gpt2,
                             OptimizerKind::adamw,
                             ScheduleKind::wsd,
                             1350};

// ASEntmax, appendix F.1.
constexpr Paper kScales = {32768,
                           true,
                           false,
                           false,
                           MlpKind::swiglu,
                           NormKind::rmsnorm,
                           InitKind::gpt2,
                           OptimizerKind::adamw,
                           ScheduleKind::cosine,
                           477,
                           0.001};

using Values = std::map<std::string, OptionValue>;

/// A mechanism and the options that the paper fixes.
struct Mechanism {
  const char* name;
  Values options = {};
};

/// What is specific to a config. `options`: the prior's options that the paper fixes.
struct Recipe {
  const Paper& paper;
  Size size;
  int64_t T, tokens_per_step, steps;
  double lr;
  const char* prior;
  Values options;
  Mechanism scale = {"none"};
  int64_t micro_batch = 0;  // 0: not set
  Mechanism normalizer = {"softmax"};
  Values mix = {};  // options of "dape", whose base is `prior`; empty: no mix
};

constexpr Size kBam120 = {768, 12, 16, 1536}, kTiny = {512, 6, 8, 2048}, kGpt = {768, 12, 12, 3072};
constexpr Size kAsentmax420 = {768, 24, 12, 3072};
constexpr int64_t kBamTokens = 589824, kHalfMillion = 524288, kDapeTokens = 256 * 512;

using Text = std::string;

std::map<std::string, Recipe> recipes() {
  const Values bam = {{"init", Text("uniform")},
                      {"train", StringList{"theta_alpha", "theta_beta"}},
                      {"share", false},
                      {"decay", false}};
  const Values cable = {{"content_scale", Text("1/sqrt(D)")}, {"decay", true}};
  const Values rope = {{"theta", 10000.0}};
  const Values nape = {{"slopes", Text("exponential")}, {"slope_heads", Text("H/2")}};
  const Mechanism ssmax = {
      "ssmax",
      {{"delta", 0.0}, {"offset", 0.0}, {"init", 1.0}, {"init_std", 0.0}, {"decay", false}}};
  const Mechanism adaptive = {"adaptive",
                              {{"delta", 1.0}, {"g", 2.0}, {"bias", false}, {"decay", false}}};
  const Mechanism entmax = {"entmax", {{"alpha", 1.5}, {"learned", false}}};
  Values randomized = rope;
  randomized["randomized"] = true;
  randomized["randomized_length"] = 2048.0;  // 4 T
  const auto of_bam = [](Size size, double lr, const char* prior, const Values& options,
                         const Mechanism& scale) {
    return Recipe{kBam, size, 512, kBamTokens, 19251, lr, prior, options, scale};
  };
  const auto of_tiny = [](const char* prior, const Values& options) {
    return Recipe{kCable, kTiny, 512, kHalfMillion, 5000, 6e-4, prior, options, {"none"}, 128};
  };
  const auto of_dape = [](const char* prior, const Values& options) {
    return Recipe{kDape, kGpt, 512, kDapeTokens, 50000, 6e-4, prior, options};
  };
  const auto of_asentmax = [](const char* prior, const Values& options) {
    return Recipe{kAsentmax, kAsentmax420, 2048, kHalfMillion, 13500, 3e-4, prior, options};
  };
  Recipe asentmax = of_asentmax("nape", nape);
  asentmax.scale = adaptive;
  asentmax.normalizer = entmax;
  const auto mixed = [](Recipe recipe) {
    recipe.mix = {{"variant", Text("concat_residual")}, {"hidden", 32.0}, {"decay", true}};
    return recipe;
  };
  const Values kerple = {{"kernel", Text("logarithmic")}, {"decay", true}};
  const Values fire = {{"threshold_length", 128.0}, {"decay", true}};
  Values leaky_fire = fire;
  leaky_fire["negative_slope"] = 0.01;
  const auto of_dape_350m = [](const char* prior, const Values& options) {
    return Recipe{kDape, {1024, 24, 16, 4096}, 512, kDapeTokens, 50000, 3e-4, prior, options};
  };
  // GPT-3's size and learning rate.
  const Recipe kerple_2_7b = {
      kDape, {2560, 32, 32, 10240}, 512, kDapeTokens, 50000, 1.6e-4, "kerple", kerple};
  return {
      {"bam-120m", of_bam(kBam120, 1e-3, "bam", bam, ssmax)},
      {"bam-extension-120m",
       {kBamExtension, kBam120, 1024, kBamTokens, 256, 1e-4, "bam", bam, ssmax}},
      {"bam-432m", of_bam({1536, 14, 24, 3072}, 5e-4, "bam", bam, ssmax)},
      {"bam-1.1b", of_bam({2048, 15, 32, 8192}, 3e-4, "bam", bam, ssmax)},
      {"bam-nope-120m", of_bam(kBam120, 1e-3, "nope", {}, {"none"})},
      {"bam-alibi-120m", of_bam(kBam120, 1e-3, "alibi", {}, {"none"})},
      {"bam-rope-120m", of_bam(kBam120, 1e-3, "rope", {{"theta", 500000.0}}, {"none"})},
      {"bam-sinusoidal-120m",
       of_bam(kBam120, 1e-3, "sinusoidal", {{"variant", Text("bam")}}, {"none"})},

      {"cable-tiny", of_tiny("cable", cable)},
      {"kcable-tiny", of_tiny("kcable", cable)},
      {"cable-rope-tiny", of_tiny("rope", rope)},
      {"cable-alibi-tiny", of_tiny("alibi", {})},
      {"cable-sinusoidal-tiny", of_tiny("sinusoidal", {{"variant", Text("pair")}})},
      {"cable-t5-tiny",
       of_tiny("t5", {{"gain", Text("1")}, {"init", Text("normal")}, {"share", true}})},
      {"cable-small",
       {kCable, kGpt, 1024, kHalfMillion, 19000, 6e-4, "cable", cable, {"none"}, 32}},
      {"cable-medium",
       {kCable,
        {1024, 24, 16, 4096},
        1024,
        kHalfMillion,
        19000,
        6e-4,
        "cable",
        cable,
        {"none"},
        16}},

      {"dape-rope-125m", of_dape("rope", rope)},
      {"dape-randomized-rope-125m", of_dape("rope", randomized)},
      {"dape-alibi-125m", of_dape("alibi", {})},
      {"dape-t5-125m", of_dape("t5", {{"gain", Text("sqrt(D)")},
                                      {"init", Text("xavier")},
                                      {"share", true},
                                      {"decay", true}})},
      {"dape-kerple-125m", of_dape("kerple", kerple)},
      {"dape-fire-125m", of_dape("fire", fire)},
      {"dape-transformer-xl-125m",
       {kDape, kGpt, 128, 256 * 128, 50000, 6e-4, "transformer_xl", {{"decay", true}}}},
      {"dape-cope-125m",
       {kDape, kGpt, 128, 256 * 128, 50000, 6e-4, "cope", {{"positions", 64.0}, {"decay", true}}}},
      {"dape-kerple-350m", of_dape_350m("kerple", kerple)},
      {"dape-dape-kerple-125m", mixed(of_dape("kerple", kerple))},
      {"dape-dape-fire-125m", mixed(of_dape("fire", leaky_fire))},
      {"dape-dape-alibi-125m", mixed(of_dape("alibi", {}))},
      {"dape-dape-kerple-350m", mixed(of_dape_350m("kerple", kerple))},
      {"dape-dape-fire-350m", mixed(of_dape_350m("fire", leaky_fire))},
      {"dape-dape-alibi-350m", mixed(of_dape_350m("alibi", {}))},
      {"dape-dape-kerple-2.7b", mixed(kerple_2_7b)},

      {"asentmax-rope-420m", of_asentmax("rope", rope)},
      {"asentmax-nape-420m", of_asentmax("nape", nape)},
      {"asentmax-420m", asentmax},
      {"asentmax-by-length-120m",
       {kScales,
        {768, 12, 12, 2048},
        1024,
        int64_t{1} << 20,
        4769,  // 5B tokens
        6e-4,
        "rope",
        rope,
        {"by_length", {{"lengths", 1024.0}, {"decay", false}}}}},
  };
}

bool is_of_a_paper(const std::string& name) {
  for (const char* paper : {"bam-", "cable-", "kcable-", "dape-", "asentmax-"}) {
    if (name.starts_with(paper)) return true;
  }
  return false;
}

template <class Info>
void check_mechanism(const Choice<Info>& found, const Mechanism& expected) {
  CHECK(found.name() == expected.name);
  for (const auto& [name, value] : expected.options) {
    INFO("option " << name);
    REQUIRE(found.options.has(name));
    CHECK((found.options.values().at(name) == value));
  }
}

bool is_of_bam(const Paper& p) { return &p == &kBam || &p == &kBamExtension; }

void check(const RunConfig& c, const Recipe& r) {
  const Paper& p = r.paper;
  const ModelConfig& m = c.model;
  CHECK(m.vocab == p.vocab);
  CHECK((m.width == r.size.C && m.layers == r.size.L && m.heads == r.size.H));
  CHECK((m.kv_heads == m.heads && m.heads * m.head_dim() == m.width));
  CHECK((m.mlp.kind == p.mlp && m.mlp.hidden == r.size.F));
  CHECK((m.norm.kind == p.norm && m.norm.eps == 1e-5));
  CHECK((m.tied == p.tied && m.bias == BiasParts(p.bias)));
  CHECK(m.init == p.init);
  CHECK_FALSE(m.embed_scale);
  CHECK(m.norm_position == NormPosition::pre);
  CHECK(m.attention.document_mask == p.document_mask);
  CHECK(m.attention.window == 0);

  CHECK(c.data.sequence_length == r.T);
  CHECK(c.train.tokens_per_step == r.tokens_per_step);
  CHECK(c.train.steps == r.steps);
  CHECK(c.train.precision == Precision::bf16);
  if (r.micro_batch > 0) CHECK(c.train.micro_batch == r.micro_batch);
  if (is_of_bam(p)) CHECK(c.seed == 42);
  CHECK(c.init_from.optimizer == (&p == &kBamExtension));
  CHECK(c.init_from.folder.empty() == (&p != &kBamExtension));
  // One pass in file order, where the paper says so.
  if (is_of_bam(p) || &p == &kCable) CHECK_FALSE(c.data.shuffle);

  const OptimizerConfig& o = c.optimizer;
  CHECK(o.name == p.optimizer);
  CHECK(o.lr == r.lr);
  CHECK((o.beta1 == 0.9 && o.beta2 == 0.95 && o.eps == 1e-8));
  CHECK((o.weight_decay == p.weight_decay && o.clip == 1.0));
  CHECK(o.lr_multipliers.empty());
  const ScheduleConfig& s = c.schedule;
  CHECK((s.name == p.schedule && s.warmup_steps == p.warmup && s.min_ratio == 0.1));
  if (s.name == ScheduleKind::wsd) {
    CHECK((s.decay_steps == 1350 && s.decay_shape == DecayShape::cosine && s.reaches_minimum));
  }

  REQUIRE(m.attention.prior.pattern.size() == 1);
  check_mechanism(m.attention.prior.of(0), {r.prior, r.options});
  const MixChoice& mix = m.attention.prior.mix_of(0);
  CHECK(static_cast<bool>(mix) == !r.mix.empty());
  if (mix) check_mechanism(mix, {"dape", r.mix});
  check_mechanism(m.attention.scale, r.scale);
  check_mechanism(m.attention.normalizer, r.normalizer);
  if (m.attention.scale.name() == "ssmax") {
    CHECK(m.attention.scale.options.text("scale_bias") == "auto");  // true with bam
  }
}

}  // namespace

/// The file states what defines a baseline, since defaults may change in a later version.
void check_stated(const nlohmann::json& file, const Recipe& r) {
  const nlohmann::json& model = file.at("model");
  CHECK(model.contains("embed_scale"));
  const nlohmann::json& attention = model.at("attention");
  const auto check_options = [](const nlohmann::json& mechanism, const Values& options) {
    for (const auto& [name, unused] : options) {
      INFO("option " << name);
      CHECK(mechanism.contains(name));
    }
  };
  const nlohmann::json& prior = attention.at("prior");
  check_options(r.mix.empty() ? prior : prior.at("base"), r.options);
  check_options(prior, r.mix);
  check_options(attention.at("scale"), r.scale.options);
  if (!r.normalizer.options.empty()) {
    check_options(attention.at("normalizer"), r.normalizer.options);
  }
}

/// The longest length for perplexity. A config has every length that the paper reports, up to this
/// one.
int64_t longest(const Recipe& r) {
  if (r.options.contains("randomized")) return 2048;
  if (&r.paper == &kDape) return 8192;
  if (&r.paper == &kScales) return 1024;  // the length of the learned table
  return is_of_bam(r.paper) ? 32768 : 16384;
}

TEST_CASE("configurations of papers have their papers' figures") {
  std::map<std::string, Recipe> expected = recipes();
  for (const auto& file : shipped_configs()) {
    const std::string name = file.stem().string();
    if (!is_of_a_paper(name)) continue;
    INFO(file.string());
    const auto recipe = expected.find(name);
    REQUIRE(recipe != expected.end());
    const RunConfig c = read_run_config(file.string(), {});
    check(c, recipe->second);
    check_stated(bamtrain::read_config_document(file.string()).root, recipe->second);
    CHECK(c.eval.lengths.back() == longest(recipe->second));
    expected.erase(recipe);
  }
  for (const auto& [name, unused] : expected) {
    INFO("no such file: configs/" << name << ".json");
    CHECK(false);
  }
}

// Cable and DAPE use GPT-2's vocabulary; their models have 47 more rows.
TEST_CASE("configurations with GPT-2's vocabulary name its end of text, and no others do") {
  int64_t named = 0;
  for (const auto& file : shipped_configs()) {
    INFO(file.filename());
    const RunConfig c = read_run_config(file.string(), {});
    const bool gpt2 = c.model.vocab == 50257 || c.model.vocab == 50304;
    CHECK(c.data.document_start == (gpt2 ? std::optional<int64_t>(50256) : std::nullopt));
    named += gpt2;
  }
  CHECK(named > 0);
}
