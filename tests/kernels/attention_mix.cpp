// Mixes of heads on the engine, with tensor cores and in plain loops, compared with the fp64
// reference backend.

#include "catch.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_content.h"
#include "thinned.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// Calls f(form, number) for mixes with each normalizer that takes them; one in three without the
/// long tests.
template <class F>
void for_mixes(const F& f) {
  size_t n = 0;
  const auto normalizers = testing::one_of_every_normalizer({entmax(1.5, true)});
  for (size_t row = 0; row < normalizers.size(); ++row) {
    for (size_t column = 0; column < std::size(kMixedForms); ++column) {
      AttentionForm form = kMixedForms[column];
      form.normalizer = normalizers[row];
      if (form.scale && !traits_of(form.normalizer.kind).takes_scale) continue;
      if (testing::is_run(row, column, 3)) f(form, n);
      ++n;
    }
  }
}

/// fp32, except for what tensor cores read:
/// - forward: logits and the hidden layer with 16 bits;
/// - backward: dz of queries and keys and the layer's gradient with 8 bits;
/// - weights in bf16.
///
/// The bias's gradients have passed through three such products.
double mix_tolerance(const std::string& name, const AttentionForm& form) {
  if (name == "lse") return 0x1p-15;
  // Sums over rows whose dz sum to zero: two roundings of their factors, and two for what does not
  // cancel.
  const bool network = name == "dw1" || name == "dc1" || name == "dw2" || name == "dc2";
  if (network) return 4 * kBf16;
  const double of_u = form.normalizer.kind == NormalizerKind::entmax ? 2 : 1;
  return (name == "out" || name == "dv" ? 2 : 2 * of_u + 1) * kBf16;
}

/// The starts of rows of out, with D elements each, that have different nonzero keys: their error
/// is more than twice that of rounding.
std::vector<size_t> moved_rows(const Doubles& found, const Doubles& truth, int D) {
  const auto d = static_cast<size_t>(D);
  std::vector<size_t> moved;
  for (size_t row = 0; row < truth.size(); row += d) {
    const auto of = [&](const Doubles& x) { return Doubles(&x[row], &x[row] + d); };
    if (relative_error(of(found), of(truth)) > 4 * kBf16) moved.push_back(row);
  }
  return moved;
}

void compare_tiled(const AttentionCase& c, int D, const AttentionForm& form,
                   double first_weights = 1) {
  INFO(text_of(c, D, form));
  AttentionValues x = attention_values<DeviceBf16>(c, D);
  for (double& w : x.others.at("w1")) w *= first_weights;
  Results truth = attention_truth(c, D, x, form);
  const auto run = [&] { return attention_on_engine<DeviceBf16>(Kernels::general, c, D, x, form); };
  engine::counters() = {};
  Results found = run();
  CHECK(engine::counters().ldmatrix_conflicts == 0);
  REQUIRE(found.size() == truth.size());
  if (form.normalizer.kind == NormalizerKind::topk) {
    // A logit of 16 bits may select another key where two logits are close, in one row of hundreds.
    // Such rows are not compared, and their dout is set to 0 so that they do not affect others.
    const std::vector<size_t> moved = moved_rows(found.at("out"), truth.at("out"), D);
    CHECK(moved.size() <= 1 + truth.at("out").size() / static_cast<size_t>(D) / 100);
    for (const size_t row : moved) std::fill_n(&x.dout[row], D, 0.0);
    if (!moved.empty()) {
      truth = attention_truth(c, D, x, form);
      found = run();
    }
    for (const size_t row : moved) {
      for (Results* r : {&found, &truth}) std::fill_n(&r->at("out")[row], D, 0.0);
    }
  }
  if (first_weights != 1) {
    // If no key turns a unit off, its dc1 is 0. Compared together with dw1, whose sums have the
    // same terms.
    for (Results* r : {&found, &truth}) {
      const Doubles& dw1 = r->at("dw1");
      r->at("dc1").insert(r->at("dc1").end(), dw1.begin(), dw1.end());
    }
  }
  for (const auto& [name, t] : truth) {
    INFO(name);
    CHECK(relative_error(found.at(name), t) < mix_tolerance(name, form));
  }
}

void compare_plain(const AttentionCase& c, int D, const AttentionForm& form) {
  INFO(text_of(c, D, form));
  const AttentionValues x = attention_values<float>(c, D);
  const Results truth = attention_truth(c, D, x, form);
  const Results found = attention_on_engine<float>(Kernels::reference, c, D, x, form);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    // For entmax, as in attention_general.cpp.
    const bool entmax = form.normalizer.kind == NormalizerKind::entmax;
    CHECK(relative_error(found.at(name), t) < (entmax ? 1.2e-5 : 4e-6));
  }
}

}  // namespace

TEST_CASE("mixes of heads on tensor cores agree with the reference in every form") {
  for_mixes([](const AttentionForm& form, size_t n) {
    compare_tiled(kAttentionCases[n % kAttentionCases.size()], n % 2 == 0 ? 64 : 16, form);
  });
}

// As at the start of training with small biases: the layer is close to lrelu(c1), and the gradient
// of w2 sums the small differences.
TEST_CASE("gradients of a mix are as good where its hidden layer hardly varies") {
  for (const AttentionForm& form : kMixedForms) {
    compare_tiled(kAttentionCases[2], 16, form, 0x1p-10);
  }
}

TEST_CASE("mixes of heads on tensor cores take every number of heads up to 32") {
  for (const int H : {1, 12, 16, 18, 32}) {
    for (const size_t n : {4, 7, 9, 11}) {
      if (!testing::is_run(static_cast<size_t>(H) / 2, n / 2, 2)) continue;
      compare_tiled({2, 70, H, H % 2 == 0 ? H / 2 : 1, true}, 16, kMixedForms[n]);
    }
  }
}

TEST_CASE("more heads than tensor cores take are mixed in plain loops") {
  compare_tiled({1, 40, 33, 33, true}, 16, kMixedForms[3]);
}

TEST_CASE("mixes of heads in plain loops agree with the reference in every form") {
  for_mixes([](const AttentionForm& form, size_t) {
    compare_plain({2, 45, 4, 2, true}, 24, form);
    compare_plain({1, 70, 3, 1, false, 33}, 24, form);
  });
}

TEST_CASE("mixes of heads give the same bits in every order of threads and blocks") {
  for (const size_t n : {1, 8, 11}) {
    if (n != 8 && !testing::long_tests()) continue;
    check_every_schedule<DeviceBf16>(Kernels::general, {2, 130, 3, 1, true}, 16, kMixedForms[n]);
  }
}

TEST_CASE("mixes of heads fit the memory of an sm_86 block") {
  const engine::Options before = engine::options();
  engine::options().shared_capacity = 99 * 1024;
  AttentionForm form = kMixedForms[3];
  for (const int64_t hidden : {32, 64}) {
    form.mix_hidden = hidden;
    for (const int H : {16, 32, kernels::kMostMixedHeads}) compare_tiled({1, 18, H, 1}, 16, form);
  }
  engine::options() = before;
}

TEST_CASE("mixes of heads that the kernels do not take are refused") {
  const AttentionCase c = {1, 8, 2, 1};
  const auto refuses = [&](const AttentionForm& form, auto&& change) {
    AttentionArrays<DeviceBf16> arrays(c, 16, attention_values<DeviceBf16>(c, 16), form);
    kernels::AttentionBackward<DeviceBf16> g = arrays.backward();
    change(g);
    check_refused(kernels::attention_backward(g, nullptr));
  };
  refuses(kMixedForms[1], [](auto& g) { g.dmix.dw2 = nullptr; });
  refuses(kMixedForms[1], [](auto& g) { g.in.mix.c1 = nullptr; });
  refuses(kMixedForms[1], [](auto& g) { g.in.mix.hidden = 65; });
  refuses(kMixedForms[1], [](auto& g) { g.in.content.count = 100; });
  AttentionForm relative = kMixedForms[0];
  relative.bias = BiasForm::relative;
  refuses(relative, [](auto&) {});
}

// Shorter sequences have fewer tiles of distances, which are divided into more shares.
TEST_CASE("sums of mixes have room in the scratch of longer sequences") {
  const int B = 2, H = 12, K = 4, D = 64, hidden = 32;
  const auto floats = [&](int T, bool backward) {
    return kernels::content_sums(B, T, H, K, D, 0, hidden, backward);
  };
  for (const int longest : {64, 128, 1024, 2048}) {
    std::vector<float> memory(static_cast<size_t>(floats(longest, true)));
    int without_room = 0;
    kernels::AttentionInputs<float> a;
    a.B = B, a.H = H, a.K = K, a.D = D, a.mix.hidden = hidden;
    for (a.T = 1; a.T <= longest; ++a.T) {
      const kernels::ContentSums sums(a, memory.data());
      const int64_t forward = sums.of_table - memory.data() + int64_t{a.T} * hidden;
      const int64_t backward =
          sums.of_shares - memory.data() + int64_t{kernels::mix_shares(a.T)} * a.T * (hidden + H);
      without_room += forward > floats(longest, false) || backward > floats(longest, true);
      without_room += floats(a.T, false) > floats(longest, false);
      without_room += floats(a.T, true) > floats(longest, true);
    }
    CHECK(without_room == 0);
  }
}
