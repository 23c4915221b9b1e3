#pragma once
// The interface of a normalizer, which turns logits into weights: p_i = N(z_ij : j visible). A
// normalizer consists of a header in this folder (its traits, and its formula for host and device),
// a .cpp next to it that declares the rest, and a line in list.h. Each backend computes every kind.
// What the forward pass keeps for the backward pass is AttentionSaved in ops/attention.h.

#include <map>
#include <string>
#include <vector>

#include "core/mechanism.h"
#include "normalizers/list.h"

namespace bamtrain {

/// What attention reads from a normalizer's options.
struct NormalizerForm {
  NormalizerKind kind = NormalizerKind::softmax;
  double alpha = 1.5;    // entmax: above 1
  bool learned = false;  // entmax: alpha is a parameter
  TopkKeys keys = {};    // topk: number of keys that a row keeps
};

/// One normalizer, type-erased.
struct NormalizerInfo : MechanismInfo {
  NormalizerKind kind = NormalizerKind::softmax;  // set by the registry
  /// What the options set besides the kind; null: nothing.
  NormalizerForm (*form)(const Options&) = nullptr;
  /// Non-default options of each form that tests compute on every backend. Together they cover all
  /// of its arithmetic.
  std::vector<std::map<std::string, OptionValue>> examples = {{}};

  NormalizerForm form_of(const Options& o) const {
    NormalizerForm f = form ? form(o) : NormalizerForm();
    f.kind = kind;
    return f;
  }
};

}  // namespace bamtrain
