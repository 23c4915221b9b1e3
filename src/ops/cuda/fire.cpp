#include "ops/mechanisms/fire.h"

#include "kernels/fire.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/mechanisms.h"

namespace bamtrain {

using namespace cuda;

namespace {

/// theta in registry order.
template <class Scalar>
kernels::FireTheta<Scalar> fire_theta(std::span<const Tensor> t) {
  require(t.size() == 6, "the six parameters of fire");
  return {f32(t[0]), f32(t[1]), f32(t[2]), f32(t[3]), f32(t[4]), f32(t[5])};
}

}  // namespace

void FireForward::on_cuda(const cuda::CudaWork& work) const {
  kernels::FireForward f;
  f.psi = f32(tables.psi);
  f.psi_dc = f32(tables.psi_dc);
  f.inverse = f32(tables.inverse);
  f.ends = tables.ends.ptr<int32_t>();
  f.slope = f32(tables.slope);
  f.offset = f32(tables.offset);
  f.theta = fire_theta<const float>(theta);
  f.L0 = L0;
  f.negative_slope = negative_slope;
  f.H = as_int(tables.slope.shape[0]);
  f.T = tables.psi.shape[0];
  check(kernels::fire_forward(f, work.stream), kName);
}

void FireBackward::on_cuda(const cuda::CudaWork& work) const {
  kernels::FireBackward k;
  k.dtheta = fire_theta<float>(dtheta);
  k.dfire = g.dfire.ptr<double>();
  k.dfire_u = f32(g.dfire_u);
  k.dfire_psi = f32(g.dfire_psi);
  k.positions = i32(positions);
  k.theta = fire_theta<const float>(theta);
  k.L0 = L0;
  k.negative_slope = negative_slope;
  k.B = as_int(g.dfire_u.shape[0]);
  k.H = as_int(g.dfire_u.shape[1]);
  k.T = as_int(g.dfire_u.shape[2]);
  k.scratch = work.partial.ptr<double>();
  check(kernels::fire_backward(k, work.stream), kName);
}

int64_t FireBackward::cuda_scratch(const WorkspaceShape& w) {
  return kernels::fire_backward_scratch(w.B, w.H, w.T);
}

// --- in attention

void FireBias::on_cuda(kernels::BiasInputs& in) const {
  const FireTables& f = tables;
  in.fire = {f32(f.psi),   f32(f.psi_dc), f32(f.inverse), i32(f.ends),
             f32(f.slope), f32(f.offset), i32(positions)};
}

void FireBiasGradients::on_cuda(kernels::BiasOutputs& out) const {
  out.dfire = dfire.ptr<double>();
  out.dfire_u = f32(dfire_u);
  out.dfire_psi = f32(dfire_psi);
}

int64_t FireBiasGradients::cuda_partial(const AttentionShape& s) {
  return kernels::attention_fire_floats(as_int(s.B), as_int(s.T), as_int(s.H));
}

}  // namespace bamtrain
