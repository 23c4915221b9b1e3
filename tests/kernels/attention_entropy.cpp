// The entropy of attention's rows on the engine, compared with fp64, and scales from it.

#include "kernels/attention_entropy.h"

#include "kernels/attention_cases.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// From the engine's inputs, with dense rows of p by the definition.
template <class A>
Doubles dense_entropy(const AttentionCase& c, int D, const AttentionValues& x,
                      const AttentionForm& form) {
  const int W = (c.H + 2 * c.K) * D;
  Doubles out;
  for (int b = 0; b < c.B; ++b) {
    for (int h = 0; h < c.H; ++h) {
      for (int i = 0; i < c.T; ++i) {
        const auto row = [&](int t, int head) {
          return x.qkv.data() + (static_cast<int64_t>(b) * c.T + t) * W + head * D;
        };
        Doubles z;
        for (int j = x.first_key[static_cast<size_t>(b * c.T + i)]; j <= i; ++j) {
          const double* q = row(i, h);
          const double* k = row(j, c.H + h / (c.H / c.K));
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[d] * k[d];
          s *= form.content_scale != 0 ? form.content_scale : 1 / std::sqrt(1.0 * D);
          if (form.bias == BiasForm::table) s += x.table[static_cast<size_t>(h * c.T + i - j)];
          if (has_sums(form)) {
            const double* S = x.sums.data() + static_cast<int64_t>(b * c.H + h) * c.T;
            const double rise = S[j] - S[i];
            s += form.bias == BiasForm::log_square ? -std::log(1 + rise * rise) : rise;
          }
          if (form.bias == BiasForm::fire) {
            const FireValues& f = x.fire;
            const auto p = static_cast<size_t>(f.positions[static_cast<size_t>(b * c.T + i)]);
            auto line = static_cast<size_t>(h) * kFireSegments;
            for (size_t n = 0; n < kFireHidden; ++n) line += f.ends[p * kFireHidden + n] <= i - j;
            s += f.slope[line] * f.psi[static_cast<size_t>(i - j)] * f.inverse[p] + f.offset[line];
          }
          z.push_back(s);
        }
        double sum = 0, entropy = 0;
        for (double v : z) sum += std::exp(v);
        for (double v : z) entropy -= std::exp(v) / sum * (v - std::log(sum));
        out.push_back(entropy);
      }
    }
  }
  return out;
}

template <class A>
Doubles entropy_on_engine(const AttentionCase& c, int D, const AttentionValues& x,
                          const AttentionForm& form) {
  AttentionArrays<A> arrays(c, D, x, form);
  kernels::AttentionInputs<A> in = arrays.forward().in;
  in.v = {};
  GlobalArray<float> entropy(static_cast<size_t>(c.B * c.H * c.T));
  REQUIRE(kernels::attention_entropy(entropy.data(), in, nullptr).ok());
  return doubles(entropy);
}

constexpr AttentionForm kNoForm = {}, kTable = {BiasForm::table}, kSums = {BiasForm::difference},
                        kLogSquare = {BiasForm::log_square, false, false, 0.1},
                        kFire = {BiasForm::fire};

template <class A>
void compare_entropy(const AttentionCase& c, int D, const AttentionForm& form) {
  INFO(text_of(c, D, form));
  const AttentionValues x = attention_values<A>(c, D);
  // Logits of size 5 are sums of D terms, then come sums of T: 16 roundings of the larger of H and
  // 1.
  check_close(entropy_on_engine<A>(c, D, x, form), dense_entropy<A>(c, D, x, form),
              [](size_t) { return 64 * 0x1p-24; });
}

}  // namespace

TEST_CASE("entropies of every form agree with dense rows") {
  for (const AttentionForm& form : {kNoForm, kTable, kSums, kLogSquare, kFire}) {
    compare_entropy<float>({2, 45, 4, 2, true}, 24, form);
    compare_entropy<DeviceBf16>({1, 70, 2, 1, false, 37}, 48, form);
  }
}

TEST_CASE("entropies of one row, windows, documents and any head dimension agree with dense rows") {
  compare_entropy<float>({1, 1, 2, 1}, 64, kTable);
  compare_entropy<float>({1, 33, 3, 1, true, 20}, 1, kLogSquare);
  compare_entropy<DeviceBf16>({1, 17, 1, 1}, 80, kNoForm);
  compare_entropy<float>({1, 100, 1, 1, true}, 33, kTable);
}

TEST_CASE("a row that sees one key has entropy 0, exactly") {
  const AttentionCase c = {2, 40, 2, 2, false, 1};
  for (const AttentionForm& form : {kNoForm, kTable, kSums, kLogSquare, kFire}) {
    const AttentionValues x = attention_values<float>(c, 16);
    for (double H : entropy_on_engine<float>(c, 16, x, form)) CHECK(H == 0);
  }
}

TEST_CASE("entropies have the same bits in every order of threads, warps and blocks") {
  const AttentionCase c = {1, 40, 2, 1, true};
  const AttentionValues x = attention_values<DeviceBf16>(c, 40);
  check_same_under_all_schedules([&] { return entropy_on_engine<DeviceBf16>(c, 40, x, kTable); });
}

TEST_CASE("scales of entropies are the polynomial, 1 where it is less or the entropy is small") {
  const std::vector<float> H = {0, 0.5f, 0.75f, 1, 2, 3.5f, 7, NAN};
  constexpr int kRows = 140;
  std::vector<float> all;
  for (int n = 0; n < 2 * 3 * kRows; ++n) all.push_back(H[static_cast<size_t>(n % 8)]);
  GlobalArray<float> x(all);
  REQUIRE(kernels::entropy_scale(x.data(), x.data(), 2, 3, kRows, 1, nullptr).ok());
  for (size_t n = 0; n < all.size(); ++n) {
    const auto h = static_cast<double>(all[n]);
    const double p = (((-0.037 * h + 0.481) * h - 2.3) * h + 4.917) * h - 1.791;
    const double t = n / kRows % 3 >= 1 && h > 0.5 ? std::max(1.0, p) : 1;
    if (!(std::abs(static_cast<double>(x[n]) - t) <= 0x1p-24 * t)) FAIL(n << ": " << x[n]);
  }
}

TEST_CASE("entropies and their scales of arguments that they do not take are refused") {
  const AttentionCase c = {1, 8, 2, 1};
  AttentionArrays<float> arrays(c, 16, attention_values<float>(c, 16), kTable);
  const kernels::AttentionInputs<float> good = arrays.forward().in;
  GlobalArray<float> out(16);
  const auto refused = [&](auto change) {
    kernels::AttentionInputs<float> in = good;
    change(in);
    return kernels::attention_entropy(out.data(), in, nullptr).code ==
           device::LaunchStatus::kRefused;
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& in) { in.T = 0; }));
  CHECK(refused([](auto& in) { in.D = 0; }));
  CHECK(refused([](auto& in) { in.K = 3; }));
  CHECK(refused([](auto& in) { in.q.data = nullptr; }));
  CHECK(refused([](auto& in) { in.scale = in.table; }));
  check_refused(kernels::attention_entropy<float>(nullptr, good, nullptr));
  check_refused(kernels::entropy_scale(out.data(), out.data(), 0, 1, 1, 0, nullptr));
  check_refused(kernels::entropy_scale(out.data(), out.data(), 1, 65536, 1, 0, nullptr));
  check_refused(kernels::entropy_scale(out.data(), nullptr, 1, 1, 1, 0, nullptr));
  check_refused(kernels::entropy_scale(nullptr, out.data(), 1, 1, 1, 0, nullptr));
}
