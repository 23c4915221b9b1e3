// The launchers of the fused kernels for one head dimension: this file is compiled once for each D
// of kHeadDims, as BAMTRAIN_HEAD_DIM. attention_dispatch.cu chooses among them.

#include "attention_backward_keys.cuh"
#include "attention_backward_queries.cuh"
#include "attention_forward.cuh"
#include "attention_head_dim.h"

namespace bamtrain::kernels {

namespace {

using device::Dim3;
using device::LaunchStatus;
using device::Stream;

uint32_t count(int n) { return static_cast<uint32_t>(n); }

template <class... Of>
constexpr int fused(TypeList<Of...>) {
  return (Of::kFused + ...);
}
static_assert(fused(Formulas()) == 2, "a BiasMode of each fused formula");

/// run.operator()<kBias, kScale>() for the form of logit that `a` asks for.
template <class Run>
LaunchStatus of_form(const AttentionInputs<bf16>& a, const Run& run) {
  if (a.numbers != nullptr) {
    return a.formula == Formula::log_square
               ? run.template operator()<BiasMode::log_square, ScaleMode::rows>()
               : run.template operator()<BiasMode::difference, ScaleMode::rows>();
  }
  if (a.fire.psi != nullptr) return run.template operator()<BiasMode::fire, ScaleMode::rows>();
  if (a.table == nullptr) {
    return a.scale == nullptr ? run.template operator()<BiasMode::none, ScaleMode::none>()
                              : run.template operator()<BiasMode::none, ScaleMode::content>();
  }
  if (a.scale == nullptr) return run.template operator()<BiasMode::table, ScaleMode::none>();
  return a.scale_bias ? run.template operator()<BiasMode::table, ScaleMode::both>()
                      : run.template operator()<BiasMode::table, ScaleMode::content>();
}

}  // namespace

template <int D>
LaunchStatus attention_forward_of(const AttentionForward<bf16>& f, Stream stream) {
  const FusedInputs a(f.in);
  const Dim3 grid = {count(attention_query_tiles(a.queries(), D)), count(a.H), count(a.B)};
  const auto launch = [&]<BiasMode kBias, ScaleMode kScale>() {
    return device::launch(attention_forward_queries<D, kBias, kScale>, grid, {kThreads, 1, 1},
                          attention_forward_shared<D>(), stream, a, f.out, f.saved.level);
  };
  if (a.formed.b == nullptr) return of_form(a, launch);
  return launch.template operator()<BiasMode::formed, ScaleMode::rows>();
}

template <int D>
LaunchStatus attention_backward_of(const AttentionBackward<bf16>& g, Stream stream) {
  const FusedInputs a(g.in);
  const Dim3 block = {kThreads, 1, 1};
  const uint32_t B = count(a.B), H = count(a.H), K = count(a.K);
  const uint32_t row_blocks = count((a.T + kRowsPerBlock<D> - 1) / kRowsPerBlock<D>);
  const LaunchStatus rows = device::launch(attention_backward_rows<D>, {row_blocks, H, B}, block, 0,
                                           stream, g.row_product, g.out, g.dout, a.T, a.H);
  if (!rows.ok()) return rows;
  const AttentionSaved saved = {g.dout, g.saved.level, g.row_product};
  return of_form(a, [&]<BiasMode kBias, ScaleMode kScale>() {
    const RowGradients to_rows = {g.dscale, g.dnumbers, g.dfire_u, g.dfire_psi, g.partial};
    const LaunchStatus queries = device::launch(
        attention_backward_queries<D, kBias, kScale>, {count(attention_query_tiles(a.T, D)), H, B},
        block, attention_backward_queries_shared<D>(kBias), stream, a, saved, g.dq, to_rows);
    if (!queries.ok()) return queries;
    return device::launch(attention_backward_keys<D, kBias, kScale>,
                          {count(attention_parts(a.B, a.T, a.K, kBias == BiasMode::table)), K, B},
                          block, attention_backward_keys_shared<D>(kBias), stream, a, saved, g.dk,
                          g.dv, g.dnumbers, g.partial, attention_partial_table(a.T));
  });
}

template LaunchStatus attention_forward_of<BAMTRAIN_HEAD_DIM>(const AttentionForward<bf16>&,
                                                              Stream);
template LaunchStatus attention_backward_of<BAMTRAIN_HEAD_DIM>(const AttentionBackward<bf16>&,
                                                               Stream);

}  // namespace bamtrain::kernels
