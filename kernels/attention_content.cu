// The kernels of biases that read queries and keys for one head dimension: compiled once for each D
// of kHeadDims, as BAMTRAIN_HEAD_DIM, like attention.cu.

#include "attention_relative.cuh"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

/// A block per 64 queries of the part.
Dim3 grid_of_queries(const AttentionInputs<bf16>& a) {
  return {static_cast<uint32_t>(attention_tiles(a.formed.queries)), static_cast<uint32_t>(a.H),
          static_cast<uint32_t>(a.B)};
}
Dim3 grid_of_keys(const AttentionInputs<bf16>& a, int heads, int sequences) {
  return {static_cast<uint32_t>(attention_tiles(a.T)), static_cast<uint32_t>(heads),
          static_cast<uint32_t>(sequences)};
}

}  // namespace

template <int D>
LaunchStatus content_biases_of(const AttentionInputs<bf16>& a, const ContentSums& sums,
                               Stream stream) {
  if (a.relative.r != nullptr) {
    return device::launch(relative_biases<D>, grid_of_queries(a), {kThreads, 1, 1},
                          relative_biases_shared<D>(), stream, a, sums);
  }
  const LaunchStatus scores = device::launch(content_scores<D>, grid_of_queries(a),
                                             {kThreads, 1, 1}, 2 * kTileBytes<D>, stream, a);
  return scores.ok() ? biases_of_scores(a, sums, stream) : scores;
}

template <int D>
LaunchStatus content_gradients_of(const ContentGradients<bf16>& g, Stream stream) {
  const AttentionInputs<bf16>& a = g.in;
  const LaunchStatus of_bias = a.relative.r != nullptr
                                   ? device::launch(relative_distances<D>, grid_of_keys(a, a.H, 1),
                                                    {kThreads, 1, 1}, kTileBytes<D>, stream, g)
                                   : gradients_of_scores(g, stream);
  if (!of_bias.ok()) return of_bias;
  const LaunchStatus queries = device::launch(content_queries<D>, grid_of_queries(a),
                                              {kThreads, 1, 1}, kTileBytes<D>, stream, g);
  if (!queries.ok()) return queries;
  return device::launch(content_keys<D>, grid_of_keys(a, a.K, a.B), {kThreads, 1, 1},
                        content_keys_shared<D>(), stream, g);
}

template LaunchStatus content_biases_of<BAMTRAIN_HEAD_DIM>(const AttentionInputs<bf16>&,
                                                           const ContentSums&, Stream);
template LaunchStatus content_gradients_of<BAMTRAIN_HEAD_DIM>(const ContentGradients<bf16>&,
                                                              Stream);

}  // namespace bamtrain::kernels
