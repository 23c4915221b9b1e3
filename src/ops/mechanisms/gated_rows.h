#pragma once
// Numbers of rows from gates: see scales/gated_rows.h.

#include "ops/mechanisms/operation.h"
#include "scales/gated_rows.h"

namespace bamtrain {

/// A rule as a model uses it.
struct GatedUse {
  GatedRule rule;
  FormulaConstants constants = {};
  int64_t first_head = 0;  // in the heads before it the number is 1
};

struct GatedRowsForward {
  static constexpr const char* kName = "gated_rows_forward";
  Tensor
      rows;  // (B, H, T) P or f64; its rows may be strided in host memory, those of gates anywhere
  Tensor gates;      // (B, T, kGates H) A: of the rule's first gate, then of the next
  Tensor first_key;  // (B, T) i32, negative where keys of the past are among them (Attention)
  GatedUse use;
  TensorList bias;       // what is added to the gates, (H) P each, or nothing
  Tensor last_key = {};  // Attention's

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
  Tensor dgates;     // shaped as gates
  TensorList dbias;  // P +=, as bias
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
