// The search for a row's threshold with bf16 weights: how far their sum is from 1. One lane has the
// whole row, so lanes are not combined.

#include "kernels/attention_search.cuh"

#include <cmath>
#include <vector>

#include "catch.h"
#include "values.h"

namespace bamtrain::kernels {
namespace {

using test::normal;

struct Sums {
  double worst = 0;  // a row's sum of weights minus 1
  double passes = 0;
};

template <WeightForm kForm>
void search_row(Sums& to, const std::vector<float>& z, float alpha) {
  const int n = static_cast<int>(z.size());
  NormalizerInputs in;
  in.kind = NormalizerKind::entmax;
  in.alpha = alpha;
  Selection selection;
  RowSearch search(in, kForm, 0, n - 1, n, n, &selection);
  int passes = 0;
  for (; !search.done(); ++passes) {
    const WeightLine line = search.line();
    const auto for_logits = [&](const auto& f) {
      for (int j = 0; j < n; ++j) f(fmaf(line.slope, z[j], line.offset), j);
    };
    search.accumulate<kForm, false>(for_logits, passes + 1);
    search.advance<false>(passes + 1);
  }
  const LineWeights weights(kForm, search.weights(), false);
  const WeightLine line = weights.line(LineWeights::takes_logits(kForm, alpha - 1, false));
  double sum = 0;
  for (float x : z) {
    sum += weights.of<kForm, false>(fmaf(line.slope, x, line.offset), alpha - 1).p;
  }
  if (std::abs(sum - 1) > std::abs(to.worst)) to.worst = sum - 1;
  to.passes += passes;
}

void search_row(Sums& to, const std::vector<float>& z, float alpha) {
  if (alpha == 1.5f) return search_row<WeightForm::entmax_1_5>(to, z, alpha);
  if (alpha == 2.0f) return search_row<WeightForm::entmax_2>(to, z, alpha);
  search_row<WeightForm::entmax>(to, z, alpha);
}

/// Rows of n logits with standard deviation `spread`. The first logit rises from 0 until it has all
/// the weight.
Sums search_rows(int n, float spread, float alpha) {
  constexpr int kRows = 60;
  Sums found;
  std::vector<float> z;
  for (double x : normal<float>("bulk", static_cast<size_t>(n), spread)) {
    z.push_back(static_cast<float>(x));
  }
  for (int row = 0; row < kRows; ++row) {
    z[0] = (1 / (alpha - 1) + 3 * spread) * static_cast<float>(row) / (kRows - 1);
    search_row(found, z, alpha);
  }
  found.passes /= kRows;
  return found;
}

TEST_CASE("weights of one large logit over many that are nearly equal sum to 1") {
  for (float alpha : {1.2f, 1.5f, 1.7f, 1.9f, 2.0f}) {
    for (int n : {512, 2048, 8192}) {
      for (float spread : {0.0f, 0.001f, 0.01f, 0.05f, 0.2f, 1.0f}) {
        const Sums found = search_rows(n, spread, alpha);
        INFO("alpha " << alpha << ", " << n << " keys of spread " << spread << ": passes "
                      << found.passes);
        CHECK(std::abs(found.worst) < 0x1p-8);  // one bf16 rounding
        CHECK(found.passes < 12);
      }
    }
  }
}

}  // namespace
}  // namespace bamtrain::kernels
