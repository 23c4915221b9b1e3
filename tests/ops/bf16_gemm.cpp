// bf16 products in hardware, where available, compared with sums in fp64.

#include "ops/cpu/bf16_gemm.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "compare.h"

namespace bamtrain::testing {
namespace {

/// Calls f(products) if this machine has them.
template <class F>
void with_products_of_bf16(F&& f) {
  const Bf16Gemm* const products = bf16_gemm(kNewestIsa);
  if (!products) {
    WARN("no AMX here, or none that oneDNN uses: not tested");
    return;
  }
  products->begin();
  f(*products);
  products->end();
}

/// A product whose row stride exceeds the row length; the elements in between are NaN.
struct Case {
  Bf16Shape shape;
  std::vector<bf16> a;      // (M, lda), A and A' adjacent
  std::vector<Bf16Pair> b;  // (K / 2, ldb)
  std::vector<float> c;     // (M, ldc)

  Case(int64_t M, int64_t N, int64_t K)
      : shape{M, N, K, 2 * K + 6, N + 16, N + 16},
        a(static_cast<size_t>(M * shape.lda), nan()),
        b(static_cast<size_t>(K / 2 * shape.ldb), Bf16Pair{nan(), nan()}),
        c(static_cast<size_t>(M * shape.ldc), std::numeric_limits<float>::quiet_NaN()) {
    const Values x = random_values(Role::activation, {M, 2 * K}, "a");
    const Values y = random_values(Role::activation, {K, N}, "b");
    const Values z = random_values(Role::parameter, {M, N}, "c");
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t k = 0; k < 2 * K; ++k) at_a(m, k) = bf16(of(x, m * 2 * K + k));
      for (int64_t n = 0; n < N; ++n) at_c(m, n) = of(z, m * N + n);
    }
    for (int64_t k = 0; k < K; ++k) {
      for (int64_t n = 0; n < N; ++n) at_b(k, n) = bf16(of(y, k * N + n));
    }
  }

  bf16& at_a(int64_t m, int64_t k) { return a[static_cast<size_t>(m * shape.lda + k)]; }
  bf16& at_b(int64_t k, int64_t n) {
    Bf16Pair& pair = b[static_cast<size_t>(k / 2 * shape.ldb + n)];
    return k % 2 == 0 ? pair.even : pair.odd;
  }
  float& at_c(int64_t m, int64_t n) { return c[static_cast<size_t>(m * shape.ldc + n)]; }

  static bf16 nan() { return bf16(std::numeric_limits<float>::quiet_NaN()); }
  static float of(const Values& v, int64_t i) {
    return static_cast<float>(v.x[static_cast<size_t>(i)]);
  }
};

TEST_CASE("products of bf16 are sums in fp32 of exact terms") {
  with_products_of_bf16([](const Bf16Gemm& products) {
    for (const int64_t M : {16, 32, 64}) {
      for (const int64_t N : {16, 32, 48, 64, 80, 128, 160}) {
        for (const int64_t K : {32, 64, 96, 128, 160}) {
          for (const bool add : {false, true}) {
            if (add && K % 64 != 0) continue;
            Case x(M, N, K);
            const Case before = x;
            const auto run = add ? products.add_in_two : products.multiply;
            run(x.shape, x.a.data(), x.b.data(), x.c.data());
            int64_t wrong = 0, spoiled = 0;
            for (int64_t m = 0; m < M; ++m) {
              for (int64_t n = 0; n < x.shape.ldc; ++n) {
                if (n >= N) {  // between rows
                  spoiled += !std::isnan(x.at_c(m, n));
                  continue;
                }
                const auto old = static_cast<size_t>(m * x.shape.ldc + n);
                double truth = add ? static_cast<double>(before.c[old]) : 0, size = std::abs(truth);
                for (int64_t k = 0; k < (add ? 2 * K : K); ++k) {
                  const double term = static_cast<double>(static_cast<float>(x.at_a(m, k))) *
                                      static_cast<double>(static_cast<float>(x.at_b(k % K, n)));
                  truth += term;
                  size += std::abs(term);
                }
                // One rounding per addition, in any order.
                const double bound = static_cast<double>(2 * K + 1) * kF32 * size;
                wrong += !(std::abs(static_cast<double>(x.at_c(m, n)) - truth) <= bound);
              }
            }
            INFO(M << " x " << N << " of sums of " << K << (add ? ", added in two" : ""));
            CHECK(wrong == 0);
            CHECK(spoiled == 0);
          }
        }
      }
    }
  });
}

TEST_CASE("what is no number stays in its row or column of a product of bf16") {
  with_products_of_bf16([](const Bf16Gemm& products) {
    Case x(32, 48, 64);
    x.at_a(17, 40) = Case::nan();
    x.at_b(33, 20) = Case::nan();
    products.multiply(x.shape, x.a.data(), x.b.data(), x.c.data());
    int64_t wrong = 0;
    for (int64_t m = 0; m < 32; ++m) {
      for (int64_t n = 0; n < 48; ++n) {
        wrong += std::isnan(x.at_c(m, n)) != (m == 17 || n == 20);
      }
    }
    CHECK(wrong == 0);
  });
}

}  // namespace
}  // namespace bamtrain::testing
