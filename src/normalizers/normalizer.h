#pragma once
// The seam between how logits become weights and everything else: p_i = N(z_ij : j visible). A
// normalizer is a header in this folder (its traits, and what its formula needs on host and
// device), a .cpp beside it that declares the rest, and a line in list.h. Each backend computes
// every kind; what the forward pass keeps for the backward pass is AttentionSaved in
// ops/attention.h.

#include <map>
#include <string>
#include <vector>

#include "core/mechanism.h"
#include "normalizers/list.h"

namespace bamtrain {

/// What attention reads of a normalizer's options.
struct NormalizerForm {
  NormalizerKind kind = NormalizerKind::softmax;
  double alpha = 1.5;    // entmax: above 1
  bool learned = false;  // entmax: alpha is a parameter
  TopkKeys keys = {};    // topk: how many a row keeps
};

/// One normalizer, type-erased.
struct NormalizerInfo : MechanismInfo {
  NormalizerKind kind = NormalizerKind::softmax;  // the registry's
  /// What the options say beside the kind; null: nothing.
  NormalizerForm (*form)(const Options&) = nullptr;
  /// Options that are not the defaults, of each form that tests compute on every backend: together
  /// they reach all of its arithmetic.
  std::vector<std::map<std::string, OptionValue>> examples = {{}};

  NormalizerForm form_of(const Options& o) const {
    NormalizerForm f = form ? form(o) : NormalizerForm();
    f.kind = kind;
    return f;
  }
};

}  // namespace bamtrain
