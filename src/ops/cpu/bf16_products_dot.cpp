// By vdpbf16ps of AVX-512, which adds the products of sixteen pairs to sixteen sums.

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "ops/cpu/bf16_products.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

extern const Bf16Products kProducts;

namespace {

constexpr int64_t kLanes = 16;
// Sums in 24 of 32 registers.
constexpr int kRows = 6, kVectors = 4;
constexpr int64_t kRowsAtOnce = 64;

/// R rows by V vectors of C, in registers: C = A B or C += (A + A') B.
template <int R, int V, bool kInTwo>
void block(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  __m512 sum[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      sum[r][v] = kInTwo ? _mm512_loadu_ps(c + r * s.ldc + v * kLanes) : _mm512_setzero_ps();
    }
  }
  for (int64_t k = 0; k < s.K / 2; ++k) {
    __m512bh row[V];
    for (int v = 0; v < V; ++v) row[v] = (__m512bh)_mm512_loadu_ps(b + k * s.ldb + v * kLanes);
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * s.lda + 2 * k, sizeof pair);
      const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
      for (int v = 0; v < V; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, row[v]);
      if constexpr (kInTwo) {
        __builtin_memcpy(&pair, a + r * s.lda + s.K + 2 * k, sizeof pair);
        const __m512bh y = (__m512bh)_mm512_set1_epi32(pair);
        for (int v = 0; v < V; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], y, row[v]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(c + r * s.ldc + v * kLanes, sum[r][v]);
  }
}

template <int V, bool kInTwo, int... R>
void rest(std::integer_sequence<int, R...>, int64_t rows, const Bf16Shape& s, const bf16* a,
          const Bf16Pair* b, float* c) {
  ((rows == R ? block < R == 0 ? 1 : R, V, kInTwo > (s, a, b, c) : void()), ...);
}

template <int V, bool kInTwo>
void columns(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  int64_t m = 0;
  for (; m + kRows <= s.M; m += kRows) block<kRows, V, kInTwo>(s, a + m * s.lda, b, c + m * s.ldc);
  rest<V, kInTwo>(std::make_integer_sequence<int, kRows>(), s.M - m, s, a + m * s.lda, b,
                  c + m * s.ldc);
}

template <bool kInTwo>
void multiply(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  for (int64_t n = 0; n < s.N;) {
    const int64_t vectors = std::min<int64_t>(kVectors, (s.N - n) / kLanes);
    if (vectors == 1) columns<1, kInTwo>(s, a, b + n, c + n);
    if (vectors == 2) columns<2, kInTwo>(s, a, b + n, c + n);
    if (vectors == 3) columns<3, kInTwo>(s, a, b + n, c + n);
    if (vectors == 4) columns<4, kInTwo>(s, a, b + n, c + n);
    n += vectors * kLanes;
  }
}

void nothing() {}

}  // namespace

constinit const Bf16Products kProducts = {nothing, nothing, multiply<false>, multiply<true>,
                                          kRowsAtOnce};

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
