#pragma once
// Priors of family table: what attention reads, and the operations that compute it.

#include "ops/mechanisms/operation.h"
#include "priors/prior.h"

namespace bamtrain {

struct TableBiasGradients {
  // (H, AttentionShape::distances()) P, indexed as TableBias::table: sums of db over the diagonals
  // of all sequences
  Tensor dtable;

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dtable", &dtable, P, {s.H, s.distances()});
  }
  void on_cuda(kernels::BiasOutputs& g) const;
  static int64_t cuda_partial(const AttentionShape& s);
};
/// b_ij = table[h][i - j], or table[h][n - 1 + i - j] if attention is not causal.
struct TableBias {
  using Gradients = TableBiasGradients;
  Tensor table;  // (H, >= past + T) P, contiguous rows; not causal: (H, 2n - 1), n >= T

  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("table", &table, P, {s.H, s.distances()});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  autodiff::Vars in_reference(const AttentionRow& row, const Gradients& g) const;
};

/// A prior of family table as a model uses it.
struct PriorUse {
  const PriorInfo& info;
  int form = 0;            // TableFamily::form
  double gain = 1;         // TableFamily::gain
  bool two_sided = false;  // the table's distances are -(T - 1) .. T - 1, not 0 .. T - 1
  double asymmetry = 0;    // TableFamily::asymmetry

  /// The shape of a table (H, distances).
  TableShape shape(const Tensor& table) const {
    const int64_t n = table.shape[1];
    return {table.shape[0], n, form, gain, two_sided ? -(n - 1) / 2 : 0, asymmetry};
  }
};

struct TableForward {
  static constexpr const char* kName = "table_forward";
  Tensor table;  // (H, distances) P: b at (h, d)
  PriorUse prior;
  TensorList theta;

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("table", TensorUse::written, x.table);
    each_of(x.theta, "theta", TensorUse::read, f);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

struct TableBackward {
  static constexpr const char* kName = "table_backward";
  TensorList dtheta;
  Tensor dtable;
  PriorUse prior;
  TensorList theta;

  template <class X, class F>
  static void each(X& x, F&& f) {
    each_of(x.dtheta, "dtheta", TensorUse::updated, f);
    f("dtable", TensorUse::read, x.dtable);
    each_of(x.theta, "theta", TensorUse::read, f);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

}  // namespace bamtrain
