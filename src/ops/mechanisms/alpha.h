#pragma once
// Entmax's learned exponents.

#include "ops/mechanisms/operation.h"

namespace bamtrain {

struct AlphaForward {
  static constexpr const char* kName = "alpha_forward";
  Tensor alphas;  // (H) P = 1 + softplus(theta)
  Tensor theta;   // (H) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("alphas", TensorUse::written, x.alphas);
    f("theta", TensorUse::read, x.theta);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

struct AlphaBackward {
  static constexpr const char* kName = "alpha_backward";
  Tensor dtheta;  // (H) P +=
  Tensor dalpha;  // (B, H, T) P, by row
  Tensor theta;

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dtheta", TensorUse::updated, x.dtheta);
    f("dalpha", TensorUse::read, x.dalpha);
    f("theta", TensorUse::read, x.theta);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

}  // namespace bamtrain
