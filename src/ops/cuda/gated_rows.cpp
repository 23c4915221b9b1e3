#include "ops/mechanisms/gated_rows.h"

#include "kernels/gated_rows.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/mechanisms.h"

namespace bamtrain {

using namespace cuda;

namespace {

template <class A, class Operation>
kernels::GatedRows<A> rows_of(const Operation& of) {
  kernels::GatedRows<A> s;
  s.rule = of.use.rule;
  s.gates = pointer<A>(of.gates);
  s.batch = of.gates.stride[0];
  s.row = of.gates.stride[1];
  for (size_t k = 0; k < of.bias.size(); ++k) s.bias[k] = f32(of.bias[k]);
  s.first_key = i32(of.first_key);
  s.last_key = i32(of.last_key);
  s.constants = of.use.constants;
  s.B = as_int(of.gates.shape[0]);
  s.T = as_int(of.gates.shape[1]);
  s.first_head = as_int(of.use.first_head);
  return s;
}

}  // namespace

void GatedRowsForward::on_cuda(const cuda::CudaWork& work) const {
  dispatch(gates.dtype, [&]<class A>() {
    kernels::GatedRows<A> s = rows_of<A>(*this);
    s.H = as_int(rows.shape[1]);
    const bool wide = rows.dtype == Dtype::f64;
    check(kernels::gated_rows_forward(
              {wide ? nullptr : f32(rows), wide ? rows.ptr<double>() : nullptr}, s, work.stream),
          kName);
  });
}

void GatedRowsBackward::on_cuda(const cuda::CudaWork& work) const {
  dispatch(gates.dtype, [&]<class A>() {
    require(dgates.stride == gates.stride, "gradients of gates laid out as the gates");
    kernels::GatedRows<A> s = rows_of<A>(*this);
    s.H = as_int(drows.shape[1]);
    kernels::GatedRowsGradients<A> g;
    g.dgates = pointer<A>(dgates);
    for (size_t k = 0; k < dbias.size(); ++k) g.dbias[k] = f32(dbias[k]);
    g.drows = f32(drows);
    g.scratch = work.partial.ptr<double>();
    check(kernels::gated_rows_backward(g, s, work.stream), kName);
  });
}

int64_t GatedRowsBackward::cuda_scratch(const WorkspaceShape& w) {
  return kernels::gated_rows_scratch(w.B, w.H, w.T);
}

}  // namespace bamtrain
