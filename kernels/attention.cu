// The launchers of the attention kernels for one head dimension: this file is compiled once for
// each D of kHeadDims, as BAMTRAIN_HEAD_DIM. attention_dispatch.cu chooses among them.

#include "attention_backward_keys.cuh"
#include "attention_backward_keys_sticks.cuh"
#include "attention_backward_queries.cuh"
#include "attention_forward.cuh"
#include "attention_head_dim.h"
#include "attention_searched.cuh"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

constexpr int kGridLimit = 65535;  // of the second dimension
constexpr Dim3 kBlock = {kThreads, 1, 1};

uint32_t count(int n) { return static_cast<uint32_t>(n); }

/// Key heads, of all sequences, that one launch takes.
template <class A>
int heads_at_hand(const AttentionInputs<A>& a) {
  const int group = a.H / a.K, most = kGridLimit / group;
  const int carried = a.normalizer.kind == NormalizerKind::stick_breaking
                          ? attention_carried_heads(a.B, a.T, a.H, a.K)
                          : most;
  return std::max(1, std::min(most, carried));
}

/// run.operator()<the form>(): of softmax in bf16 one of the forms of the list, unless `any`.
template <class Run>
LaunchStatus with_form(const AttentionInputs<float>&, bool, const Run& run) {
  return run.template operator()<AnyFormFp32>();
}
template <class Run>
LaunchStatus with_form(const AttentionInputs<bf16>& a, bool any, const Run& run) {
  if (!any && a.normalizer.kind == NormalizerKind::softmax) return with_softmax_form(a, run);
  return a.formed.b != nullptr ? run.template operator()<AnyFormed>()
                               : run.template operator()<AnyForm>();
}

/// Both backward kernels, of some heads at a time. Of formed biases the queries' alone.
template <int D, class Form>
LaunchStatus backward_of_form(const AttentionBackward<typename Form::Element>& g, Stream stream) {
  using A = typename Form::Element;
  const AttentionInputs<A>& a = g.in;
  const int64_t rows = int64_t{a.B} * a.H * a.T;
  const BackwardSaved<A> saved = {
      g.out,    g.dout, g.saved, g.row_product, g.row_product + rows, g.row_product + 2 * rows,
      g.carries};
  const RowGradients to_rows = {g.dscale, g.dnumbers, g.dfire_u, g.dfire_psi, g.partial};
  // No more than 2^31 (attention_dispatch.cu).
  const int group = a.H / a.K, all = a.B * a.K, at_hand = std::min(heads_at_hand(a), all);
  for (int first = 0, heads; first < all; first += heads) {
    heads = std::min(at_hand, all - first);
    const LaunchStatus queries = device::launch(
        attention_backward_queries<D, Form>,
        {count(attention_query_tiles(a.queries(), D, sizeof(A))), count(heads * group), 1}, kBlock,
        attention_backward_queries_shared<D, Form>(a.fire.psi != nullptr), stream, a, saved, g.dq,
        to_rows, g.dalpha, first * group);
    if (!queries.ok()) return queries;
    if constexpr (!Form::kFormed) {
      const auto launch_keys = [&](auto kernel, uint32_t columns, size_t shared_bytes) {
        return device::launch(
            kernel,
            {count(attention_parts(a.B, a.T, a.K, a.table != nullptr)), count(heads), columns},
            kBlock, shared_bytes, stream, a, saved, g.dk, g.dv, g.dnumbers, g.partial,
            attention_partial_table(a.distances()), first);
      };
      const auto of_key = [&] {
        return launch_keys(attention_backward_keys<D, Form>, 1,
                           attention_backward_keys_shared<D, Form>());
      };
      LaunchStatus keys;
      if constexpr (Form::kSticks) {
        keys = a.normalizer.kind == NormalizerKind::stick_breaking
                   ? launch_keys(attention_backward_keys_sticks<D>, kColumnBlocks<D>,
                                 attention_backward_keys_sticks_shared<D>())
                   : of_key();
      } else {
        keys = of_key();
      }
      if (!keys.ok()) return keys;
    }
  }
  return {};
}

}  // namespace

template <int D, class A>
LaunchStatus attention_forward_of(const AttentionForward<A>& f, bool any, Stream stream) {
  return with_form(f.in, any, [&]<class Form>() {
    const uint32_t H = count(f.in.H), B = count(f.in.B);
    if constexpr (Form::kOnline) {
      return device::launch(attention_forward_queries<D, Form>,
                            {count(attention_query_tiles(f.in.queries(), D)), H, B}, kBlock,
                            attention_forward_shared<D, Form>(), stream, f.in, f.out,
                            f.saved.level);
    } else {
      const int tiles = Form::kFormed ? attention_tiles(f.in.queries())
                                      : attention_query_tiles(f.in.queries(), D, sizeof(A));
      return device::launch(attention_searched_queries<D, Form>, {count(tiles), H, B}, kBlock,
                            attention_searched_shared<D, A>(), stream, f.in, f.out, f.saved);
    }
  });
}

template <int D, class A>
LaunchStatus attention_backward_of(const AttentionBackward<A>& g, bool any, Stream stream) {
  return with_form(g.in, any, [&]<class Form>() {
    // Formed biases take the general form: the weights and dz that it stores are read by others.
    using Of = std::conditional_t<Form::kOnline && Form::kFormed, AnyFormed, Form>;
    return backward_of_form<D, Of>(g, stream);
  });
}

static_assert(has_tiles<float>(BAMTRAIN_HEAD_DIM) == (BAMTRAIN_HEAD_DIM <= 64));
template LaunchStatus attention_forward_of<BAMTRAIN_HEAD_DIM>(const AttentionForward<bf16>&, bool,
                                                              Stream);
template LaunchStatus attention_backward_of<BAMTRAIN_HEAD_DIM>(const AttentionBackward<bf16>&, bool,
                                                               Stream);
#if BAMTRAIN_HEAD_DIM <= 64
template LaunchStatus attention_forward_of<BAMTRAIN_HEAD_DIM>(const AttentionForward<float>&, bool,
                                                              Stream);
template LaunchStatus attention_backward_of<BAMTRAIN_HEAD_DIM>(const AttentionBackward<float>&,
                                                               bool, Stream);
#endif

}  // namespace bamtrain::kernels
