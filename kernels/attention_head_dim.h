#pragma once
// What attention.cu defines for the head dimension that it is compiled for, and the choice among
// these. The arguments have been checked.

#include "attention.h"

namespace bamtrain::kernels {

/// Any: by the kernels of every normalizer, softmax too.
template <int D, class A>
device::LaunchStatus attention_forward_of(const AttentionForward<A>& f, bool any,
                                          device::Stream stream);
/// All but the last kernel: the partial tables, not their sum. Where the bias was formed, of its
/// queries what belongs to these, and the weights and dz in its place.
template <int D, class A>
device::LaunchStatus attention_backward_of(const AttentionBackward<A>& g, bool any,
                                           device::Stream stream);

/// run.operator()<D>() for a D of kHeadDims that has tiles of A.
template <class A, class Run>
device::LaunchStatus of_head_dim(int D, const Run& run) {
  switch (D) {
    case 16:
      return run.template operator()<16>();
    case 32:
      return run.template operator()<32>();
    case 48:
      return run.template operator()<48>();
    case 64:
      return run.template operator()<64>();
  }
  if constexpr (has_tiles<A>(128)) {
    switch (D) {
      case 80:
        return run.template operator()<80>();
      case 96:
        return run.template operator()<96>();
      case 128:
        return run.template operator()<128>();
    }
  }
  return device::refused("attention: no tiles of this head dimension");
}

}  // namespace bamtrain::kernels
