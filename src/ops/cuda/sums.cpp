#include "ops/mechanisms/sums.h"

#include "kernels/sums.h"
#include "ops/cuda/arguments.h"
#include "ops/cuda/mechanisms.h"

namespace bamtrain {

using namespace cuda;

namespace {

template <class A>
kernels::Gates<A> gates_of(const Tensor& gates, const Tensor& bias) {
  return {pointer<A>(gates),      gates.stride[0],        gates.stride[1],       f32(bias),
          as_int(gates.shape[0]), as_int(gates.shape[2]), as_int(gates.shape[1])};
}

}  // namespace

void SumsForward::on_cuda(const cuda::CudaWork& work) const {
  kernels::RunningSums to = {sums.ptr<double>(), sums.stride[0], sums.stride[1]};
  if (before) {
    to.before = before.ptr<double>();
    to.before_batch = before.stride[0];
    to.before_head = before.stride[1];
  }
  dispatch(gates.dtype, [&]<class A>() {
    check(kernels::running_sums_forward(to, gates_of<A>(gates, bias), work.stream), kName);
  });
}

void SumsBackward::on_cuda(const cuda::CudaWork& work) const {
  dispatch(gates.dtype, [&]<class A>() {
    require(dgates.stride == gates.stride, "gradients of gates laid out as the gates");
    kernels::GateGradients<A> g;
    g.dgates = pointer<A>(dgates);
    g.dbias = f32(dbias);
    g.dsums = f32(dsums);
    g.scratch = work.partial.ptr<double>();
    check(kernels::running_sums_backward(g, gates_of<A>(gates, bias), work.stream), kName);
  });
}

int64_t SumsBackward::cuda_scratch(const WorkspaceShape& w) { return w.B * w.H; }

}  // namespace bamtrain
