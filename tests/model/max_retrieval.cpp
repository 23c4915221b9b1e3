// The model of the task max_retrieval: golden values of a set's attention
// (scripts/golden/max_retrieval.py), finite differences, the CPU compared with the reference, and
// invariances.

#include "model/max_retrieval.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "checkpoint/safetensors.h"
#include "core/ignore_index.h"
#include "core/retrieval_input.h"
#include "differences.h"
#include "golden_options.h"
#include "model/count_allocations.h"
#include "model/null_backend.h"
#include "normalizers/registry.h"
#include "ops/cpu/cpu.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

using Json = nlohmann::json;

ModelConfig with(const ScaleChoice& scale, const NormalizerChoice& normalizer = {}) {
  ModelConfig c = retrieval_config();
  c.attention.scale = scale;
  c.attention.normalizer = normalizer;
  return c;
}

/// Every scale with softmax, and every normalizer that the model takes, with its examples.
std::vector<ModelConfig> retrieval_configs() {
  std::vector<ModelConfig> models;
  for (const ScaleInfo& s : all_scales()) models.push_back(with(scale(s.name)));
  for (const NormalizerInfo& n : all_normalizers()) {
    if (!traits_of(n.kind).own_key) continue;
    for (const auto& options : n.examples) {
      models.push_back(with(scale("none"), normalizer(n.name, options)));
    }
  }
  models.push_back(with(scale("adaptive", {{"bias", true}}), normalizer("entmax")));
  models.push_back(with(scale("ssmax"), normalizer("entmax", {{"learned", true}})));
  return models;
}

/// The logits of row b at its last item.
std::vector<double> answer(Run& run, const Batch& batch, int64_t b) {
  const std::vector<double> logits = run.logits(batch);
  const auto at = std::find_if(batch.targets.begin() + b * batch.T, batch.targets.end(),
                               [](int32_t t) { return t != kIgnoreIndex; });
  const auto first = logits.begin() + (at - batch.targets.begin()) * RetrievalInput::kClasses;
  return {first, first + RetrievalInput::kClasses};
}

struct RetrievalGolden {
  std::string name;
  SafetensorsFile file;
  ModelConfig config;
  Batch batch;

  template <class X = double>
  std::vector<X> values(const std::string& tensor) const {
    const SafetensorsFile::Entry* entry = file.find(tensor);
    REQUIRE(entry != nullptr);
    std::vector<X> x(static_cast<size_t>(entry->bytes) / sizeof(X));
    file.read(*entry, x.data());
    return x;
  }
};

std::vector<RetrievalGolden> retrieval_goldens() {
  const char* root = std::getenv("BAMTRAIN_SOURCE");
  std::vector<RetrievalGolden> goldens;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(root ? root : ".") + "/tests/golden")) {
    const std::string name = file.path().stem().string();
    if (!name.starts_with("max_retrieval_")) continue;
    RetrievalGolden g{name, SafetensorsFile::open(file.path().string()), {}, {}};
    const Json c = Json::parse(g.file.metadata().at("config"));
    const Json &s = c["scale"], &n = c["normalizer"];
    g.config = with(scale(s["name"], options_of(s)), normalizer(n["name"], options_of(n)));
    g.config.width = c["width"];
    g.config.mlp.hidden = c["hidden"];
    if (c["activation"] == "gelu") g.config.mlp.kind = MlpKind::gelu;
    const std::vector<int32_t> counts = g.values<int32_t>("counts"),
                               targets = g.values<int32_t>("targets");
    g.batch.tokens = g.values<int32_t>("inputs");
    g.batch.B = std::ssize(counts);
    g.batch.T = std::ssize(g.batch.tokens) / g.batch.B;
    g.batch.targets.assign(g.batch.tokens.size(), kIgnoreIndex);
    for (int64_t b = 0; b < g.batch.B; ++b) {
      const auto row = static_cast<size_t>(b);
      g.batch.targets[static_cast<size_t>(b * g.batch.T + counts[row])] = targets[row];
    }
    goldens.push_back(std::move(g));
  }
  return goldens;
}

TEST_CASE("max_retrieval: golden logits, losses and gradients in fp64 and fp32") {
  const Threads one(1);
  const std::vector<RetrievalGolden> goldens = retrieval_goldens();
  REQUIRE(goldens.size() >= 6);
  for (const RetrievalGolden& g : goldens) {
    for (const Dtype t : with_products({Dtype::f64, Dtype::f32})) {
      INFO(g.name << " " << name_of(t));
      Run run(g.config, t, g.batch.B, g.batch.T);
      // The parameters, their gradients, and inputs, counts, targets, logits, loss.
      REQUIRE(g.file.tensors().size() == 2 * run.parameters().size() + 5);
      for (const Parameter& p : run.parameters()) run.set_parameter(p.name, g.values(p.name));
      // As in golden.cpp. The file's mean is over sequences, the run's over rows.
      const double tolerance = t == Dtype::f64 ? 1e-12 : 100 * kF32;
      const auto T = static_cast<double>(g.batch.T);
      CHECK(T * run.differentiate(g.batch) == Approx(g.values("loss")[0]).epsilon(tolerance));
      const std::vector<double> logits = g.values("logits");
      std::vector<double> found;
      for (int64_t b = 0; b < g.batch.B; ++b) {
        for (const double z : answer(run, g.batch, b)) found.push_back(z);
      }
      CHECK(distance(found, logits) <= tolerance * norm(logits));
      double whole = 0;
      for (const Parameter& p : run.parameters()) {
        whole = std::hypot(whole, norm(g.values("grad." + p.name)));
      }
      for (const Parameter& p : run.parameters()) {
        INFO(p.name);
        const std::vector<double> truth = g.values("grad." + p.name);
        std::vector<double> gradient = run.gradient(p.name);
        for (double& x : gradient) x *= T;
        CHECK(distance(gradient, truth) <= 4 * tolerance * (norm(truth) + 1e-2 * whole));
      }
    }
  }
}

TEST_CASE("max_retrieval: gradients agree with differences, whatever scale and normalizer") {
  size_t n = 0;
  for (ModelConfig& c : retrieval_configs()) {
    if (use_of(c) != ModelUse::training) continue;
    constexpr MlpKind kMlps[] = {MlpKind::gelu_erf, MlpKind::gelu};
    c.mlp.kind = kMlps[n++ % 2];
    check_differences(c, item_batch(14, {13, 5, 1, 8}), 3);
  }
}

TEST_CASE("max_retrieval: many items agree with the reference") {
  for (const ModelConfig& small : retrieval_configs()) {
    ModelConfig c = small;
    c.width = 64;
    c.mlp.hidden = 40;
    // Their gradients jump when rounding moves a key into the nonzero keys.
    const NormalizerChoice& n = c.attention.normalizer;
    const bool jumps = n && n.name() == "entmax" && n.options.number("alpha") >= 2;
    INFO(describe(c));
    const Batch batch = item_batch(150, {149, 70, 128});
    if (use_of(c) != ModelUse::training) continue;
    Run truth(c, Dtype::f64, batch.B, batch.T), run(c, Dtype::f32, batch.B, batch.T);
    const double tolerance = 100 * kF32, loss = truth.differentiate(batch);
    CHECK(std::abs(run.differentiate(batch) - loss) <= tolerance * loss);
    for (int64_t b = 0; b < batch.B; ++b) {
      const std::vector<double> logits = answer(truth, batch, b);
      CHECK(distance(answer(run, batch, b), logits) <= tolerance * norm(logits));
    }
    const GradientErrors errors(run, truth);
    INFO("worst: " << errors.name);
    CHECK((jumps || errors.all <= 3 * tolerance));
    CHECK((jumps || errors.worst <= 16 * tolerance));
  }
}

TEST_CASE("max_retrieval: padding and other rows change no bit of an answer") {
  for (const ModelConfig& c : retrieval_configs()) {
    const NormalizerChoice& n = c.attention.normalizer;
    // "sequence" counts the keys of the whole batch's T.
    if (n && n.options.has("of") && n.options.text("of") == "sequence") continue;
    INFO(describe(c));
    for (const Dtype t : with_products({Dtype::f64, Dtype::f32})) {
      const Batch batch = item_batch(11, {10, 4});
      Batch longer = item_batch(25, {24, 4});
      std::copy_n(batch.tokens.begin() + 11, 5, longer.tokens.begin() + 25);
      longer.targets[25 + 4] = batch.targets[11 + 4];
      for (int64_t i = 5; i < 25; ++i) {
        longer.tokens[static_cast<size_t>(25 + i)] =
            RetrievalInput{static_cast<int32_t>(i % 10), 9}.id();
      }
      Run a(c, t, 2, 11, use_of(c), 25), b(c, t, 2, 25, use_of(c));
      check_equal(answer(a, batch, 1), answer(b, longer, 1));
    }
  }
}

TEST_CASE("max_retrieval: an answer is that of a set, and of its query") {
  const Batch batch = item_batch(13, {12});
  Batch turned = batch, asked = batch;
  std::reverse(turned.tokens.begin() + 1, turned.tokens.end());
  asked.tokens[0] = RetrievalInput{RetrievalInput::kQuery, 1 << 20}.id();
  for (const ModelConfig& c : retrieval_configs()) {
    INFO(describe(c));
    Run run(c, Dtype::f64, 1, 13, use_of(c));
    const std::vector<double> logits = answer(run, batch, 0);
    CHECK(distance(answer(run, turned, 0), logits) <= 1e-12 * norm(logits));
    const NormalizerChoice& n = c.attention.normalizer;
    if (n && n.name() == "topk") continue;  // one key has all weight, whatever the query
    CHECK(distance(answer(run, asked, 0), logits) > 1e-6 * norm(logits));
  }
}

TEST_CASE("max_retrieval: initial values leave out columns without features") {
  ModelConfig c = retrieval_config();
  c.init = InitKind::torch;
  const ParameterLayout layout(c, 17);
  const auto largest = [&](const char* name, int64_t begin, int64_t end) {
    const Parameter& p = *layout.find(name);
    std::vector<double> values(static_cast<size_t>(p.size));
    initialize(p, c, 17, 1, Tensor(values.data(), Dtype::f64, {p.size}));
    double most = 0;
    for (int64_t i = 0; i < p.size; ++i) {
      const int64_t column = p.shape.size() > 1 ? i % p.shape[1] : 0;
      if (column < begin || column >= end) continue;
      most = std::max(most, std::abs(values[static_cast<size_t>(i)]));
    }
    return most;
  };
  const double of_items = 1 / std::sqrt(11.0);
  CHECK(largest("model.items.mlp.hidden.weight", 0, 11) == Approx(of_items).epsilon(0.05));
  CHECK(largest("model.items.mlp.hidden.weight", 11, 16) == 0);
  CHECK(largest("model.items.mlp.hidden.bias", 0, 1) == Approx(of_items).epsilon(0.2));
  CHECK(largest("model.query.mlp.hidden.weight", 0, 1) == Approx(1).epsilon(0.2));
  CHECK(largest("model.query.mlp.hidden.weight", 1, 16) == 0);
  CHECK(largest("model.answer.output.weight", 0, 20) == Approx(1 / std::sqrt(20.0)).epsilon(0.05));
}

TEST_CASE("max_retrieval: passes take no memory") {
  for (const ModelConfig& c : retrieval_configs()) {
    INFO(describe(c));
    NullBackend backend;
    MaxRetrieval model(c, 32, backend, Dtype::f32);
    Arena arena;
    Tensor master_weights, gradients;
    arena.add("masters", &master_weights, Dtype::f32, {model.parameters().elements()});
    arena.add("gradients", &gradients, Dtype::f32, {model.parameters().elements()});
    model.plan(arena, 2, 32, use_of(c), Recompute::none, false);
    arena.commit();
    model.set_master_weights(master_weights);
    const Batch batch = item_batch(32, {31, 20});
    std::vector<double> losses(64);
    int64_t before = 0;
    double loss = 0;
    for (int pass = 1; pass <= 5; ++pass) {
      if (pass == 3) before = allocations();
      model.refresh();
      if (use_of(c) == ModelUse::training) {
        model.load(batch.tokens.data(), batch.targets.data(), 32, {}, nullptr, nullptr);
        model.forward_backward(1, gradients, Tensor(&loss, Dtype::f64, {1}));
      }
      model.evaluate(batch.tokens.data(), batch.targets.data(), 2, 32, {}, losses.data(), nullptr,
                     nullptr, nullptr, nullptr);
    }
    CHECK(allocations() == before);
  }
}

TEST_CASE("max_retrieval: bf16 is refused") {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  CHECK_THROWS_WITH(MaxRetrieval(retrieval_config(), 17, *backend, Dtype::bf16),
                    Catch::Contains("24 bits") && Catch::Contains("choose fp32"));
}

}  // namespace
}  // namespace bamtrain::testing
