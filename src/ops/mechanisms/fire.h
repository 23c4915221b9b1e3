#pragma once
// Priors of family fire: what attention reads, and the operations that compute it.

#include "ops/mechanisms/operation.h"
#include "priors/fire.h"

namespace bamtrain {

struct FireBiasGradients {
  Tensor dfire;  // (H, kFireSegments, 2) f64: the sums of db and of db u
  // (B, H, T) P: sums of db slope u and of db slope psi_dc over the logits whose later token this
  // is: all of a query's logits if attention is causal
  Tensor dfire_u, dfire_psi;

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dfire", &dfire, Dtype::f64, {s.H, kFireSegments, 2});
    add("dfire_u", &dfire_u, P, {s.B, s.H, s.T});
    add("dfire_psi", &dfire_psi, P, {s.B, s.H, s.T});
  }
  void on_cuda(kernels::BiasOutputs& g) const;
  static int64_t cuda_partial(const AttentionShape& s);
};

/// The functions of family fire in the form that attention reads (priors/fire.h). p is the position
/// in its document of the later token of query and key: the query if attention is causal.
/// u = psi[|i - j|] inverse[p] and b = slope[h][s] u + offset[h][s], where segment s holds the
/// distances from ends[p][s - 1] (s = 0: from 0) to ends[p][s] - 1.
struct FireTables {
  Tensor psi, psi_dc;    // (>= T) P: psi by distance, and its derivative with respect to c
  Tensor inverse;        // (>= T) P: 1 / N, by position
  Tensor ends;           // (>= T, kFireHidden) i32, ascending; beyond every distance if unused
  Tensor slope, offset;  // (H, kFireSegments) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("psi", x.psi);
    f("psi_dc", x.psi_dc);
    f("inverse", x.inverse);
    f("ends", x.ends);
    f("slope", x.slope);
    f("offset", x.offset);
  }
};
struct FireBias {
  using Gradients = FireBiasGradients;
  FireTables tables;
  Tensor positions;  // (B, T) i32: a token's position in its document

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    const int64_t n = s.past + s.T;
    add("psi", &tables.psi, P, {n});
    add("psi_dc", &tables.psi_dc, P, {n});
    add("inverse", &tables.inverse, P, {n});
    add("ends", &tables.ends, Dtype::i32, {n, kFireHidden});
    add("slope", &tables.slope, P, {s.H, kFireSegments});
    add("offset", &tables.offset, P, {s.H, kFireSegments});
    add("positions", &positions, Dtype::i32, {s.B, s.T});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  autodiff::Vars in_reference(const AttentionRow& row, const Gradients& g) const;
};

struct FireForward {
  static constexpr const char* kName = "fire_forward";
  FireTables tables;
  TensorList theta;
  double L0 = 0;  // threshold length
  double negative_slope = 0;

  template <class X, class F>
  static void each(X& x, F&& f) {
    for_tensors(x.tables, [&f](const char* name, auto& t) { f(name, TensorUse::written, t); });
    each_of(x.theta, "theta", TensorUse::read, f);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

struct FireBackward {
  static constexpr const char* kName = "fire_backward";
  TensorList dtheta;
  FireBiasGradients g;
  Tensor positions;  // as in FireBias
  TensorList theta;
  double L0 = 0;
  double negative_slope = 0;

  template <class X, class F>
  static void each(X& x, F&& f) {
    each_of(x.dtheta, "dtheta", TensorUse::updated, f);
    for_tensors(x.g, [&f](const char* name, auto& t) { f(name, TensorUse::read, t); });
    f("positions", TensorUse::read, x.positions);
    each_of(x.theta, "theta", TensorUse::read, f);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
  static int64_t cuda_scratch(const WorkspaceShape& w);
};

}  // namespace bamtrain
