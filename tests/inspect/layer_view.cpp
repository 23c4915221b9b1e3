// What is shown of a layer equals what its operation computed. Its summaries are compared with
// weights worked out by hand.

#include "inspect/layer_view.h"

#include <cmath>

#include "catch.h"
#include "core/element.h"
#include "inspect/attention_copy.h"
#include "model/build.h"
#include "normalizers/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

/// Views of every layer in a pass.
struct Views final : LayerObserver {
  std::vector<LayerView> all;
  std::vector<std::vector<int32_t>> first_keys, last_keys;
  Paths paths;

  explicit Views(int64_t T) : paths(T) {}
  void attention(int64_t l, const Attention& a, const Tensor&, const Tensor& out) override {
    const AttentionCopy copy(a);
    all.push_back(view_of_layer(l, copy.attention(), out, paths));
    std::vector<int32_t> first, last;
    for (int64_t i = 0; i < a.q.shape[1]; ++i) {
      first.push_back(a.first_key.ptr<int32_t>()[i]);
      last.push_back(a.last_key ? a.last_key.ptr<int32_t>()[i] : static_cast<int32_t>(i));
    }
    first_keys.push_back(std::move(first));
    last_keys.push_back(std::move(last));
  }
};

Views views_of(const ModelConfig& c, const Batch& batch) {
  Run run(c, Dtype::f32, 1, batch.T, ModelUse::evaluation);
  Views views(batch.T);
  run.model().observe(&views);
  run.logits(batch);
  return views;
}

float weight(const LayerView& v, int64_t h, int64_t i, int64_t j) {
  return v.maps.weights[static_cast<size_t>((h * v.map.side + i) * v.map.side + j)];
}

/// Checks that weights outside first .. last of each row are exactly zero, without scores. The
/// others sum to one if the normalizer's do.
void check_masks(const Views& views, const NormalizerTraits& traits) {
  for (size_t l = 0; l < views.all.size(); ++l) {
    const LayerView& v = views.all[l];
    int64_t wrong = 0;
    for (int64_t h = 0; h < v.H; ++h) {
      for (int64_t i = 0; i < v.T; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < v.T; ++j) {
          const bool seen = views.first_keys[l][static_cast<size_t>(i)] <= j &&
                            j <= views.last_keys[l][static_cast<size_t>(i)];
          const float score =
              v.maps.scores[static_cast<size_t>((h * v.map.side + i) * v.map.side + j)];
          wrong += !seen && (weight(v, h, i, j) != 0 || !std::isnan(score));
          wrong += seen && std::isnan(score);
          sum += weight(v, h, i, j);
        }
        // A sum of weights that were each rounded to fp32.
        wrong += traits.sums_to_one && !(std::abs(sum - 1) < 1e-6 * static_cast<double>(v.T));
      }
    }
    CHECK(wrong == 0);
  }
}

// In the fp32 pass, logits have rounding errors of about 1e-6, which are missing here; exp and sums
// are similar. If a logit rounds across a threshold, entmax and top-k gain or lose a key. Its
// entmax weight is close to zero. Contextual positions are steep between two entries of E.
constexpr double kRounding = 1e-4;

TEST_CASE("weights times values are the operation's own output with every prior and normalizer") {
  constexpr int64_t kT = 37;
  int64_t combinations = 0;
  for (const PriorConfig& p : every_prior()) {
    for (const NormalizerInfo& n : all_normalizers()) {
      ModelConfig c = small_config();
      c.attention.prior = p;
      c.attention.normalizer = NormalizerChoice(n);
      c.attention.document_mask = true;
      const Views views = views_of(c, random_batch(1, kT, c.vocab));
      INFO(describe(c));
      REQUIRE(std::ssize(views.all) == c.layers);
      for (const LayerView& v : views.all) CHECK(v.error < kRounding);
      check_masks(views, traits_of(n.kind));
      ++combinations;
    }
  }
  CHECK(combinations >= 60);
}

TEST_CASE("weights times values are the operation's own output with every scale") {
  constexpr int64_t kT = 37;
  for (const ScaleInfo& s : all_scales()) {
    for (const char* name : {"bam", "nape", "cable", "cope", "dape over kerple"}) {
      for (const NormalizerInfo& n : all_normalizers()) {
        if (!traits_of(n.kind).takes_scale) continue;
        ModelConfig c = small_config();
        c.attention.prior = priors({name});
        c.attention.scale = ScaleChoice(s);
        c.attention.normalizer = NormalizerChoice(n);
        const Views views = views_of(c, random_batch(1, kT, c.vocab));
        INFO(describe(c));
        for (const LayerView& v : views.all) {
          CHECK(v.error < kRounding);
          CHECK(v.scale.empty() == s.is<std::monostate>());
        }
      }
    }
  }
}

TEST_CASE("windows and sequences that are seen as a whole are masked as attention masks them") {
  ModelConfig c = small_config();
  c.attention.prior = prior("alibi");
  c.attention.window = 5;
  c.attention.document_mask = true;
  const Batch batch = random_batch(1, 40, c.vocab);
  for (const bool causal : {true, false}) {
    c.attention.causal = causal;
    const Views views = views_of(c, batch);
    check_masks(views, traits_of(NormalizerKind::softmax));
    CHECK(*std::max_element(views.all[0].keys.begin(), views.all[0].keys.end()) ==
          (causal ? 5 : 9));
    CHECK(views.all[0].error < kRounding);
  }
}

/// One head with zero queries: its logits are the bias.
struct ByHand {
  static constexpr int64_t kT = 4, kD = 2;
  std::vector<double> q, k, v, out, table;
  std::vector<int32_t> first;
  Attention a;

  explicit ByHand(std::vector<double> bias_of_distance)
      : q(kT * kD, 0),
        k(kT * kD, 1),
        v{1, 0, 0, 1, 2, 0, 0, 2},
        out(kT * kD, 0),
        table(std::move(bias_of_distance)),
        first(kT, 0) {
    a.q = Tensor(q.data(), Dtype::f64, {1, kT, 1, kD});
    a.k = Tensor(k.data(), Dtype::f64, {1, kT, 1, kD});
    a.v = Tensor(v.data(), Dtype::f64, {1, kT, 1, kD});
    a.first_key = Tensor(first.data(), Dtype::i32, {1, kT});
    a.bias = TableBias{Tensor(table.data(), Dtype::f64, {1, kT})};
  }
  LayerView view(Paths& paths) {
    return view_of_layer(0, a, Tensor(out.data(), Dtype::f64, {1, kT, 1, kD}), paths);
  }
};

TEST_CASE("summaries are those of weights that were worked out by hand") {
  // Softmax of -d log 2: each step of distance halves the weight. The last row is (8, 4, 2, 1) /
  // 15.
  ByHand hand({0, -std::log(2), -2 * std::log(2), -3 * std::log(2)});
  Paths paths(ByHand::kT);
  const LayerView v = hand.view(paths);
  const auto near = [](double x) { return Approx(x).epsilon(1e-6); };
  CHECK(weight(v, 0, 3, 3) == near(8.0 / 15));
  CHECK(weight(v, 0, 3, 0) == near(1.0 / 15));
  CHECK(weight(v, 0, 1, 2) == 0);
  CHECK(v.maps.bias[3 * 4 + 1] == near(-2 * std::log(2)));
  CHECK(v.last.weights[2] == near(4.0 / 15));
  double entropy = 0;
  for (const double p : {8.0 / 15, 4.0 / 15, 2.0 / 15, 1.0 / 15}) entropy -= p * std::log(p);
  CHECK(v.entropy[3] == near(entropy));
  CHECK(v.entropy[0] == 0);
  CHECK(v.nonzero_keys == std::vector<double>{1, 2, 3, 4});
  CHECK(v.keys == std::vector<int64_t>{1, 2, 3, 4});
  // Row 1: 2/3 of itself. Row 2: (4 2 + 2 1) / 7. Row 3: (8 3 + 4 2 + 2) / 15.
  CHECK(v.centroid[1] == near(2.0 / 3));
  CHECK(v.centroid[2] == near(10.0 / 7));
  CHECK(v.centroid[3] == near(34.0 / 15));
  CHECK(v.largest[2] == near(4.0 / 7));
  const HeadSummary s = summary_of(v, 0);
  CHECK(s.nonzero_keys == 2.5);
  CHECK(s.distance == near((0 + 1.0 / 3 + 4.0 / 7 + 11.0 / 15) / 4));
  CHECK(s.largest == near((1 + 2.0 / 3 + 4.0 / 7 + 8.0 / 15) / 4));
  // The output is zero, so the relative difference is infinite.
  CHECK(std::isinf(v.error));
  CHECK(v.reached == 2.5);
}

TEST_CASE("sparse weights are exact zeros and rows without any have no centroid") {
  // Sparsemax of 0, -1/2, -2, ..: p = z - tau with tau = -3/4 for two keys: (3/4, 1/4).
  ByHand hand({0, -0.5, -2, -9});
  hand.a.form.normalizer = {.kind = NormalizerKind::entmax, .alpha = 2};
  Paths paths(ByHand::kT);
  const LayerView v = hand.view(paths);
  CHECK(weight(v, 0, 3, 3) == Approx(0.75));
  CHECK(weight(v, 0, 3, 2) == Approx(0.25));
  CHECK(weight(v, 0, 3, 1) == 0);
  CHECK(weight(v, 0, 3, 0) == 0);
  CHECK(v.nonzero_keys == std::vector<double>{1, 2, 2, 2});
  CHECK(v.reached == 1.75);
  hand.a.form.normalizer = {.kind = NormalizerKind::stick_breaking};
  Paths others(ByHand::kT);
  const LayerView sticks = hand.view(others);
  CHECK(std::isnan(sticks.centroid[0]));
  CHECK(sticks.centroid[1] == 0);
  CHECK(sticks.nonzero_keys[0] == 0);
}

TEST_CASE("maps of longer texts are means over what is visible of each block") {
  constexpr int64_t kT = 700;
  ModelConfig c = small_config();
  c.attention.prior = prior("alibi");
  c.attention.window = 300;
  c.layers = 1;
  const Views views = views_of(c, random_batch(1, kT, c.vocab, false));
  const LayerView& v = views.all[0];
  REQUIRE(v.map.block == 2);
  REQUIRE(v.map.side == 350);
  CHECK(v.T == kT);
  // A map's row covers two rows, so its weights, times the visible pairs of each block, sum to 2.
  for (const int64_t row : {int64_t{0}, int64_t{100}, int64_t{349}}) {
    double sum = 0;
    for (int64_t k = 0; k < v.map.side; ++k) {
      int64_t seen = 0;
      for (int64_t i = 2 * row; i < 2 * row + 2; ++i) {
        for (int64_t j = 2 * k; j < 2 * k + 2; ++j) seen += j <= i && i - j < 300;
      }
      const auto at = static_cast<size_t>(row * v.map.side + k);
      CHECK(std::isnan(v.maps.scores[at]) == (seen == 0));
      if (seen == 0) CHECK(v.maps.weights[at] == 0);
      sum += static_cast<double>(seen) * static_cast<double>(v.maps.weights[at]);
    }
    CHECK(sum == Approx(2).epsilon(1e-5));
  }
  CHECK(v.error < kRounding);
}

}  // namespace
}  // namespace bamtrain::testing
