// A whole inspection: gradients and repetitions, compared with passes of another backend.

#include "inspect/inspection.h"

#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "core/error.h"
#include "model/build.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

constexpr int64_t kT = 24;

/// Each token occurs once, except for the document's start.
InspectionRequest request_of(const ModelConfig& c) {
  InspectionRequest r = {c, kT, {}, {}, {0, 1}};
  for (int32_t i = 0; i < kT; ++i) r.ids.push_back((7 * i + 3) % 29);
  return r;
}

/// The inspection, with the weights of a Run in fp32.
Inspection inspected(const InspectionRequest& r) {
  const Run weights(r.config, Dtype::f32, 1, kT, ModelUse::evaluation);
  return inspect(r, weights.master_weights());
}

Batch batch_of(const InspectionRequest& r) {
  Batch b = {1, kT, r.ids, {}, std::nullopt};
  b.targets.assign(r.ids.begin() + 1, r.ids.end());
  b.targets.push_back(-1);
  return b;
}

TEST_CASE("the gradient that enters the first layer is the embedding's, token by token") {
  ModelConfig c = small_config();
  c.attention.prior = prior("kerple");
  const InspectionRequest r = request_of(c);
  const Inspection found = inspected(r);
  Run truth(c, Dtype::f64, 1, kT);
  const Batch batch = batch_of(r);
  const double loss = truth.differentiate(batch);
  const std::vector<double> rows = truth.gradient("model.embed_tokens.weight");
  double all = 0, losses = 0;
  REQUIRE(found.gradient.values.size() == 3);
  for (size_t i = 0; i < kT; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < c.width; ++k) {
      const double d = rows[static_cast<size_t>(r.ids[i] * c.width + k)];
      sum += d * d;
    }
    all += sum;
    // fp32 against fp64, as in model/backends.cpp. Run's loss is a mean over all kT positions.
    CHECK(found.token_gradient[i] == Approx(std::sqrt(sum) * kT / (kT - 1)).epsilon(1e-4));
    if (i + 1 < kT) losses += found.losses[i];
  }
  CHECK(found.gradient.values[0] == Approx(std::sqrt(all) * kT / (kT - 1)).epsilon(1e-4));
  CHECK(losses / kT == Approx(loss).epsilon(1e-5));
  CHECK(std::isnan(found.losses.back()));
}

struct Streams final : LayerObserver {
  std::vector<std::vector<double>> last;
  void stream(int64_t, const Tensor& x) override {
    std::vector<double> row;
    for (int64_t k = 0; k < x.shape[1]; ++k)
      row.push_back(get(x, (x.shape[0] - 1) * x.shape[1] + k));
    last.push_back(std::move(row));
  }
};

TEST_CASE("a repeated token's distance is that of two passes of the reference") {
  ModelConfig c = small_config();
  c.attention.prior = prior("alibi");
  const InspectionRequest r = request_of(c);
  const Inspection found = inspected(r);
  std::vector<Streams> of(2);
  for (size_t n = 0; n < 2; ++n) {
    Batch b = batch_of(r);
    b.T = kT + static_cast<int64_t>(n);
    if (n == 1) b.tokens.push_back(b.tokens.back());
    Run truth(c, Dtype::f64, 1, b.T, ModelUse::evaluation);
    truth.model().observe(&of[n]);
    truth.logits(b);
  }
  REQUIRE(found.repeated.values.size() == 3);
  CHECK(found.repeated.values[0] == 0);  // the same embedding
  for (size_t l = 1; l < 3; ++l) {
    double distance = 0, size = 0;
    for (size_t k = 0; k < of[0].last[l].size(); ++k) {
      distance += std::abs(of[0].last[l][k] - of[1].last[l][k]);
      size += std::abs(of[0].last[l][k]);
    }
    CHECK(found.repeated.values[l] == Approx(distance / size).epsilon(1e-3));
  }
}

TEST_CASE("layers that are named are looked into, and no others") {
  InspectionRequest r = request_of(small_config());
  r.layers = {1};
  const Inspection found = inspected(r);
  REQUIRE(found.layers.size() == 1);
  CHECK(found.layers[0].layer == 1);
  CHECK(found.gradient.values.size() == 3);
}

TEST_CASE("what is not defined is missing with its reason") {
  ModelConfig c = small_config();
  c.attention.scale = scale("entropy");
  CHECK(inspected(request_of(c)).gradient.missing == "the scale has no backward pass");
  c = small_config();
  c.attention.causal = false;
  c.attention.prior = prior("alibi");
  const Inspection both = inspected(request_of(c));
  CHECK(both.gradient.missing == "the model sees the tokens that it would predict");
  CHECK(both.layers[0].keys[0] == kT);
  c = small_config();
  c.attention.prior = prior("learned");
  CHECK(inspected(request_of(c)).repeated.missing == "the model knows no text of one token more");
  c = retrieval_config();
  CHECK_THROWS_AS(check_inspectable(c), Error);
}

TEST_CASE("priors that training draws positions for are looked at as they count") {
  for (const char* name : {"rope", "alibi", "transformer_xl"}) {
    ModelConfig c = small_config();
    c.attention.prior = prior(name);
    if (!c.attention.prior.pattern[0].options.has("randomized")) continue;
    const Inspection plain = inspected(request_of(c));
    c.attention.prior = prior(name, {{"randomized", true}});
    const Inspection drawn = inspected(request_of(c));
    INFO(name);
    CHECK(drawn.gradient.values[0] == Approx(plain.gradient.values[0]).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace bamtrain::testing
