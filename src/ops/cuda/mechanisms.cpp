#include "ops/cuda/mechanisms.h"

#include <algorithm>

#include "kernels/adaptive_scale.h"
#include "kernels/alpha.h"
#include "kernels/attention_entropy.h"
#include "kernels/fire.h"
#include "kernels/prior_table.h"
#include "kernels/scale_rows.h"
#include "kernels/sums.h"
#include "ops/cuda/arguments.h"

namespace bamtrain::cuda {

namespace {

kernels::TablePrior prior_of(const PriorUse& use, const Tensor& table,
                             std::span<const Tensor> theta) {
  require(theta.size() <= kernels::kMaxPriorParameters && table.contiguous(),
          "a contiguous table and at most 8 parameters");
  kernels::TablePrior p;
  p.name = use.info.name.c_str();
  p.form = use.form;
  p.gain = use.gain;
  p.H = table.shape[0];
  p.T = table.shape[1];
  for (size_t n = 0; n < theta.size(); ++n) p.theta[n] = f32(theta[n]);
  return p;
}

kernels::ScaleRows scale_of(const ScaleUse& use, const Tensor& scale, const Tensor& first_key,
                            std::span<const Tensor> theta) {
  require(theta.size() <= kMaxScaleScalars, "at most two parameters of a scale");
  kernels::ScaleRows r;
  r.name = use.info.name.c_str();
  r.first_head = use.first_head;
  r.constants = use.constants;
  for (size_t n = 0; n < theta.size(); ++n) r.theta[n] = f32(theta[n]);
  r.first_key = i32(first_key);
  r.B = scale.shape[0];
  r.H = scale.shape[1];
  r.T = scale.shape[2];
  return r;
}

template <class A>
kernels::Gates<A> gates_of(const Tensor& gates, const Tensor& bias) {
  return {pointer<A>(gates),      gates.stride[0],        gates.stride[1],       f32(bias),
          as_int(gates.shape[0]), as_int(gates.shape[2]), as_int(gates.shape[1])};
}

/// In the order of the registry.
template <class Scalar>
kernels::FireTheta<Scalar> fire_theta(std::span<const Tensor> t) {
  require(t.size() == 6, "the six parameters of fire");
  return {f32(t[0]), f32(t[1]), f32(t[2]), f32(t[3]), f32(t[4]), f32(t[5])};
}

template <class A>
kernels::AdaptiveScale<A> adaptive_of(const Tensor& gates, const Tensor& first_key,
                                      const ScaleUse& use, std::span<const Tensor> bias) {
  kernels::AdaptiveScale<A> s;
  s.gates = pointer<A>(gates);
  s.batch = gates.stride[0];
  s.row = gates.stride[1];
  for (size_t k = 0; k < bias.size(); ++k) s.bias[k] = f32(bias[k]);
  s.first_key = i32(first_key);
  s.constants = use.constants;
  s.B = as_int(gates.shape[0]);
  s.T = as_int(gates.shape[1]);
  s.H = as_int(gates.shape[2] / 2);
  s.first_head = as_int(use.first_head);
  return s;
}

}  // namespace

void CudaMechanisms::plan(Arena& arena, const WorkspaceShape& w) {
  if (!w.backward) return;
  arena.add("scratch.scale", &partial_, Dtype::f64,
            {std::max({kernels::scale_backward_scratch(w.B, w.H, w.T), w.B * w.H,
                       kernels::adaptive_scale_scratch(w.B, w.H, w.T),
                       kernels::fire_backward_scratch(w.B, w.H, w.T)})});
}

void CudaMechanisms::table_forward(Tensor table, const PriorUse& prior,
                                   std::span<const Tensor> theta) {
  check(kernels::table_prior_forward(f32(table), prior_of(prior, table, theta), stream()),
        "table_forward");
}

void CudaMechanisms::table_backward(std::span<const Tensor> dtheta, Tensor dtable,
                                    const PriorUse& prior, std::span<const Tensor> theta) {
  kernels::TablePriorGradients g;
  for (size_t p = 0; p < dtheta.size(); ++p) g.dtheta[p] = f32(dtheta[p]);
  g.dtable = f32(dtable);
  check(kernels::table_prior_backward(g, prior_of(prior, dtable, theta), stream()),
        "table_backward");
}

void CudaMechanisms::scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                                   std::span<const Tensor> theta) {
  check(kernels::scale_forward(f32(scale), scale_of(use, scale, first_key, theta), stream()),
        "scale_forward");
}

void CudaMechanisms::scale_backward(std::span<const Tensor> dtheta, Tensor dscale, Tensor first_key,
                                    const ScaleUse& use, std::span<const Tensor> theta) {
  kernels::ScaleGradients g;
  for (size_t p = 0; p < dtheta.size(); ++p) g.dtheta[p] = f32(dtheta[p]);
  g.dscale = f32(dscale);
  g.scratch = partial_.ptr<double>();
  check(kernels::scale_backward(g, scale_of(use, dscale, first_key, theta), stream()),
        "scale_backward");
}

void CudaMechanisms::adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key,
                                            const ScaleUse& use, std::span<const Tensor> bias) {
  dispatch(gates.dtype, [&]<class A>() {
    check(kernels::adaptive_scale_forward(f32(scale), adaptive_of<A>(gates, first_key, use, bias),
                                          stream()),
          "adaptive_scale_forward");
  });
}

void CudaMechanisms::adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias,
                                             Tensor dscale, Tensor gates, Tensor first_key,
                                             const ScaleUse& use, std::span<const Tensor> bias) {
  dispatch(gates.dtype, [&]<class A>() {
    require(dgates.stride == gates.stride, "gradients of gates laid out as the gates");
    kernels::AdaptiveScaleGradients<A> g;
    g.dgates = pointer<A>(dgates);
    for (size_t k = 0; k < dbias.size(); ++k) g.dbias[k] = f32(dbias[k]);
    g.dscale = f32(dscale);
    g.scratch = partial_.ptr<double>();
    check(
        kernels::adaptive_scale_backward(g, adaptive_of<A>(gates, first_key, use, bias), stream()),
        "adaptive_scale_backward");
  });
}

void CudaMechanisms::entropy_scale(Tensor scale, Tensor entropy, int64_t first_head) {
  check(kernels::entropy_scale(f32(scale), f32(entropy), as_int(scale.shape[0]),
                               as_int(scale.shape[1]), as_int(scale.shape[2]), as_int(first_head),
                               stream()),
        "entropy_scale");
}

void CudaMechanisms::sums_forward(Tensor sums, Tensor gates, Tensor bias) {
  dispatch(gates.dtype, [&]<class A>() {
    check(kernels::running_sums_forward(sums.ptr<double>(), gates_of<A>(gates, bias), stream()),
          "sums_forward");
  });
}

void CudaMechanisms::sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates,
                                   Tensor bias) {
  dispatch(gates.dtype, [&]<class A>() {
    require(dgates.stride == gates.stride, "gradients of gates laid out as the gates");
    kernels::GateGradients<A> g;
    g.dgates = pointer<A>(dgates);
    g.dbias = f32(dbias);
    g.dsums = f32(dsums);
    g.scratch = partial_.ptr<double>();
    check(kernels::running_sums_backward(g, gates_of<A>(gates, bias), stream()), "sums_backward");
  });
}

void CudaMechanisms::fire_forward(const FireTables& tables, std::span<const Tensor> theta,
                                  double L0) {
  kernels::FireForward f;
  f.psi = f32(tables.psi);
  f.psi_dc = f32(tables.psi_dc);
  f.inverse = f32(tables.inverse);
  f.ends = tables.ends.ptr<int32_t>();
  f.slope = f32(tables.slope);
  f.offset = f32(tables.offset);
  f.theta = fire_theta<const float>(theta);
  f.L0 = L0;
  f.H = as_int(tables.slope.shape[0]);
  f.T = tables.psi.shape[0];
  check(kernels::fire_forward(f, stream()), "fire_forward");
}

void CudaMechanisms::fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g,
                                   Tensor positions, std::span<const Tensor> theta, double L0) {
  kernels::FireBackward k;
  k.dtheta = fire_theta<float>(dtheta);
  k.dfire = g.dfire.ptr<double>();
  k.dfire_u = f32(g.dfire_u);
  k.dfire_psi = f32(g.dfire_psi);
  k.positions = i32(positions);
  k.theta = fire_theta<const float>(theta);
  k.L0 = L0;
  k.B = as_int(g.dfire_u.shape[0]);
  k.H = as_int(g.dfire_u.shape[1]);
  k.T = as_int(g.dfire_u.shape[2]);
  k.scratch = partial_.ptr<double>();
  check(kernels::fire_backward(k, stream()), "fire_backward");
}

void CudaMechanisms::alpha_forward(Tensor alphas, Tensor theta) {
  check(kernels::alpha_forward(f32(alphas), f32(theta), alphas.size(), stream()), "alpha_forward");
}

void CudaMechanisms::alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta) {
  check(kernels::alpha_backward(f32(dtheta), f32(dalpha), f32(theta), dalpha.shape[0],
                                dalpha.shape[1], dalpha.shape[2], stream()),
        "alpha_backward");
}

}  // namespace bamtrain::cuda
