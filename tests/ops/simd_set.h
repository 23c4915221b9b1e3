#pragma once
// The vector functions of ops/cpu/simd.h as the library compiles them: once per instruction set.

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace bamtrain::testing {

/// All pointers are to `width` elements.
struct SimdSet {
  const char* name;
  int width;
  void (*exp)(float* out, const float* x);
  void (*log)(float* out, const float* x);
  void (*erf)(float* out, const float* x);
  float (*sum)(const float* x);
  float (*maximum)(const float* x);
  void (*transpose)(float* x);  // (width, width)
  bool (*any_above)(const float* a, const float* b);
  void (*store_in_two)(bf16* first, bf16* second, const float* x);  // 2 width each
  void (*load_partial)(float* out, const float* in, int64_t n);
  void (*store_partial)(float* out, const float* x, int64_t n);
};

/// The sets in this build that this machine can run.
std::vector<SimdSet> simd_sets();

}  // namespace bamtrain::testing
