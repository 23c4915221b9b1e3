#pragma once
// Attention of the last queries of texts. Kernels number queries by their own keys, and address
// arrays by query as if those of the past were there: here those arrays are.

#include "core/arena.h"
#include "kernels/attention.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace bamtrain::cuda {

class LastQueries {
 public:
  /// Nothing without incremental decoding.
  void plan(Arena& arena, const WorkspaceShape& w);

  /// Changes `in`, which has what `a` has, to what kernels read. REQUIRES: a.past() > 0.
  template <class A>
  void attach(kernels::AttentionInputs<A>& in, const Attention& a, device::Stream stream) const;
  /// Where kernels write by query.
  kernels::SavedRows saved(const Attention& a) const;
  float* entropy(const Attention& a) const { return of_rows(by_row_, a).ptr<float>(); }
  /// to (B, H, queries) f32 = what they wrote as level or as entropy.
  void collect(const Tensor& to, const Attention& a, device::Stream stream) const;

  /// x (B, queries, ...) as kernels address it.
  template <class Element>
  static kernels::Rows<Element> from_first(kernels::Rows<Element> x, const Attention& a) {
    x.data -= a.past() * x.row;
    return x;
  }

 private:
  /// The part (B, H, keys) of an array that the call at hand uses, and of that what is of queries.
  static Tensor of_rows(const Tensor& planned, const Attention& a);
  static Tensor of_queries(const Tensor& planned, const Attention& a);

  // Of B texts of the most keys: (B, H, keys); the second is level or entropy
  Tensor scale_, by_row_, threshold_;  // f32
  Tensor last_;                        // i32
  Tensor first_key_, positions_;       // (B, keys) i32
};

}  // namespace bamtrain::cuda
