// The launchers of the general kernels for one head dimension: compiled once for each D of
// kHeadDims, as BAMTRAIN_HEAD_DIM, like attention.cu.

#include "attention_general_forward.cuh"
#include "attention_general_keys.cuh"
#include "attention_general_keys_sticks.cuh"
#include "attention_general_queries.cuh"
#include "attention_head_dim.h"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

constexpr int kGridLimit = 65535;  // of the second dimension

uint32_t count_of(int n) { return static_cast<uint32_t>(n); }

/// Key heads, of all sequences, that one launch takes.
int heads_at_hand(const AttentionInputs<bf16>& a) {
  const int group = a.H / a.K, most = kGridLimit / group;
  const int carried = a.normalizer.kind == NormalizerKind::stick_breaking
                          ? attention_carried_heads(a.B, a.T, a.H, a.K)
                          : most;
  return std::max(1, std::min(most, carried));
}

}  // namespace

template <int D>
LaunchStatus attention_general_forward_of(const AttentionForward<bf16>& f, Stream stream) {
  const bool formed = f.in.formed.b != nullptr;
  const int tiles =
      formed ? attention_tiles(f.in.queries()) : attention_query_tiles(f.in.queries(), D);
  const Dim3 grid = {count_of(tiles), count_of(f.in.H), count_of(f.in.B)};
  return device::launch(formed ? attention_general_queries_forward<D, true>
                               : attention_general_queries_forward<D, false>,
                        grid, {kThreads, 1, 1}, attention_general_forward_shared<D>(), stream, f.in,
                        f.out, f.saved);
}

template <int D>
LaunchStatus attention_general_backward_of(const AttentionBackward<bf16>& g, Stream stream) {
  const AttentionInputs<bf16>& a = g.in;
  const int64_t rows = int64_t{a.B} * a.H * a.T;
  const GeneralSaved saved = {
      g.out,    g.dout, g.saved, g.row_product, g.row_product + rows, g.row_product + 2 * rows,
      g.carries};
  const RowGradients to_rows = {g.dscale, g.dnumbers, g.dfire_u, g.dfire_psi, g.partial};
  // No more than 2^31 (attention_dispatch.cu).
  const int group = a.H / a.K, all = a.B * a.K, at_hand = std::min(heads_at_hand(a), all);
  for (int first = 0, heads; first < all; first += heads) {
    heads = std::min(at_hand, all - first);
    const bool formed = a.formed.b != nullptr;
    const LaunchStatus queries = device::launch(
        formed ? attention_general_queries<D, true> : attention_general_queries<D, false>,
        {count_of(attention_query_tiles(a.queries(), D)), count_of(heads * group), 1},
        {kThreads, 1, 1}, attention_general_queries_shared<D>(a.fire.psi != nullptr), stream, a,
        saved, g.dq, to_rows, g.dalpha, first * group);
    if (!queries.ok()) return queries;
    if (formed) continue;
    const auto launch_keys = [&](auto kernel, uint32_t columns, size_t shared_bytes) {
      return device::launch(
          kernel,
          {count_of(attention_parts(a.B, a.T, a.K, a.table != nullptr)), count_of(heads), columns},
          {kThreads, 1, 1}, shared_bytes, stream, a, saved, g.dk, g.dv, g.dnumbers, g.partial,
          attention_partial_table(a.T), first);
    };
    const LaunchStatus keys =
        a.normalizer.kind == NormalizerKind::stick_breaking
            ? launch_keys(attention_general_keys_sticks<D>, kColumnBlocks<D>,
                          attention_general_sticks_shared<D>())
            : launch_keys(attention_general_keys<D>, 1, attention_general_keys_shared<D>());
    if (!keys.ok()) return keys;
  }
  return {};
}

template LaunchStatus attention_general_forward_of<BAMTRAIN_HEAD_DIM>(const AttentionForward<bf16>&,
                                                                      Stream);
template LaunchStatus attention_general_backward_of<BAMTRAIN_HEAD_DIM>(
    const AttentionBackward<bf16>&, Stream);

}  // namespace bamtrain::kernels
