#pragma once
// The logit scale: t of each row. Operations of all kinds but adaptive, which is in gated_rows.h.

#include "ops/mechanisms/operation.h"
#include "scales/scale.h"

namespace bamtrain {

/// A logit scale as a model uses it.
struct ScaleUse {
  const ScaleInfo& info;
  const FormulaConstants& constants;
  int64_t first_head = 0;  // t = 1 in earlier heads
};

struct ScaleForward {
  static constexpr const char* kName = "scale_forward";
  Tensor scale;      // (B, H, T) P: t of row i, by its number of visible keys
  Tensor first_key;  // (B, T) i32, as in Attention: negative for keys of the past
  ScaleUse use;
  TensorList theta;
  Tensor last_key = {};  // as in Attention

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("scale", TensorUse::written, x.scale);
    f("first_key", TensorUse::read, x.first_key);
    each_of(x.theta, "theta", TensorUse::read, f);
    f("last_key", TensorUse::read, x.last_key);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

struct ScaleBackward {
  static constexpr const char* kName = "scale_backward";
  TensorList dtheta;
  Tensor dscale, first_key;  // as in ScaleForward
  ScaleUse use;
  TensorList theta;
  Tensor last_key = {};

  template <class X, class F>
  static void each(X& x, F&& f) {
    each_of(x.dtheta, "dtheta", TensorUse::updated, f);
    f("dscale", TensorUse::read, x.dscale);
    f("first_key", TensorUse::read, x.first_key);
    each_of(x.theta, "theta", TensorUse::read, f);
    f("last_key", TensorUse::read, x.last_key);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
  static int64_t cuda_scratch(const WorkspaceShape& w);
};

/// t by scales/entropy.h; 1 in heads before first_head.
struct EntropyScale {
  static constexpr const char* kName = "entropy_scale";
  Tensor scale;    // (B, H, T) P
  Tensor entropy;  // (B, H, T) P; may share memory with scale
  int64_t first_head = 0;

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("scale", TensorUse::written, x.scale);
    f("entropy", TensorUse::read, x.entropy);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

}  // namespace bamtrain
