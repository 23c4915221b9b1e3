#pragma once
// One register of floats, using the compiler's vector types. Vectors wider than the target's
// registers are not an option: g++ 12 splits them through memory.

#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "core/dtype.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace simd {

#if defined(__AVX512F__)
constexpr int kWidth = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kWidth = 8, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kWidth = 4, kRegisters = 32;
#else
constexpr int kWidth = 4, kRegisters = 16;
#endif
typedef float Vec __attribute__((vector_size(4 * kWidth)));
typedef int32_t IVec __attribute__((vector_size(4 * kWidth)));
typedef uint32_t UVec __attribute__((vector_size(4 * kWidth)));
typedef uint16_t HVec __attribute__((vector_size(2 * kWidth)));

inline Vec splat(float x) { return x - Vec{}; }

inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

/// __builtin_convertvector, which g++ 12 splits into halves.
inline UVec widen(HVec h) {
#if defined(__AVX512F__)
  constexpr __mmask16 kAll = 0xFFFF;  // g++ 12 warns about the form without a mask
  return reinterpret_cast<UVec>(_mm512_maskz_cvtepu16_epi32(kAll, reinterpret_cast<__m256i>(h)));
#elif defined(__AVX2__)
  return reinterpret_cast<UVec>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(h)));
#else
  return __builtin_convertvector(h, UVec);
#endif
}
inline Vec load(const bf16* p) {
  HVec h;
  std::memcpy(&h, p, sizeof h);
  return reinterpret_cast<Vec>(widen(h) << 16);
}
/// Rounds to nearest even, as bf16(float) does; NaN stays NaN.
inline void store(bf16* p, Vec v) {
  const UVec u = reinterpret_cast<UVec>(v);
  const UVec rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  const UVec quiet = (u >> 16) | 0x40u;
  const HVec h = __builtin_convertvector((v == v) ? rounded : quiet, HVec);
  std::memcpy(static_cast<void*>(p), &h, sizeof h);
}

/// Stores 2 kWidth nonnegative numbers as sums of two bf16 each: the number rounded down, and the
/// remainder rounded to nearest. The relative error is at most 2^-16. NaN stays NaN.
inline void store_in_two(bf16* first, bf16* second, Vec low, Vec high) {
  typedef uint16_t Halves __attribute__((vector_size(4 * kWidth)));
  Halves upper;  // of low, then of high
  for (int i = 0; i < 2 * kWidth; ++i) upper[i] = static_cast<uint16_t>(2 * i + 1);
  const auto store_upper = [upper](bf16* p, UVec a, UVec b) {
    const Halves h =
        __builtin_shuffle(reinterpret_cast<Halves>(a), reinterpret_cast<Halves>(b), upper);
    std::memcpy(static_cast<void*>(p), &h, sizeof h);
  };
  const auto left = [](Vec x) {
    const Vec below = reinterpret_cast<Vec>(reinterpret_cast<UVec>(x) & 0xFFFF0000u);
    return reinterpret_cast<UVec>(x - below) + 0x8000u;
  };
  store_upper(first, reinterpret_cast<UVec>(low), reinterpret_cast<UVec>(high));
  store_upper(second, left(low), left(high));
}

/// Prefetches the cache lines of `bytes` at p, which may be any address. The hardware prefetcher
/// keeps fewer lines in flight than memory could deliver.
inline void prefetch(uintptr_t p, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t b = 0; b < bytes; b += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(p + static_cast<uintptr_t>(b)));
  }
}

/// Loads the first n < kWidth elements; the rest is zero.
template <class T>
inline Vec load_partial(const T* p, int64_t n) {
  T buffer[kWidth] = {};
  std::memcpy(static_cast<void*>(buffer), p, static_cast<size_t>(n) * sizeof(T));
  return load(buffer);
}
template <class T>
inline void store_partial(T* p, Vec v, int64_t n) {
  T buffer[kWidth];
  store(buffer, v);
  std::memcpy(static_cast<void*>(p), buffer, static_cast<size_t>(n) * sizeof(T));
}

/// The larger element of each pair; b if either is NaN.
inline Vec max(Vec a, Vec b) { return a > b ? a : b; }
/// Whether any lane of a is greater than the same lane of b, with neither NaN.
inline bool any_above(Vec a, Vec b) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(a > b)) != 0;
#else
  const IVec above = a > b;
  int32_t any = 0;
  for (int l = 0; l < kWidth; ++l) any |= above[l];
  return any != 0;
#endif
}

/// 0, 1, ..., kWidth - 1.
inline IVec lanes() {
  constexpr int32_t kLanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  IVec v;
  std::memcpy(&v, kLanes, sizeof v);
  return v;
}

/// The sum of all lanes in a fixed order (halves, quarters, ...).
inline float sum(Vec v) {
  float x[kWidth];
  store(x, v);
  for (int half = kWidth / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  }
  return x[0];
}
/// Transposes: v[l] becomes lane l of each vector.
template <int kBlock = kWidth / 2>
inline void transpose(Vec (&v)[kWidth]) {
  // Swaps blocks across the diagonal, larger blocks first.
  if constexpr (kBlock > 0) {
    const IVec own = lanes(), first = own & kBlock;
    const IVec upper = first == 0 ? own : own + (kWidth - kBlock);
    const IVec lower = first == 0 ? own + kBlock : own + kWidth;
    for (int i = 0; i < kWidth; ++i) {
      if (i & kBlock) continue;
      const Vec a = v[i], b = v[i + kBlock];
      v[i] = __builtin_shuffle(a, b, upper);
      v[i + kBlock] = __builtin_shuffle(a, b, lower);
    }
    transpose<kBlock / 2>(v);
  }
}
/// Lane l of the result is the sum of all lanes of v[l], in a fixed order (neighbours, pairs, ...).
/// Overwrites v.
inline Vec sums_of(Vec (&v)[kWidth]) {
  const IVec even = 2 * lanes();
  for (int n = kWidth; n > 1; n /= 2) {
    for (int i = 0; i < n / 2; ++i) {
      const Vec a = v[2 * i], b = v[2 * i + 1];
      v[i] = __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, even + 1);
    }
  }
  return v[0];
}
/// The largest lane. With NaN lanes, the result is some lane, not always the largest.
inline float maximum(Vec v) {
  float x[kWidth];
  store(x, v);
  for (int half = kWidth / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] = x[i] > x[i + half] ? x[i] : x[i + half];
  }
  return x[0];
}

/// Lane l of the result is lane l + kBy of v, or 0 past the last lane.
template <int kBy>
inline Vec shifted(Vec v) {
  const IVec from = lanes() + kBy;
  const IVec inside = (from >= 0) & (from < kWidth);
  return __builtin_shuffle(Vec{}, v, inside ? from + kWidth : IVec{});
}
/// Inclusive suffix sums of the lanes (kDirection 1) or prefix sums (-1).
template <int kDirection, int kStep = 1>
inline Vec running_sums(Vec v) {
  if constexpr (kStep >= kWidth) {
    return v;
  } else {
    return running_sums<kDirection, 2 * kStep>(v + shifted<kDirection * kStep>(v));
  }
}
inline float first_lane(Vec v) { return v[0]; }
inline float last_lane(Vec v) { return v[kWidth - 1]; }

/// Lane l of the result is p[at[l]].
inline Vec gather(const float* p, IVec at) {
  Vec v;
  for (int l = 0; l < kWidth; ++l) v[l] = p[at[l]];
  return v;
}

/// exp(x) for x <= 88, with a relative error below 2e-7 from -64 up, and 0 below -64; NaN stays
/// NaN. A probability below e^-64 (2e-28) adds nothing to a sum in fp32. Its products with
/// gradients would be denormal, which is a hundred times slower on processors.
inline Vec exp_up_to_88(Vec x) {
  // x = (n + r) ln 2 with |r| <= 1/2.
  const float kLog2e = 1.44269502f, kRest = 1.92596299e-8f;  // 1 / ln 2 is their sum
  const float kMagic = 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  const Vec shifted = x * kLog2e + kMagic;
  const Vec n = shifted - kMagic;
  const Vec r = x * kRest + (x * kLog2e - n);
  // 2^r.
  Vec p = splat(1.3264727089e-3f);
  p = p * r + 9.6715128620e-3f;
  p = p * r + 5.5507337456e-2f;
  p = p * r + 2.4022242082e-1f;
  p = p * r + 6.9314697760e-1f;
  p = p * r + 1.0f;
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, splat(-64.0f), _CMP_NLT_UQ), p, n);
#else
  // Multiplies by 2^n, exactly. Adding to the exponent bits would turn some NaNs into numbers.
  p = p * reinterpret_cast<Vec>((reinterpret_cast<IVec>(shifted) << 23) + (127 << 23));
  return x < -64.0f ? Vec{} : p;
#endif
}
/// The same for any x: above 88 returns e^88.
inline Vec exp(Vec x) {
#if defined(__AVX512F__)
  constexpr __mmask16 kAll = 0xFFFF;
  return exp_up_to_88(_mm512_maskz_min_ps(kAll, splat(88.0f), x));  // returns x if x is NaN
#else
  return exp_up_to_88((x > 88.0f) ? splat(88.0f) : x);
#endif
}

/// log(x) for 1 <= x < 2^127, with an error below 1e-7 (1 + log x); NaN stays NaN.
inline Vec log(Vec x) {
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)).
  const IVec bits = reinterpret_cast<IVec>(x);
  const IVec shifted = bits - 0x3f3504f3;  // the bits of sqrt(1/2)
  const Vec n = __builtin_convertvector(shifted >> 23, Vec);
  const Vec m = reinterpret_cast<Vec>((shifted & 0x007fffff) + 0x3f3504f3);
  const Vec r = m - 1.0f;
  Vec p = splat(7.0376836292e-2f);
  p = p * r - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  const Vec square = r * r;
  const Vec y = n * 0.693359375f + (r + (n * -2.12194440e-4f - 0.5f * square + p * r * square));
  return x == x ? y : x;
}

/// erf(x) with an error below 4e-7; NaN stays NaN.
inline Vec erf(Vec x) {
  // x P(x^2) / Q(x^2), fitted up to 3.93; beyond that erf rounds to 1.
  const float kOne = 3.93f;
  const Vec at = x > kOne ? splat(kOne) : x < -kOne ? splat(-kOne) : x;
  const Vec square = at * at;
  Vec p = splat(2.041975774e-6f);
  p = p * square + 2.848059261e-4f;
  p = p * square + 3.779521793e-3f;
  p = p * square + 5.279001038e-2f;
  p = p * square + 1.907818948e-1f;
  p = p * square + 1.128379145f;
  Vec q = splat(3.800398803e-5f);
  q = q * square + 1.165190264e-3f;
  q = q * square + 1.499726154e-2f;
  q = q * square + 1.142567047e-1f;
  q = q * square + 5.024087720e-1f;
  q = q * square + 1.0f;
  const Vec y = at * p / q;
  return x >= kOne ? splat(1) : x <= -kOne ? splat(-1) : y;
}

inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }
inline Vec tanh(Vec x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

}  // namespace simd
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
