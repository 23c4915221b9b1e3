#pragma once
// The tables that attention reads of a prior of family fire, and the adjoint. See fire_forward in
// ops/mechanisms/fire.h, and priors/fire.h, whose formulas are evaluated in fp64 and rounded once,
// as on the host.

#include <cstdint>

#include "launch.h"
#include "priors/fire.h"

namespace bamtrain::kernels {

/// The parameters of one layer, or their gradients.
template <class Scalar>
struct FireTheta {
  Scalar *c = nullptr, *m = nullptr;    // (1)
  Scalar *w1 = nullptr, *b1 = nullptr;  // (kFireHidden)
  Scalar* w2 = nullptr;                 // (H, kFireHidden)
  Scalar* b2 = nullptr;                 // (H)
};

/// FireTables for T positions.
struct FireForward {
  float *psi = nullptr, *psi_dc = nullptr;    // (T)
  float* inverse = nullptr;                   // (T)
  int32_t* ends = nullptr;                    // (T, kFireHidden)
  float *slope = nullptr, *offset = nullptr;  // (H, kFireSegments)
  FireTheta<const float> theta;
  double L0 = 0, negative_slope = 0;
  int H = 0;
  int64_t T = 0;
};

/// Writes all tables: two kernels. Refuses sizes that are not positive and missing arrays.
device::LaunchStatus fire_forward(const FireForward& f, device::Stream stream);

struct FireBackward {
  FireTheta<float> dtheta;                               // +=. Null: not trained
  const double* dfire = nullptr;                         // (H, kFireSegments, 2)
  const float *dfire_u = nullptr, *dfire_psi = nullptr;  // (B, H, T)
  const int32_t* positions = nullptr;                    // (B, T)
  FireTheta<const float> theta;
  double L0 = 0, negative_slope = 0;
  int B = 0, H = 0, T = 0;
  double* scratch = nullptr;  // fire_backward_scratch doubles
};

/// Queries whose gradients one block sums.
constexpr int kFireRowsPerBlock = 1024;
constexpr int64_t fire_row_blocks(int64_t B, int64_t T) {
  return (B * T + kFireRowsPerBlock - 1) / kFireRowsPerBlock;
}
/// Doubles of FireBackward::scratch: for c and m per block of rows, for w1 and b1 per head.
constexpr int64_t fire_backward_scratch(int64_t B, int64_t H, int64_t T) {
  return 2 * fire_row_blocks(B, T) + 2 * kFireHidden * H;
}

/// dtheta, in fp64 and in a fixed order: three kernels. Refuses what fire_forward refuses, and more
/// than 2^31 queries.
device::LaunchStatus fire_backward(const FireBackward& g, device::Stream stream);

}  // namespace bamtrain::kernels
