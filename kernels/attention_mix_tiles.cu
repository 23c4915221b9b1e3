// The launchers of mixes of heads on tensor cores: of up to 32 heads and 64 hidden units.

#include "arguments.h"
#include "attention_mix_distances.cuh"
#include "attention_mix_tiles.cuh"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

// Of sm_86, which has the least.
static_assert(MixShape<2, 4, true>::kGradients <= 99 * 1024);
static_assert(MixShape<2, 4, false>::kGradients <= 99 * 1024);

/// run.operator()<kHeads, kHidden>() of the least that holds the mix.
template <class Run>
LaunchStatus of_mix(const AttentionInputs<bf16>& a, const Run& run) {
  static_assert(kMostTiledHeads == 32 && kDapeMostHidden == 64);
  const bool few = a.mix.hidden <= 32;
  if (a.H <= 16) {
    return few ? run.template operator()<1, 2>() : run.template operator()<1, 4>();
  }
  return few ? run.template operator()<2, 2>() : run.template operator()<2, 4>();
}

Dim3 grid_of_distances(const AttentionInputs<bf16>& a) {
  return {static_cast<uint32_t>(mix_distance_tiles(a.T)), static_cast<uint32_t>(mix_shares(a.T)),
          1};
}

}  // namespace

LaunchStatus mix_biases_by_distance(const AttentionInputs<bf16>& a, const ContentSums& sums,
                                    Stream stream) {
  // Places are in 32 bits. Of the backward pass too, which comes here before its gradients.
  if (int64_t{a.H} * a.T > kMostMixedRows) {
    return device::refused("attention: a mix of heads of over 33,544,192 heads times tokens");
  }
  const float* const of_table = sums.of_table;
  return of_mix(a, [&]<int kHeads, int kHidden>() {
    return device::launch(mix_distances<kHeads, kHidden>, grid_of_distances(a), {kThreads, 1, 1},
                          MixShape<kHeads, kHidden, false>::kWeights, stream, a, of_table);
  });
}

LaunchStatus mix_gradients_by_distance(const ContentGradients<bf16>& g, Stream stream) {
  return of_mix(g.in, [&]<int kHeads, int kHidden>() {
    return device::launch(mix_distances_gradients<kHeads, kHidden>, grid_of_distances(g.in),
                          {kThreads, 1, 1}, MixShape<kHeads, kHidden, false>::kGradients, stream,
                          g);
  });
}

LaunchStatus mix_biases_tiled(const AttentionInputs<bf16>& a, Stream stream) {
  return of_mix(a, [&]<int kHeads, int kHidden>() {
    return device::launch(mix_tiles<kHeads, kHidden>,
                          grid_of_rows(a.formed.queries, kThreads / 32, 1, a.B), {kThreads, 1, 1},
                          MixShape<kHeads, kHidden, true>::kWeights, stream, a);
  });
}

LaunchStatus mix_gradients_tiled(const ContentGradients<bf16>& g, Stream stream) {
  return of_mix(g.in, [&]<int kHeads, int kHidden>() {
    return device::launch(mix_tiles_gradients<kHeads, kHidden>, {kMixSlots, 1, 1}, {kThreads, 1, 1},
                          MixShape<kHeads, kHidden, true>::kGradients, stream, g);
  });
}

}  // namespace bamtrain::kernels
