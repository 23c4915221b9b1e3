#pragma once
// Per-row numbers computed from gates, and the adjoint. The rules of scales/gated_rows.h are
// evaluated in fp64. A: float or bf16.

#include <cstdint>

#include "launch.h"
#include "scales/gated_rows.h"

namespace bamtrain::kernels {

using device::bf16;

/// Gates (B, T, kGates H), strides in elements, innermost dimension contiguous: the first gate of
/// all heads, then the next. Row i of sequence b sees n = last_key[b][i] - first_key[b][i] + 1
/// keys; a null last_key means i.
template <class A>
struct GatedRows {
  GatedRule rule = {};
  const A* gates = nullptr;
  int64_t batch = 0, row = 0;
  const float* bias[kMostGates] = {};  // (H): added to the gates; null: no bias
  const int32_t* first_key = nullptr;  // (B, T), in [0, i]
  const int32_t* last_key = nullptr;   // (B, T), in [i, T); null: i
  FormulaConstants constants;
  int B = 0, H = 0, T = 0;
  int first_head = 0;  // earlier heads have the number 1
};

/// The output (B, H, T): one of the two is set.
struct RowNumbersOut {
  float* rows = nullptr;
  double* wide = nullptr;
};

/// One kernel. Refuses sizes that are not positive, over 65,535 sequences or heads, a first head
/// out of range, missing arrays and one bias without the other.
template <class A>
device::LaunchStatus gated_rows_forward(const RowNumbersOut& to, const GatedRows<A>& s,
                                        device::Stream stream);

/// Rows whose gradients one block sums.
constexpr int kGatedRows = 256;
/// Doubles of GatedRowsGradients::scratch.
constexpr int64_t gated_rows_scratch(int64_t B, int64_t H, int64_t T) {
  return kMostGates * H * B * ((T + kGatedRows - 1) / kGatedRows);
}

template <class A>
struct GatedRowsGradients {
  A* dgates = nullptr;            // laid out as the gates
  float* dbias[kMostGates] = {};  // (H), +=, if there is a bias
  const float* drows = nullptr;   // (B, H, T)
  double* scratch = nullptr;      // gated_rows_scratch doubles, if there is a bias
};

/// dgates (0 in heads before first_head) and dbias, in fp64 and in a fixed order: one kernel, two
/// with a bias. Refuses what gated_rows_forward refuses.
template <class A>
device::LaunchStatus gated_rows_backward(const GatedRowsGradients<A>& g, const GatedRows<A>& s,
                                         device::Stream stream);

}  // namespace bamtrain::kernels
