#pragma once
// The operations of priors and scales in fp64, as the mathematics is written: no formula, and no
// adjoint, is shared with those of the fast backends. See Backend in ops/ops.h for the contract.

#include <span>

#include "ops/ops.h"

namespace bamtrain {

void reference_table_forward(Tensor table, const PriorUse& prior, std::span<const Tensor> theta);
void reference_table_backward(std::span<const Tensor> dtheta, Tensor dtable, const PriorUse& prior,
                              std::span<const Tensor> theta);

void reference_scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                             std::span<const Tensor> theta);
void reference_scale_backward(std::span<const Tensor> dtheta, Tensor dscale, Tensor first_key,
                              const ScaleUse& use, std::span<const Tensor> theta);
void reference_adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key,
                                      const ScaleUse& use, std::span<const Tensor> bias);
void reference_adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias, Tensor dscale,
                                       Tensor gates, Tensor first_key, const ScaleUse& use,
                                       std::span<const Tensor> bias);
void reference_entropy_scale(Tensor scale, Tensor entropy, int64_t first_head);

void reference_sums_forward(Tensor sums, Tensor gates, Tensor bias);
void reference_sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates, Tensor bias);

void reference_alpha_forward(Tensor alphas, Tensor theta);
void reference_alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta);

void reference_fire_forward(const FireTables& tables, std::span<const Tensor> theta, double L0);
void reference_fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g,
                             Tensor positions, std::span<const Tensor> theta, double L0);

}  // namespace bamtrain
