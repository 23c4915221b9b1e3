#pragma once
// Priors of family table: what attention reads of them, and what forms it.

#include "ops/mechanisms/operation.h"
#include "priors/prior.h"

namespace bamtrain {

struct TableBiasGradients {
  Tensor dtable;  // (H, T) P: sums of db over the diagonals of all sequences

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dtable", x.dtable);
  }
  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("dtable", &dtable, P, {s.H, s.T});
  }
  void on_cuda(kernels::BiasOutputs& g) const;
  static int64_t cuda_partial(const AttentionShape& s);
};
/// b_ij = table[h][i - j].
struct TableBias {
  using Gradients = TableBiasGradients;
  Tensor table;  // (H, >= past + T) P

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("table", x.table);
  }
  template <class Add>
  void plan(const AttentionShape& s, Dtype P, Add&& add) {
    add("table", &table, P, {s.H, s.past + s.T});
  }
  void on_cuda(kernels::BiasInputs& in) const;
  double in_reference(const LogitPlace& p) const;
  void adjoint_in_reference(const Gradients& g, const LogitPlace& p, double db) const;
};

/// A prior of family table as a model uses it.
struct PriorUse {
  const PriorInfo& info;
  int form = 0;     // TableFamily::form
  double gain = 1;  // TableFamily::gain
};

struct TableForward {
  static constexpr const char* kName = "table_forward";
  Tensor table;  // (H, T) P: b at (h, d)
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

#define BAMTRAIN_OPERATIONS_OF_table(X) X(TableForward) X(TableBackward)
#define BAMTRAIN_BIASES_OF_table(X) X(TableBias)
#define BAMTRAIN_FORMS_OF_table(X) X(table, TableBias{})
