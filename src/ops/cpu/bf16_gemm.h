#pragma once
// GEMMs of small bf16 matrices that accumulate in fp32, by instructions that some processors have
// for them: the inner loops of the CPU attention in bf16.

#include <cstdint>

#include "core/dtype.h"
#include "ops/cpu/isa.h"

namespace bamtrain {

/// C (M, N) of A (M, K) and B (K, N). A has contiguous rows of bf16; B comes in pairs: its rows 2k
/// and 2k + 1 lie as one row of 2N elements, column by column. Leading dimensions count elements of
/// A and C, pairs of B. REQUIRES: M and N are multiples of 16, K of 32.
struct Bf16Shape {
  int64_t M, N, K;
  int64_t lda, ldb, ldc;
};
struct Bf16Pair {
  bf16 even, odd;
};

struct Bf16Gemm {
  /// Around the products of a thread, between which it computes no others.
  void (*begin)();
  void (*end)();
  /// C = A B
  void (*multiply)(const Bf16Shape&, const bf16* a, const Bf16Pair* b, float* c);
  /// C += (A + A') B, where A' lies in the K columns behind A. REQUIRES: K is a multiple of 64.
  void (*add_in_two)(const Bf16Shape&, const bf16* a, const Bf16Pair* b, float* c);
  /// Rows that attention multiplies before it does something else.
  int64_t rows_at_once;
};

/// AMX's, where the processor has it, the system gives its registers, oneDNN uses it here (so that
/// ONEDNN_MAX_CPU_ISA is for both) and `most` allows it; otherwise null. AVX-512's own products of
/// bf16 are slower than those of fp32 on processors that also have AMX.
const Bf16Gemm* bf16_gemm(CpuIsa most);

}  // namespace bamtrain
