#pragma once
// What attention kernels are compiled for. A kernel asks its form where biases come from, which
// scales there are and how logits become weights. What a form rules out takes no instruction and no
// register: AnyForm answers as the arguments say, SoftmaxForm as its type says.

#include <type_traits>

#include "attention_weights.cuh"
#include "core/type_list.h"

namespace bamtrain::kernels {

/// Where b comes from: AttentionInputs::table; its numbers by their formula; fire; or
/// AttentionInputs::formed.
enum class BiasSource { none, table, formula, fire, formed };

/// z = s + b;  t s + b;  t (s + b);  and rows: t s + u b, where the arguments say whether t is 1
/// and whether u is t or 1. Only none and table have the first three: fewer kernels to build.
enum class ScaleMode { none, content, both, rows };

/// Any normalizer with any bias, chosen at run time: softmax too in fp32, where rows see keys on
/// both sides, and where a test asks for it. A: of activations.
template <class A>
struct AnyFormOf {
  using Element = A;
  using Inputs = AttentionInputs<A>;
  static constexpr bool kExact = std::is_same_v<A, float>;  // exponentials of the library, no line
  /// Softmax: rows are summed up while keys stream by, and every tile has weight.
  static constexpr bool kOnline = false;
  static constexpr bool kCausal = false;    // a.causal says
  static constexpr bool kFormed = false;    // biases were formed before
  static constexpr bool kSticks = !kExact;  // there may be stick-breaking
  static constexpr bool kTable = true, kFormula = true, kFire = true;  // there may be
  static constexpr bool kUnscaled = false, kUnscaledBias = false;      // t = 1, u = 1

  BAMTRAIN_DEVICE static BiasSource bias(const Inputs& a) {
    return a.table != nullptr      ? BiasSource::table
           : a.fire.psi != nullptr ? BiasSource::fire
           : a.numbers != nullptr  ? BiasSource::formula
                                   : BiasSource::none;
  }
  BAMTRAIN_DEVICE static bool scales(const Inputs& a) { return a.scale != nullptr; }
  BAMTRAIN_DEVICE static bool scales_bias(const Inputs& a) { return a.scale_bias; }
  BAMTRAIN_DEVICE static WeightForm weights(const NormalizerInputs& n, int h) {
    return weight_form(n, h);
  }
  /// Of entmax, else 0.
  BAMTRAIN_DEVICE static float alpha_less_one(const NormalizerInputs& n, int h) {
    return n.kind == NormalizerKind::entmax ? alpha_of(n, h) - 1.0f : 0.0f;
  }
  /// f.operator()<the formula>().
  template <class F>
  BAMTRAIN_DEVICE static void with_formula(const Inputs& a, const F& f) {
    bamtrain::with_formula(a.formula, f);
  }
};
struct AnyForm : AnyFormOf<bf16> {};
struct AnyFormFp32 : AnyFormOf<float> {};

/// The same of biases that were formed before.
struct AnyFormed : AnyForm {
  static constexpr bool kFormed = true, kTable = false, kFormula = false, kFire = false;
  BAMTRAIN_DEVICE static constexpr BiasSource bias(const Inputs&) { return BiasSource::formed; }
};

/// Softmax with one bias and one mode of scale. Of: the formula.
template <BiasSource kBias, ScaleMode kScale, class Of = Difference>
struct SoftmaxForm {
  using Element = bf16;
  using Inputs = AttentionInputs<bf16>;
  static constexpr bool kOnline = true, kCausal = true, kExact = false, kSticks = false;
  static constexpr bool kFormed = kBias == BiasSource::formed;
  static constexpr bool kTable = kBias == BiasSource::table;
  static constexpr bool kFormula = kBias == BiasSource::formula;
  static constexpr bool kFire = kBias == BiasSource::fire;
  static constexpr bool kUnscaled = kScale == ScaleMode::none;
  static constexpr bool kUnscaledBias = kUnscaled || kScale == ScaleMode::content;

  BAMTRAIN_DEVICE static constexpr BiasSource bias(const Inputs&) { return kBias; }
  BAMTRAIN_DEVICE static bool scales(const Inputs& a) {
    return kScale == ScaleMode::rows ? a.scale != nullptr : !kUnscaled;
  }
  BAMTRAIN_DEVICE static bool scales_bias(const Inputs& a) {
    return kScale == ScaleMode::rows ? a.scale_bias : kScale == ScaleMode::both;
  }
  BAMTRAIN_DEVICE static constexpr WeightForm weights(const NormalizerInputs&, int) {
    return WeightForm::softmax;
  }
  BAMTRAIN_DEVICE static constexpr float alpha_less_one(const NormalizerInputs&, int) {
    return 0.0f;
  }
  template <class F>
  BAMTRAIN_DEVICE static void with_formula(const Inputs&, const F& f) {
    f.template operator()<Of>();
  }
};

/// run.operator()<the form>() for the form of softmax that `a` asks for. Those of formulas: each of
/// Formulas.
template <class Run>
device::LaunchStatus with_softmax_form(const AttentionInputs<bf16>& a, const Run& run) {
  using enum BiasSource;
  if (a.formed.b != nullptr) return run.template operator()<SoftmaxForm<formed, ScaleMode::rows>>();
  if (a.fire.psi != nullptr) return run.template operator()<SoftmaxForm<fire, ScaleMode::rows>>();
  if (a.numbers != nullptr) {
    device::LaunchStatus status = device::refused("attention: no such formula");
    with_type(Formulas(), static_cast<int>(a.formula), [&]<class Of>() {
      status = run.template operator()<SoftmaxForm<formula, ScaleMode::rows, Of>>();
    });
    return status;
  }
  if (a.table == nullptr) {
    return a.scale == nullptr ? run.template operator()<SoftmaxForm<none, ScaleMode::none>>()
                              : run.template operator()<SoftmaxForm<none, ScaleMode::content>>();
  }
  if (a.scale == nullptr) return run.template operator()<SoftmaxForm<table, ScaleMode::none>>();
  return a.scale_bias ? run.template operator()<SoftmaxForm<table, ScaleMode::both>>()
                      : run.template operator()<SoftmaxForm<table, ScaleMode::content>>();
}

}  // namespace bamtrain::kernels
