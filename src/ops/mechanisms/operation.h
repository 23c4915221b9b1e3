#pragma once
// An operation of a mechanism is a value: a struct of its arguments, in a header of this folder,
// with
//
//   static constexpr const char* kName;
//   static void each(X& x, F&& f);         its tensors: see for_tensors in ops/tensors.h
//   void on_host(const HostScratch&) const;         in fp64 on parameters of any dtype: NAME.cpp
//   void in_reference() const;             as the mathematics is written: ops/reference/NAME.cpp
//   void on_cuda(const cuda::CudaWork&) const;   its launcher: ops/cuda/NAME.cpp
//   static int64_t cuda_scratch(const WorkspaceShape&);  optional: doubles of scratch
//
// and an entry in the list of all.h, from which generic code runs, checks, counts and times
// operations. The conventions of ops/ops.h hold. theta: a mechanism's parameters, (H) or
// (H, values) P each, in the order of its parameters(). dtheta: likewise, P +=; empty if a
// parameter is not trained. Formulas are evaluated in fp64.
//
// A bias that attention reads is another struct of tensors, next to the operations that compute it,
// with its Gradients. Both have
//
//   void plan(const AttentionShape&, Dtype P, Add&& add);  add(name, &tensor, dtype, dims)
//   void on_cuda(kernels::BiasInputs&) const;              BiasOutputs for gradients
//
// The bias also has the biases of a row of the reference, with derivatives that are added to the
// gradients (ops/reference/attention_row.h):
//
//   autodiff::Vars in_reference(const AttentionRow&, const Gradients&) const;
//
// The bias may also have the following if it reads queries and keys; it then adds to their
// gradients (all.h):
//
//   static constexpr bool kReadsContent = true;
//
// Gradients may also have the floats of scratch that CUDA's backward pass needs for them, and a
// check for shapes that its kernels do not support (throws Error (config)):
//
//   static int64_t cuda_partial(const AttentionShape&);
//   static void check_on_cuda(const WorkspaceShape&);
//
// all.h lists the bias and its forms.

#include <cstdint>
#include <vector>

#include "ops/tensors.h"

namespace bamtrain {

struct AttentionRow;
class HostScratch;
struct WorkspaceShape;
namespace cuda {
struct CudaWork;
}
namespace kernels {
struct BiasInputs;
struct BiasOutputs;
}  // namespace kernels
namespace autodiff {
struct Var;
using Vars = std::vector<Var>;
}  // namespace autodiff

}  // namespace bamtrain
