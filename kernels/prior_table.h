#pragma once
// Tables of priors from their parameters, and the adjoint. The formulas of src/priors are evaluated
// in fp64 and rounded once, as in ops/mechanisms/table.cpp on the host. Supports the priors of
// src/priors/table_priors.h.

#include <cstdint>

#include "launch.h"

namespace bamtrain::kernels {

constexpr int kMaxPriorParameters = 8;

/// A prior of family table and its shape.
struct TablePrior {
  const char* name = "";                         // as in priors/table_priors.h
  int64_t H = 0, T = 0;                          // H < 2^16
  int form = 0;                                  // TableFamily::form
  double gain = 1;                               // TableFamily::gain
  int64_t first = 0;                             // TableShape::first
  double asymmetry = 0;                          // TableShape::asymmetry
  const float* theta[kMaxPriorParameters] = {};  // (H, values) each, in the prior's order
};

/// table (H, T) = b at (h, first + n). Refuses a name without kernels, sizes that are not positive
/// and a missing theta.
device::LaunchStatus table_prior_forward(float* table, const TablePrior& prior,
                                         device::Stream stream);

struct TablePriorGradients {
  float* dtheta[kMaxPriorParameters] = {};  // (H, values) each, +=; null: not trained
  const float* dtable = nullptr;            // (H, T)
};

/// dtheta[p][h] += sum over n of dtable[h][n] db/dtheta[p][h], in fp64 and in a fixed order.
/// Launches nothing if every dtheta of the prior is null. Refuses what table_prior_forward refuses.
device::LaunchStatus table_prior_backward(const TablePriorGradients& g, const TablePrior& prior,
                                          device::Stream stream);

}  // namespace bamtrain::kernels
