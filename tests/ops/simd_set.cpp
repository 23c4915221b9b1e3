// Compiled once per instruction set, like the library in src/ops/meson.build.

#include "simd_set.h"

#include "ops/cpu/simd.h"

#define BAMTRAIN_QUOTED(x) #x
#define BAMTRAIN_QUOTED_VALUE(x) BAMTRAIN_QUOTED(x)

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

extern const testing::SimdSet kSimdSet;
constinit const testing::SimdSet kSimdSet = {
    BAMTRAIN_QUOTED_VALUE(BAMTRAIN_ISA),
    simd::kWidth,
    [](float* out, const float* x) { simd::store(out, simd::exp(simd::load(x))); },
    [](float* out, const float* x) { simd::store(out, simd::log(simd::load(x))); },
    [](float* out, const float* x) { simd::store(out, simd::erf(simd::load(x))); },
    [](const float* x) { return simd::sum(simd::load(x)); },
    [](const float* x) { return simd::maximum(simd::load(x)); },
    [](float* x) {
      simd::Vec v[simd::kWidth];
      for (int i = 0; i < simd::kWidth; ++i) v[i] = simd::load(x + i * simd::kWidth);
      simd::transpose(v);
      for (int i = 0; i < simd::kWidth; ++i) simd::store(x + i * simd::kWidth, v[i]);
    },
    [](const float* a, const float* b) { return simd::any_above(simd::load(a), simd::load(b)); },
    [](bf16* first, bf16* second, const float* x) {
      simd::store_in_two(first, second, simd::load(x), simd::load(x + simd::kWidth));
    },
    [](float* out, const float* in, int64_t n) { simd::store(out, simd::load_partial(in, n)); },
    [](float* out, const float* x, int64_t n) { simd::store_partial(out, simd::load(x), n); }};

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
