#include "ops/cuda/mechanisms.h"

#include <algorithm>

namespace bamtrain::cuda {

namespace {

template <class Operation>
int64_t scratch_of(const WorkspaceShape& w) {
  if constexpr (requires { Operation::cuda_scratch(w); }) return Operation::cuda_scratch(w);
  return 0;
}

template <class... Operation>
int64_t most_scratch_of(const std::variant<Operation...>*, const WorkspaceShape& w) {
  return std::max({scratch_of<Operation>(w)...});
}

template <class Bias>
void check_bias(const WorkspaceShape& w) {
  if constexpr (requires { Bias::Gradients::check_on_cuda(w); }) Bias::Gradients::check_on_cuda(w);
}

}  // namespace

int64_t most_scratch(const WorkspaceShape& w) {
  const MechanismOperation* const any = nullptr;
  return most_scratch_of(any, w);
}

int64_t most_partial(const AttentionShape& s) {
  int64_t most = 0;
  EveryBias::each([&]<class B>() { most = std::max(most, partial_of<typename B::Gradients>(s)); });
  return most;
}

void check_biases(const WorkspaceShape& w) {
  EveryBias::each([&]<class B>() { check_bias<B>(w); });
}

}  // namespace bamtrain::cuda
