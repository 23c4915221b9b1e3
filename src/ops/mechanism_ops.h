#pragma once
// The operations of mechanisms, beside those of a layer in ops/ops.h, whose conventions hold here:
// from parameters and gates to what attention reads, and back.
//
// theta: a mechanism's parameters, (H) or (H, values) P each, in the order of its parameters().
// dtheta likewise, P +=, empty where a parameter is not trained. Formulas are evaluated in fp64.

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "ops/attention.h"
#include "priors/prior.h"
#include "scales/scale.h"

namespace bamtrain {

/// A prior of family table as a model uses it.
struct PriorUse {
  const PriorInfo& info;
  int form = 0;     // TableFamily::form
  double gain = 1;  // TableFamily::gain
};

/// A logit scale as a model uses it.
struct ScaleUse {
  const ScaleInfo& info;
  const ScaleConstants& constants;
  int64_t first_head = 0;  // t = 1 in the heads before it
};

class MechanismOps {
 public:
  virtual ~MechanismOps() = default;

  /// table (H, T) P: b of a prior of family table at (h, d).
  virtual void table_forward(Tensor table, const PriorUse& prior,
                             std::span<const Tensor> theta) = 0;
  virtual void table_backward(std::span<const Tensor> dtheta, Tensor dtable, const PriorUse& prior,
                              std::span<const Tensor> theta) = 0;
  /// scale (B, H, T) P: t of row i, which sees n = i - first_key + 1 keys; first_key (B, T) i32,
  /// negative where keys of the past are among them (Attention).
  virtual void scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                             std::span<const Tensor> theta) = 0;
  virtual void scale_backward(std::span<const Tensor> dtheta, Tensor dscale, Tensor first_key,
                              const ScaleUse& use, std::span<const Tensor> theta) = 0;

  /// The same of a scale of kind adaptive. gates (B, T, 2 H) A, whose rows may be strided: those of
  /// beta, then those of gamma; bias: what is added to them, (H) P each, or nothing.
  virtual void adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key,
                                      const ScaleUse& use, std::span<const Tensor> bias) = 0;
  /// dgates, shaped as gates; dbias P +=, as bias.
  virtual void adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias, Tensor dscale,
                                       Tensor gates, Tensor first_key, const ScaleUse& use,
                                       std::span<const Tensor> bias) = 0;
  /// scale (B, H, T) P: t by scales/entropy.h of entropy (B, H, T) P, which may be the same memory;
  /// 1 in the heads before first_head.
  virtual void entropy_scale(Tensor scale, Tensor entropy, int64_t first_head) = 0;

  /// sums (B, H, T) f64: S_t = u_0 + ... + u_t, u = softplus(gates + bias). gates (B, T, H) A;
  /// rows of both may be strided (of sums in host memory alone); bias (H) P.
  virtual void sums_forward(Tensor sums, Tensor gates, Tensor bias) = 0;
  /// dgates, shaped as gates; dbias (H) P +=, from dsums (B, H, T) P: du_t is its sum from t on.
  virtual void sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates,
                             Tensor bias) = 0;

  /// alphas (H) P = 1 + softplus(theta), theta (H) P: entmax's learned exponents.
  virtual void alpha_forward(Tensor alphas, Tensor theta) = 0;
  /// dtheta (H) P +=, from dalpha (B, H, T) P by row.
  virtual void alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta) = 0;

  /// tables, of a prior of family fire with threshold length L0.
  virtual void fire_forward(const FireTables& tables, std::span<const Tensor> theta, double L0) = 0;
  /// dtheta as above; positions (B, T) i32, those of FireBias.
  virtual void fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g,
                             Tensor positions, std::span<const Tensor> theta, double L0) = 0;
};

}  // namespace bamtrain
