#pragma once
// Attention of the last queries of sequences, for incremental decoding. Kernels index queries by
// their own keys, and address arrays by query as if past queries were there. This class holds
// arrays with that layout.

#include "core/arena.h"
#include "kernels/attention.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace bamtrain::cuda {

class LastQueries {
 public:
  /// Registers nothing without incremental decoding.
  void plan(Arena& arena, const WorkspaceShape& w);

  /// Changes `in`, filled from `a`, to what kernels read. REQUIRES: a.past() > 0.
  template <class A>
  void attach(kernels::AttentionInputs<A>& in, const Attention& a, device::Stream stream) const;
  /// Where kernels write per-query results.
  kernels::SavedRows saved(const Attention& a) const;
  float* entropy(const Attention& a) const { return of_rows(by_row_, a).ptr<float>(); }
  /// to (B, H, queries) f32 = the level or entropy that kernels wrote.
  void collect(const Tensor& to, const Attention& a, device::Stream stream) const;

  /// x (B, queries, ...), addressed as kernels address it.
  template <class Element>
  static kernels::Rows<Element> from_first(kernels::Rows<Element> x, const Attention& a) {
    x.data -= a.past() * x.row;
    return x;
  }

 private:
  /// The part (B, H, keys) of an array that the current call uses, and the queries' part of that.
  static Tensor of_rows(const Tensor& planned, const Attention& a);
  static Tensor of_queries(const Tensor& planned, const Attention& a);

  // For B sequences and the maximum number of keys: (B, H, keys). by_row_ holds level or entropy
  Tensor scale_, by_row_, threshold_;  // f32
  Tensor last_;                        // i32
  Tensor first_key_, positions_;       // (B, keys) i32
};

}  // namespace bamtrain::cuda
