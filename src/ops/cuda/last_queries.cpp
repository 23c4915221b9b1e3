#include "ops/cuda/last_queries.h"

#include "ops/cuda/arguments.h"
#include "ops/cuda/runtime.h"

namespace bamtrain::cuda {

void LastQueries::plan(Arena& arena, const WorkspaceShape& w) {
  if (!w.incremental) return;
  const int64_t keys = w.past + w.T;
  const auto add = [&](Tensor* t, Dtype dtype) {
    arena.add("scratch.last_queries", t, dtype, {w.B, w.H, keys});
  };
  add(&scale_, Dtype::f32);
  add(&by_row_, Dtype::f32);
  if (w.any(&AttentionForm::general)) {
    add(&threshold_, Dtype::f32);
    add(&last_, Dtype::i32);
  }
  arena.add("scratch.last_queries", &first_key_, Dtype::i32, {w.B, keys});
  if (w.any(&AttentionForm::fire)) {
    arena.add("scratch.last_queries", &positions_, Dtype::i32, {w.B, keys});
  }
}

Tensor LastQueries::of_rows(const Tensor& planned, const Attention& a) {
  const int64_t B = a.q.shape[0], H = a.q.shape[2], keys = a.k.shape[1];
  require(planned && B <= planned.shape[0] && keys <= planned.shape[2],
          "texts and keys that were planned");
  return Tensor(planned.data, planned.dtype, {B, H, keys});
}

Tensor LastQueries::of_queries(const Tensor& planned, const Attention& a) {
  return of_rows(planned, a).slice(2, a.past(), a.q.shape[1]);
}

template <class A>
void LastQueries::attach(kernels::AttentionInputs<A>& in, const Attention& a,
                         device::Stream stream) const {
  const int64_t B = a.q.shape[0], queries = a.q.shape[1], keys = a.k.shape[1], past = a.past();
  in.T = as_int(keys);
  in.formed.first = as_int(past);
  in.formed.queries = as_int(queries);
  in.q = from_first(in.q, a);
  const auto of_texts = [&](const Tensor& planned) {
    require(planned && B <= planned.shape[0] && keys <= planned.shape[1],
            "texts and keys that were planned");
    return planned.ptr<int32_t>();
  };
  int32_t* const first_key = of_texts(first_key_);
  check(kernels::copy_shifted(first_key + past, keys, in.first_key, queries, B, queries,
                              static_cast<int32_t>(past), stream),
        "attention_forward");
  in.first_key = first_key;
  if (in.fire.psi != nullptr) {
    int32_t* const positions = of_texts(positions_);
    check(kernels::copy_shifted(positions + past, keys, in.fire.positions, queries, B, queries, 0,
                                stream),
          "attention_forward");
    in.fire.positions = positions;
  }
  if (in.scale != nullptr) {
    check(kernels::copy_rows(strided(of_queries(scale_, a)), strided(a.scale), stream),
          "attention_forward");
    in.scale = of_rows(scale_, a).ptr<float>();
  }
}

kernels::SavedRows LastQueries::saved(const Attention& a) const {
  kernels::SavedRows s;
  s.level = of_rows(by_row_, a).ptr<float>();
  const NormalizerTraits traits = traits_of(a.form.normalizer.kind);
  if (traits.threshold) s.threshold = of_rows(threshold_, a).ptr<float>();
  if (traits.last) s.last = of_rows(last_, a).ptr<int32_t>();
  return s;
}

void LastQueries::collect(const Tensor& to, const Attention& a, device::Stream stream) const {
  check(kernels::copy_rows(strided(to), strided(of_queries(by_row_, a)), stream),
        "attention_forward");
}

template void LastQueries::attach(kernels::AttentionInputs<float>&, const Attention&,
                                  device::Stream) const;
template void LastQueries::attach(kernels::AttentionInputs<device::bf16>&, const Attention&,
                                  device::Stream) const;

}  // namespace bamtrain::cuda
