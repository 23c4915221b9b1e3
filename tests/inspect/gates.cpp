// The gates shown reproduce the scale and the sums that attention read.

#include "inspect/gates.h"

#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "model/build.h"

namespace bamtrain::testing {
namespace {

struct Gates final : LayerObserver {
  const ModelConfig& c;
  Run& run;
  int layers = 0;

  Gates(const ModelConfig& of, Run& model) : c(of), run(model) {}
  void attention(int64_t l, const Attention& a, const Tensor& gates, const Tensor&) override {
    const std::vector<GateRows> rows =
        gate_rows(c, a.q.shape[1], l, a, gates, run.master_weights());
    const int64_t T = a.q.shape[1], H = a.q.shape[2];
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].name == "u");
    const std::vector<double>&u = rows[0].values, &beta = rows[1].values, &gamma = rows[2].values;
    const auto& sums = std::get<TokenBias>(a.bias).numbers;
    int64_t wrong = 0;
    for (int64_t h = 0; h < H; ++h) {
      double sum = 0;
      for (int64_t i = 0; i < T; ++i) {
        const auto at = static_cast<size_t>(h * T + i);
        sum += u[at];
        wrong += !(u[at] > 0);  // a softplus
        wrong += !(std::abs(sum - get(sums, h * T + i)) <= 1e-12 * sum);
        const double t = 1 + beta[at] * std::pow(std::log(static_cast<double>(i) + 2), gamma[at]);
        wrong += !(std::abs(t - get(a.scale, h * T + i)) <= 1e-5 * std::abs(t));
      }
    }
    CHECK(wrong == 0);
    ++layers;
  }
};

TEST_CASE("gates of adaptive and cable make the scale and the sums of every row") {
  for (const bool biased : {false, true}) {
    ModelConfig c = small_config();
    c.attention.prior = prior("cable");
    c.attention.scale = scale("adaptive", {{"bias", biased}});
    Run run(c, Dtype::f32, 1, 30, ModelUse::evaluation);
    Gates gates(c, run);
    run.model().observe(&gates);
    run.logits(random_batch(1, 30, c.vocab, false));
    CHECK(gates.layers == 2);
  }
}

}  // namespace
}  // namespace bamtrain::testing
