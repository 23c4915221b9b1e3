// The launchers of mixes of heads on tensor cores: of up to 32 heads and 64 hidden units.

#include "arguments.h"
#include "attention_mix_tiles.cuh"

namespace bamtrain::kernels {

namespace {

/// run.operator()<kHeads, kHidden, kWide>() of the least that holds the mix.
template <class Run>
device::LaunchStatus of_mix(const AttentionInputs<bf16>& a, const Run& run) {
  const auto of_width = [&]<int kHeads, int kHidden>() {
    return mix_inputs(a.mix.form, 1) == 2 ? run.template operator()<kHeads, kHidden, true>()
                                          : run.template operator()<kHeads, kHidden, false>();
  };
  const bool few = a.mix.hidden <= 32;
  if (a.H <= 16) {
    return few ? of_width.template operator()<1, 2>() : of_width.template operator()<1, 4>();
  }
  static_assert(kMostTiledHeads == 32 && kDapeMostHidden == 64);
  return few ? of_width.template operator()<2, 2>() : of_width.template operator()<2, 4>();
}

}  // namespace

device::LaunchStatus mix_biases_tiled(const AttentionInputs<bf16>& a, device::Stream stream) {
  return of_mix(a, [&]<int kHeads, int kHidden, bool kWide>() {
    return device::launch(mix_tiles<kHeads, kHidden, kWide>,
                          grid_of_rows(a.formed.queries, kThreads / 32, 1, a.B), {kThreads, 1, 1},
                          MixShape<kHeads, kHidden, kWide>::kWeights, stream, a);
  });
}

device::LaunchStatus mix_gradients_tiled(const ContentGradients<bf16>& g, device::Stream stream) {
  return of_mix(g.in, [&]<int kHeads, int kHidden, bool kWide>() {
    using Shape = MixShape<kHeads, kHidden, kWide>;
    return device::launch(mix_tiles_gradients<kHeads, kHidden, kWide>, {kMixSlots, 1, 1},
                          {kThreads, 1, 1}, Shape::kGradients, stream, g);
  });
}

}  // namespace bamtrain::kernels
