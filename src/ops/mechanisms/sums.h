#pragma once
// Priors of family sums: the operations that compute their per-token numbers.

#include "ops/mechanisms/tokens.h"

namespace bamtrain {

/// S_t = before + u_0 + ... + u_t, u = softplus(gates + bias).
struct SumsForward {
  static constexpr const char* kName = "sums_forward";
  Tensor sums;         // (B, H, T) f64; rows may be strided, as may those of gates
  Tensor gates;        // (B, T, H) A
  Tensor bias;         // (H) P
  Tensor before = {};  // (B, H, 1) f64, may be strided; empty: 0

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("sums", TensorUse::written, x.sums);
    f("gates", TensorUse::read, x.gates);
    f("bias", TensorUse::read, x.bias);
    f("before", TensorUse::read, x.before);
  }
  /// S before the first token.
  double start(int64_t b, int64_t h) const {
    return before ? before.ptr<double>()[b * before.stride[0] + h * before.stride[1]] : 0;
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

/// du_t is the sum of dsums from t to the end.
struct SumsBackward {
  static constexpr const char* kName = "sums_backward";
  Tensor dgates;  // shape of gates
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
