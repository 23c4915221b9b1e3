// The plain attention kernels, compared with the fp64 reference backend, and the fused ones,
// compared with the plain ones.

#include "catch.h"
#include "kernels/attention_cases.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// fp32: sums of up to 256 products, then of up to 200 rows, with errors of both signs. bf16: out
/// is rounded and D_i reads it rounded; then the gradient is rounded.
template <class A>
double reference_tolerance(const std::string& name) {
  const double fp32 = 2e-6;
  if (std::is_same_v<A, float> || name == "lse") return fp32;
  return name == "out" ? kRoundoff<A> : 2 * kRoundoff<A>;
}

template <class A>
void compare_reference(const AttentionCase& c, int D, const AttentionForm& form) {
  INFO(text_of(c, D, form));
  const AttentionValues x = attention_values<A>(c, D);
  const Results truth = attention_truth(c, D, x, form);
  const Results found = attention_on_engine<A>(Kernels::reference, c, D, x, form);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    CHECK(relative_error(found.at(name), t) < reference_tolerance<A>(name));
  }
}

}  // namespace

TEST_CASE("plain attention kernels of every form agree with the reference backend") {
  for (const AttentionForm& form : kEveryForm) {
    compare_reference<float>({2, 45, 4, 2, true}, 24, form);
    compare_reference<DeviceBf16>({2, 45, 4, 2, true}, 24, form);
  }
}

TEST_CASE("plain attention kernels take one row, windows, and any head dimension up to 256") {
  compare_reference<float>({1, 1, 2, 1}, 64, {BiasForm::table, true});
  compare_reference<float>({1, 70, 3, 1, true, 33}, 1, {BiasForm::table, true, true});
  compare_reference<float>({1, 37, 1, 1}, 80, {BiasForm::table});
  compare_reference<DeviceBf16>({1, 40, 2, 2, false, 7}, 256, {BiasForm::table, true});
}

TEST_CASE("fused attention kernels agree with the plain ones") {
  const AttentionCase c = {2, 130, 4, 2, true, 50};
  const AttentionForm form = {BiasForm::table, true};
  const AttentionValues x = attention_values<DeviceBf16>(c, 48);
  const Results plain = attention_on_engine<DeviceBf16>(Kernels::reference, c, 48, x, form);
  const Results fused = attention_on_engine<DeviceBf16>(Kernels::fused, c, 48, x, form);
  for (const auto& [name, p] : plain) {
    INFO(name);
    // Both round out and gradients; the fused kernels also round p and dz.
    CHECK(relative_error(fused.at(name), p) < (name == "lse" ? 1e-6 : 3 * kRoundoff<DeviceBf16>));
  }
}

TEST_CASE("plain attention kernels give the same bits in every order of threads, warps, blocks") {
  check_every_schedule<float>(Kernels::reference, {1, 40, 2, 1, true}, 8,
                              {BiasForm::table, true, true});
}

TEST_CASE("arguments that the plain attention kernels do not take are refused") {
  const AttentionCase c = {1, 8, 2, 1};
  AttentionArrays<float> arrays(c, 16, attention_values<float>(c, 16), {BiasForm::table, true});
  for (int D : {0, 257}) {
    kernels::AttentionForward<float> f = arrays.forward();
    f.in.D = D;
    check_refused(kernels::attention_reference_forward(f, nullptr));
    kernels::AttentionBackward<float> g = arrays.backward();
    g.in.D = D;
    check_refused(kernels::attention_reference_backward(g, nullptr));
  }
  kernels::AttentionBackward<float> g = arrays.backward();
  g.in.H = 3;
  g.in.K = 2;
  check_refused(kernels::attention_reference_backward(g, nullptr));
}
