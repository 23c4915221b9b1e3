// From the arguments of attention to the launchers of its head dimension.

#include "arguments.h"
#include "attention_backward_table.cuh"
#include "attention_checks.h"
#include "attention_content.h"
#include "attention_head_dim.h"
#include "attention_reference.h"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::refused;
using device::Stream;

Dim3 grid_of_joins(int values, int H) {
  return {static_cast<uint32_t>(blocks_of(values, kJoinedValues)), static_cast<uint32_t>(H), 1};
}

}  // namespace

LaunchStatus join_fire(double* dfire, const float* partial, int B, int H, int tiles,
                       Stream stream) {
  return device::launch(attention_backward_fire, grid_of_joins(kFirePartial, H),
                        {kJoinedValues * kJoinWarps, 1, 1}, 0, stream, dfire, partial, B, H, tiles);
}

namespace {

/// Softmax takes all tiles for live where it has no bits to skip them by. Of the last queries alone
/// nothing goes back.
template <class A>
const char* live_refusal(const AttentionInputs<A>& a, const SavedRows& saved) {
  return !traits_of(a.normalizer.kind).fused && saved.live == nullptr && a.formed.queries == 0
             ? "attention: live is missing"
             : nullptr;
}

}  // namespace

template <class A>
LaunchStatus attention_forward(const AttentionForward<A>& f, Stream stream, bool any) {
  if (attention_is_plain(f.in)) return attention_reference_forward(f, stream);
  any = any || !f.in.causal;
  if (const char* why = refusal(f)) return refused(why);
  if (const char* why = live_refusal(f.in, f.saved)) return refused(why);
  if (const char* why = tiles_refusal(f.in)) return refused(why);
  if (!takes_vectors(f.out)) return refused(kNoVectors);
  return of_head_dim<A>(f.in.D, [&]<int D>() {
    if constexpr (std::is_same_v<A, bf16>) {
      if (reads_content(f.in)) {
        return with_content(f.in, stream, content_biases_of<D>,
                            [&](const AttentionInputs<A>& in, const QueryPart& part) {
                              const AttentionForward<A> of = of_part(f, in, part);
                              return attention_forward_of<D>(of, any, stream);
                            });
      }
    }
    return attention_forward_of<D>(f, any, stream);
  });
}

template <class A>
LaunchStatus attention_backward(const AttentionBackward<A>& g, Stream stream, bool any) {
  const AttentionInputs<A>& a = g.in;
  if (attention_is_plain(a)) return attention_reference_backward(g, stream);
  any = any || !a.causal;
  if (const char* why = refusal(g)) return refused(why);
  if (const char* why = live_refusal(a, g.saved)) return refused(why);
  if (const char* why = tiles_refusal(a)) return refused(why);
  if (!takes_vectors(g.out) || !takes_vectors(g.dout) || !takes_vectors(g.dq) ||
      !takes_vectors(g.dk) || !takes_vectors(g.dv)) {
    return refused(kNoVectors);
  }
  const bool fire = a.fire.psi != nullptr;
  if ((a.table != nullptr || fire) && g.partial == nullptr) {
    return refused("attention: a table or fire without partial sums");
  }
  if (a.normalizer.kind == NormalizerKind::stick_breaking && g.carries == nullptr) {
    return refused("attention: stick-breaking without carries");
  }
  const LaunchStatus status = of_head_dim<A>(a.D, [&]<int D>() {
    if constexpr (std::is_same_v<A, bf16>) {
      if (reads_content(a)) {
        return backward_with_content(
            g, stream, content_biases_of<D>,
            [&](AttentionBackward<A> of) {
              // Softmax's forward pass does not write which tiles live.
              if (traits_of(a.normalizer.kind).fused) of.saved.live = nullptr;
              return attention_backward_of<D>(of, any, stream);
            },
            [&](const ContentGradients<A>& of) { return content_gradients_of<D>(of, stream); });
      }
    }
    return attention_backward_of<D>(g, any, stream);
  });
  if (!status.ok() || reads_content(a)) return status;
  if (a.table != nullptr) {
    return device::launch(attention_backward_table, grid_of_joins(a.distances(), a.H),
                          {kJoinedValues * kJoinWarps, 1, 1}, 0, stream, g.dtable, g.dtable_head,
                          g.partial, attention_partial_table(a.distances()), a.B, a.H,
                          a.distances(), a.distances_behind(),
                          attention_parts(a.B, a.T, a.K, true));
  }
  if (!fire) return status;
  return join_fire(g.dfire, g.partial, a.B, a.H, attention_query_tiles(a.T, a.D, sizeof(A)),
                   stream);
}

template LaunchStatus attention_forward(const AttentionForward<bf16>&, Stream, bool);
template LaunchStatus attention_forward(const AttentionForward<float>&, Stream, bool);
template LaunchStatus attention_backward(const AttentionBackward<bf16>&, Stream, bool);
template LaunchStatus attention_backward(const AttentionBackward<float>&, Stream, bool);

}  // namespace bamtrain::kernels
