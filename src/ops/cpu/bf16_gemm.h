#pragma once
// GEMMs of small bf16 matrices with fp32 accumulation, using bf16 instructions that some processors
// have: the inner loops of the CPU attention in bf16.

#include <cstdint>

#include "core/dtype.h"
#include "ops/cpu/isa.h"

namespace bamtrain {

/// C (M, N), A (M, K), B (K, N). A has contiguous rows of bf16. B is stored in pairs: its rows 2k
/// and 2k + 1 are interleaved by column into one row of 2N elements. Leading dimensions count
/// elements of A and C, pairs of B. REQUIRES: M and N are multiples of 16, K of 32.
struct Bf16Shape {
  int64_t M, N, K;
  int64_t lda, ldb, ldc;
};
struct Bf16Pair {
  bf16 even, odd;
};

struct Bf16Gemm {
  /// Bracket a thread's products; the thread computes no other products in between.
  void (*begin)();
  void (*end)();
  /// C = A B
  void (*multiply)(const Bf16Shape&, const bf16* a, const Bf16Pair* b, float* c);
  /// C += (A + A') B, where A' is stored in the K columns after A. REQUIRES: K is a multiple of 64.
  void (*add_in_two)(const Bf16Shape&, const bf16* a, const Bf16Pair* b, float* c);
  /// Rows that attention multiplies at a time, between other work.
  int64_t rows_at_once;
};

/// The AMX GEMM. Null unless the processor has AMX, the system grants its registers, oneDNN uses it
/// here (so that ONEDNN_MAX_CPU_ISA applies to both) and `most` allows it. AVX-512's own bf16
/// products are not used: on processors that also have AMX they are slower than fp32 products.
const Bf16Gemm* bf16_gemm(CpuIsa most);

}  // namespace bamtrain
