#pragma once
// Priors of family sums: what attention reads of them, and what forms it.

#include "ops/mechanisms/operation.h"
#include "priors/prior.h"

namespace bamtrain {

/// The gradient with respect to S_t as a key's and as a query's. With SumBias::difference the
/// latter is the row's sum of -db, which is 0 but for what the rounding of `out` leaves there: the
/// keys' part holds that too, and sums of both are free of it.
struct SumsBiasGradients {
  Tensor dsums;  // (B, H, T) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dsums", x.dsums);
  }
  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dsums", &dsums, P, {s.B, s.H, s.T});
  }
  void on_cuda(kernels::BiasOutputs& g) const;
};
/// b_ij of x = S_j - S_i.
struct SumsBias {
  using Gradients = SumsBiasGradients;
  Tensor sums;  // (B, H, past + T) f64: S
  SumBias form = SumBias::difference;

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("sums", x.sums);
  }
  template <class Add>
  void plan(const AttentionShape& s, Dtype, Add&& add) {
    add("sums", &sums, Dtype::f64, {s.B, s.H, s.past + s.T});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  double in_reference(const LogitPlace& p) const;
  void adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const;
};

/// S_t = u_0 + ... + u_t, u = softplus(gates + bias).
struct SumsForward {
  static constexpr const char* kName = "sums_forward";
  Tensor sums;   // (B, H, T) f64; its rows may be strided in host memory, those of gates anywhere
  Tensor gates;  // (B, T, H) A
  Tensor bias;   // (H) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("sums", TensorUse::written, x.sums);
    f("gates", TensorUse::read, x.gates);
    f("bias", TensorUse::read, x.bias);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

/// du_t is the sum of dsums from t on.
struct SumsBackward {
  static constexpr const char* kName = "sums_backward";
  Tensor dgates;  // shaped as gates
  Tensor dbias;   // (H) P +=
  Tensor dsums;   // (B, H, T) P
  Tensor gates, bias;

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dgates", TensorUse::written, x.dgates);
    f("dbias", TensorUse::updated, x.dbias);
    f("dsums", TensorUse::read, x.dsums);
    f("gates", TensorUse::read, x.gates);
    f("bias", TensorUse::read, x.bias);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
  static int64_t cuda_scratch(const WorkspaceShape& w);
};

}  // namespace bamtrain

#define BAMTRAIN_OPERATIONS_OF_sums(X) X(SumsForward) X(SumsBackward)
#define BAMTRAIN_BIASES_OF_sums(X) X(SumsBias)
#define BAMTRAIN_FORMS_OF_sums(X)                    \
  X(difference, (SumsBias{{}, SumBias::difference})) \
  X(log_square, (SumsBias{{}, SumBias::log_square}))
