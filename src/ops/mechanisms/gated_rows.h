#pragma once
// Per-row numbers computed from gates: see scales/gated_rows.h.

#include "ops/mechanisms/operation.h"
#include "scales/gated_rows.h"

namespace bamtrain {

/// A rule as a model uses it.
struct GatedUse {
  GatedRule rule;
  FormulaConstants constants = {};
  int64_t first_head = 0;  // earlier heads have the number 1
};

struct GatedRowsForward {
  static constexpr const char* kName = "gated_rows_forward";
  Tensor rows;   // (B, H, T) P or f64; rows may be strided in host memory
  Tensor gates;  // (B, T, kGates H) A: the rule's first gate, then the next; rows may be strided
  Tensor first_key;  // (B, T) i32, as in Attention: negative for keys of the past
  GatedUse use;
  TensorList bias;       // added to the gates, (H) P each; may be empty
  Tensor last_key = {};  // as in Attention

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("rows", TensorUse::written, x.rows);
    f("gates", TensorUse::read, x.gates);
    f("first_key", TensorUse::read, x.first_key);
    each_of(x.bias, "bias", TensorUse::read, f);
    f("last_key", TensorUse::read, x.last_key);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
};

struct GatedRowsBackward {
  static constexpr const char* kName = "gated_rows_backward";
  Tensor dgates;     // shape of gates
  TensorList dbias;  // P +=, like bias
  Tensor drows;      // (B, H, T) P
  Tensor gates, first_key;
  GatedUse use;
  TensorList bias;
  Tensor last_key = {};

  template <class X, class F>
  static void each(X& x, F&& f) {
    f("dgates", TensorUse::written, x.dgates);
    each_of(x.dbias, "dbias", TensorUse::updated, f);
    f("drows", TensorUse::read, x.drows);
    f("gates", TensorUse::read, x.gates);
    f("first_key", TensorUse::read, x.first_key);
    each_of(x.bias, "bias", TensorUse::read, f);
    f("last_key", TensorUse::read, x.last_key);
  }
  void on_host(const HostScratch& s) const;
  void in_reference() const;
  void on_cuda(const cuda::CudaWork& work) const;
  static int64_t cuda_scratch(const WorkspaceShape& w);
};

}  // namespace bamtrain
