// The golden models of tests/golden, computed by an independent script (scripts/golden/models.py).
// Compares logits, loss and gradients in fp64, and in fp32 and bf16 on the CPU backend.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "build.h"
#include "catch.h"
#include "checkpoint/safetensors.h"
#include "golden_options.h"
#include "mixes/registry.h"
#include "normalizers/registry.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

using Json = nlohmann::json;

struct Golden {
  std::string name;
  SafetensorsFile file;
  ModelConfig config;
  Batch batch;
  int64_t trained_T = 0;

  std::vector<double> values(const std::string& tensor) const {
    const SafetensorsFile::Entry* entry = file.find(tensor);
    REQUIRE(entry != nullptr);
    REQUIRE(entry->dtype == Dtype::f64);
    std::vector<double> x(static_cast<size_t>(entry->bytes) / sizeof(double));
    file.read(*entry, x.data());
    return x;
  }
};

ModelConfig golden_config(const Json& m) {
  const std::string mlp = m["mlp"]["kind"], norm_kind = m["norm"]["kind"];
  const Json& attention = m["attention"];
  ModelConfig c;
  c.vocab = m["vocab"];
  c.width = m["width"];
  c.layers = m["layers"];
  c.heads = m["heads"];
  c.kv_heads = m["kv_heads"];
  c.mlp.hidden = m["mlp"]["hidden"];
  const std::map<std::string, MlpKind> mlps = {{"swiglu", MlpKind::swiglu},
                                               {"geglu", MlpKind::geglu},
                                               {"gelu", MlpKind::gelu},
                                               {"gelu_erf", MlpKind::gelu_erf},
                                               {"relu", MlpKind::relu}};
  const std::map<std::string, NormPosition> norm_positions = {
      {"pre", NormPosition::pre}, {"post", NormPosition::post}, {"both", NormPosition::both}};
  c.mlp.kind = mlps.at(mlp);
  c.norm_position = norm_positions.at(m.value("norm_position", "pre"));
  c.own_head_dim = m.value("head_dim", 0);
  c.embed_scale = m.value("embed_scale", false);
  c.norm.kind = norm_kind == "rmsnorm" ? NormKind::rmsnorm : NormKind::layernorm;
  c.norm.eps = m["norm"]["eps"];
  c.tied = m["tied"];
  if (m["bias"].is_array()) {
    for (const auto& [name, part] : kBiasPartNames) {
      c.bias.*part = std::count(m["bias"].begin(), m["bias"].end(), name) > 0;
    }
  } else {
    c.bias = m["bias"].get<bool>();
  }
  c.classes = m.value("classes", 0);
  const Json& priors = attention["prior"];
  for (const Json& p : priors.is_array() ? priors : Json::array({priors})) {
    const bool mixes = find_mix(p["name"]) != nullptr;
    const Json& base = mixes ? p["base"] : p;
    c.attention.prior.pattern.push_back(prior(base["name"], options_of(base)));
    Json own = p;
    own.erase("base");
    c.attention.prior.mixes.push_back(
        mixes ? mixed(p["name"], prior("nope"), options_of(own)).mixes[0] : MixChoice());
  }
  c.attention.scale = scale(attention["scale"]["name"], options_of(attention["scale"]));
  if (attention.contains("normalizer")) {
    const Json& n = attention["normalizer"];
    c.attention.normalizer = normalizer(n["name"], options_of(n));
  }
  c.attention.window = attention["window"];
  c.attention.document_mask = attention["document_mask"];
  c.attention.causal = attention.value("causal", true);
  return c;
}

Golden open_golden(const std::filesystem::path& path) {
  Golden g{path.stem().string(), SafetensorsFile::open(path.string()), {}, {}, 0};
  const Json config = Json::parse(g.file.metadata().at("config"));
  g.config = golden_config(config["model"]);
  const SafetensorsFile::Entry* tokens = g.file.find("tokens");
  REQUIRE(tokens != nullptr);
  std::vector<int32_t> rows(static_cast<size_t>(tokens->bytes) / sizeof(int32_t));
  g.file.read(*tokens, rows.data());
  g.batch.B = tokens->shape.at(0);
  g.batch.T = tokens->shape.at(1) - 1;
  g.trained_T = config["data"]["sequence_length"];
  REQUIRE(g.batch.T == config["data"].value("length", g.trained_T));
  g.batch.document_start = config["data"]["document_start"].get<int64_t>();
  for (int64_t b = 0; b < g.batch.B; ++b) {
    const auto row = rows.begin() + b * (g.batch.T + 1);
    g.batch.tokens.insert(g.batch.tokens.end(), row, row + g.batch.T);
    g.batch.targets.insert(g.batch.targets.end(), row + 1, row + g.batch.T + 1);
  }
  if (g.config.classes > 0) g.batch = with_classes(g.batch, g.config.classes);
  g.batch.set_lengths(config["data"].value("lengths", g.batch.lengths_or_all()));
  if (const SafetensorsFile::Entry* positions = g.file.find("positions")) {
    const size_t draws = positions->shape.size() > 2 ? positions->shape[0] : 1;
    g.batch.positions.resize(draws * g.batch.tokens.size());
    REQUIRE(positions->bytes == static_cast<int64_t>(g.batch.positions.size() * sizeof(int32_t)));
    g.file.read(*positions, g.batch.positions.data());
  }
  return g;
}

std::vector<Golden> all_goldens() {
  const char* root = std::getenv("BAMTRAIN_SOURCE");
  std::vector<std::filesystem::path> paths;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(root ? root : ".") + "/tests/golden")) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("model_") || name.starts_with("normalizer_")) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Golden> goldens;
  for (const auto& path : paths) goldens.push_back(open_golden(path));
  return goldens;
}

/// Whether the file has gradients.
bool trains(const Golden& g) { return use_of(g.config) == ModelUse::training; }

Run run_of(const Golden& g, Dtype activations) {
  return {g.config, activations, g.batch.B, g.batch.T, use_of(g.config), g.trained_T};
}

/// The loss of the file's batch. Also computes gradients if the file has them.
double loss_of(const Golden& g, Run& run) {
  return trains(g) ? run.differentiate(g.batch) : run.loss(g.batch);
}

/// Sets the golden parameters. The file must have exactly the model's parameters.
void load(const Golden& g, Run& run) {
  size_t gradients = 0;
  for (const Parameter& p : run.parameters()) {
    INFO(p.name);
    const SafetensorsFile::Entry* entry = g.file.find(p.name);
    REQUIRE(entry != nullptr);
    REQUIRE(entry->shape == p.shape);
    REQUIRE((g.file.find("grad." + p.name) != nullptr) == (p.trained && trains(g)));
    gradients += p.trained && trains(g);
    run.set_parameter(p.name, g.values(p.name));
  }
  size_t rows = 0;  // read by normalizer_rows.cpp
  for (const SafetensorsFile::Entry& e : g.file.tensors()) rows += e.name.starts_with("rows.");
  REQUIRE(g.file.tensors().size() ==
          run.parameters().size() + gradients + 3 + rows + !g.batch.positions.empty());
}

TEST_CASE("there is a golden model for every prior, scale and normalizer") {
  std::vector<std::string> priors, mixes, scales, normalizers;
  for (const Golden& g : all_goldens()) {
    for (const PriorChoice& p : g.config.attention.prior.pattern) priors.push_back(p.name());
    for (const MixChoice& m : g.config.attention.prior.mixes) {
      if (m) mixes.push_back(m.name());
    }
    scales.push_back(g.config.attention.scale.name());
    if (g.config.attention.normalizer) {
      normalizers.push_back(g.config.attention.normalizer.name());
    }
  }
  for (const NormalizerInfo& n : all_normalizers()) {
    INFO(n.name);
    CHECK(std::count(normalizers.begin(), normalizers.end(), n.name) > 0);
  }
  for (const MixInfo& mix : all_mixes()) {
    INFO(mix.name);
    CHECK(std::count(mixes.begin(), mixes.end(), mix.name) > 0);
  }
  for (const PriorInfo& prior : all_priors()) {
    INFO(prior.name);
    CHECK(std::count(priors.begin(), priors.end(), prior.name) > 0);
  }
  for (const ScaleInfo& scale : all_scales()) {
    INFO(scale.name);
    CHECK(std::count(scales.begin(), scales.end(), scale.name) > 0);
  }
}

TEST_CASE("there is a golden model of bidirectional attention for every prior that it has") {
  std::vector<std::string> priors;
  for (const Golden& g : all_goldens()) {
    if (g.config.attention.causal) continue;
    for (const PriorChoice& p : g.config.attention.prior.pattern) priors.push_back(p.name());
  }
  for (const PriorInfo& prior : all_priors()) {
    INFO(prior.name);
    CHECK((std::count(priors.begin(), priors.end(), prior.name) > 0) == !prior.causal_only);
  }
}

TEST_CASE("golden logits, losses and gradients in fp64") {
  const Threads one(1);  // many tiny passes
  for (const Golden& g : all_goldens()) {
    INFO(g.name);
    Run run = run_of(g, Dtype::f64);
    load(g, run);
    const std::vector<double> logits = g.values("logits"), found = run.logits(g.batch);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (!(std::abs(found[i] - logits[i]) <= 1e-10)) FAIL("logit " << i << ": " << found[i]);
    }
    CHECK(loss_of(g, run) == Approx(g.values("loss")[0]).epsilon(1e-13));
    if (!trains(g)) continue;
    for (const Parameter& p : run.parameters()) {
      const std::vector<double> gradient = run.gradient(p.name);
      INFO(p.name);
      if (!p.trained) {
        CHECK(norm(gradient) == 0);
        continue;
      }
      const std::vector<double> truth = g.values("grad." + p.name);
      // The absolute term is for exact zeros and for sums that cancel up to rounding (key biases).
      CHECK(distance(gradient, truth) <= 1e-11 * norm(truth) + 1e-14);
    }
  }
}

/// Checks the errors of a model in lower precision relative to their limits.
void check_against(const Golden& g, Run& run, double logit_tolerance, double gradient_tolerance) {
  const std::vector<double> logits = g.values("logits");
  const double size = norm(logits);
  CHECK(distance(run.logits(g.batch), logits) / size <= logit_tolerance);
  // A loss changes by at most twice as much as its logits.
  const double rms = size / std::sqrt(static_cast<double>(logits.size()));
  CHECK(std::abs(loss_of(g, run) - g.values("loss")[0]) <= 2 * logit_tolerance * rms);
  if (!trains(g)) return;
  double whole = 0;
  for (const Parameter& p : run.parameters()) {
    if (p.trained) whole = std::hypot(whole, norm(g.values("grad." + p.name)));
  }
  for (const Parameter& p : run.parameters()) {
    const std::vector<double> gradient = run.gradient(p.name);
    INFO(p.name);
    if (!p.trained) {
      CHECK(norm(gradient) == 0);
      continue;
    }
    // Relative to the tensor, or to a hundredth of all gradients if its own is close to zero.
    const std::vector<double> truth = g.values("grad." + p.name);
    CHECK(distance(gradient, truth) / (norm(truth) + 1e-2 * whole) <= gradient_tolerance);
  }
}

TEST_CASE("golden logits, losses and gradients in fp32") {
  const Threads one(1);  // many tiny passes
  for (const Golden& g : all_goldens()) {
    INFO(g.name);
    Run run = run_of(g, Dtype::f32);
    load(g, run);
    // About 30 roundings in sequence, each of sums of 20 to 50 terms: u sqrt(1000), with softmax at
    // logits of size 5 in between. Heads at the bound keep 4e-4 of each logit.
    const double tolerance = g.name == "model_bam_bounded" ? 5e-3 : 100 * kF32;
    // Gradients of s and theta sum far larger terms.
    check_against(g, run, tolerance, 4 * tolerance);
  }
}

TEST_CASE("golden logits, losses and gradients in bf16") {
  const Threads one(1);  // many tiny passes
  if (with_products({Dtype::bf16}).empty()) return;
  for (const Golden& g : all_goldens()) {
    INFO(g.name);
    // How far bf16 may be off depends on how sharp a model's softmax is. The yardstick is the fp64
    // model with matrices and embeddings rounded to bf16, one rounding per weight. Activations are
    // rounded about twice as often. Single tensors may be off by six times this.
    Run exact = run_of(g, Dtype::f64);
    Run moved = run_of(g, Dtype::f64);
    Run run = run_of(g, Dtype::bf16);
    load(g, exact);
    load(g, moved);
    load(g, run);
    for (const Parameter& p : moved.parameters()) {
      if (!p.decays()) continue;
      std::vector<double> weights = moved.parameter(p.name);
      for (double& w : weights) w = rounded(w, Dtype::bf16);
      moved.set_parameter(p.name, weights);
    }
    double change = 0, whole = 0;
    if (trains(g)) {
      exact.differentiate(g.batch);
      moved.differentiate(g.batch);
    }
    for (const Parameter& p : exact.parameters()) {
      const std::vector<double> gradient = exact.gradient(p.name);
      change = std::hypot(change, distance(moved.gradient(p.name), gradient));
      whole = std::hypot(whole, norm(gradient));
    }
    const std::vector<double> logits = exact.logits(g.batch);
    const double logit_change = distance(moved.logits(g.batch), logits) / norm(logits);
    CHECK(logit_change < 8 * kBf16);  // otherwise the yardstick would accept anything
    if (!trains(g)) {
      check_against(g, run, 4 * logit_change, 0);
      continue;
    }
    // At alpha 2 and above, u of entmax jumps when a key enters the nonzero keys. Rounding then
    // moves gradients by as much as a weight's, which one rounding per weight does not measure.
    const NormalizerChoice& n = g.config.attention.normalizer;
    if (n && n.name() == "entmax" && n.options.number("alpha") >= 2) {
      check_against(g, run, 4 * logit_change, INFINITY);
      continue;
    }
    // The same for fp64 alone; 20.1 for nope_ssmax_delta, which has the sharpest softmax.
    CHECK(change / whole < 24 * kBf16);
    check_against(g, run, 4 * logit_change, 6 * change / whole);
  }
}

}  // namespace
}  // namespace bamtrain::testing
