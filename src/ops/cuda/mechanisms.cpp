#include "ops/cuda/mechanisms.h"

#include <algorithm>

namespace bamtrain::cuda {

namespace {

template <class Operation>
int64_t scratch_of(const WorkspaceShape& w) {
  if constexpr (requires { Operation::cuda_scratch(w); }) return Operation::cuda_scratch(w);
  return 0;
}

/// The maximum scratch of any operation.
template <class... Operation>
int64_t most_scratch(const std::variant<Operation...>*, const WorkspaceShape& w) {
  return std::max({scratch_of<Operation>(w)...});
}

template <class... Gradients>
int64_t most_partial_of(const std::variant<Gradients...>*, const AttentionShape& s) {
  return std::max({partial_of<Gradients>(s)...});
}

template <class Gradients>
void check_bias(const WorkspaceShape& w) {
  if constexpr (requires { Gradients::check_on_cuda(w); }) Gradients::check_on_cuda(w);
}
template <class... Gradients>
void check_biases(const std::variant<Gradients...>*, const WorkspaceShape& w) {
  (check_bias<Gradients>(w), ...);
}

}  // namespace

int64_t most_partial(const AttentionShape& s) {
  const BiasGradients* const any = nullptr;
  return most_partial_of(any, s);
}

void CudaMechanisms::plan(Arena& arena, const WorkspaceShape& w) {
  const BiasGradients* const any_bias = nullptr;
  check_biases(any_bias, w);
  if (!w.backward) return;
  const MechanismOperation* const any = nullptr;
  arena.add("scratch.scale", &partial_, Dtype::f64, {most_scratch(any, w)});
}

void CudaMechanisms::run(const MechanismOperation& operation) {
  const CudaWork work = {stream_.get(), partial_};
  std::visit([&work](const auto& of) { of.on_cuda(work); }, operation);
}

}  // namespace bamtrain::cuda
