#pragma once
// Cases for the attention kernels: inputs, their reference results from the fp64 reference backend,
// and the launchers on the engine.

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_reference.h"
#include "kernels/values.h"
#include "ops/attention_call.h"
#include "ops/normalizer_forms.h"

namespace bamtrain::test {

struct AttentionCase {
  int B = 1, T = 64, H = 2, K = 1;
  bool documents = false;
  int window = 0;  // 0: no window
  bool causal = true;

  AttentionShape shape(int D) const {
    AttentionShape s = {B, T, H, K, D};
    s.causal = causal;
    return s;
  }
};

inline const std::vector<AttentionForm> kNamedForms = {{},
                                                       {BiasForm::table},
                                                       {BiasForm::none, true, false, 0.06},
                                                       {BiasForm::table, true},
                                                       {BiasForm::table, true, true},
                                                       {BiasForm::difference},
                                                       {BiasForm::difference, true, true},
                                                       {BiasForm::log_square},
                                                       {BiasForm::log_square, true},
                                                       {BiasForm::log_square, true, true, 0.06},
                                                       {BiasForm::fire},
                                                       {BiasForm::fire, true},
                                                       {BiasForm::fire, true, true}};
/// Forms for the biases that kNamedForms lacks: alone, with a scale, and scaled.
inline std::vector<AttentionForm> other_forms() {
  std::vector<AttentionForm> all;
  for (size_t n = 0; n < std::size(kBiasForms); ++n) {
    const auto bias = static_cast<BiasForm>(n);
    const auto names = [bias](const AttentionForm& form) { return form.bias == bias; };
    if (std::ranges::any_of(kNamedForms, names)) continue;
    for (const AttentionForm& form : {AttentionForm{bias}, {bias, true}, {bias, true, true}}) {
      all.push_back(form);
    }
  }
  return all;
}
inline const std::vector<AttentionForm> kOtherForms = other_forms();
inline const std::vector<AttentionForm> kEveryForm = [] {
  std::vector<AttentionForm> all = kNamedForms;
  all.insert(all.end(), kOtherForms.begin(), kOtherForms.end());
  return all;
}();
using testing::entmax;
using testing::every_normalizer;
using testing::stick_breaking;
using testing::topk;

constexpr bool has_sums(const AttentionForm& f) {
  return f.bias == BiasForm::difference || f.bias == BiasForm::log_square;
}

/// Values for FireTables. Lines are discontinuous at the ends of segments, so that a logit in a
/// wrong segment is detected. Some segments are empty, and some ends are beyond every distance.
struct FireValues {
  Doubles psi, psi_dc, inverse, slope, offset;  // fp32
  std::vector<int32_t> ends, positions;
};

/// Values that both sides can represent.
struct AttentionValues {
  Doubles qkv;     // (B, T, (H + 2 K) D), A
  Doubles dout;    // (B, T, H, D), A
  Doubles table;   // (H, distances), fp32
  Doubles scale;   // (B, H, T), fp32
  Doubles sums;    // (B, H, T), fp64: numbers whose differences a formula takes
  Doubles alphas;  // (H), fp32: offsets from the form's alpha
  FireValues fire;
  // The tensors of any other bias: normal numbers, and in fp64 their softplus, as gates produce.
  std::map<std::string, Doubles> others;
  std::vector<int32_t> first_key, last_key;
};
template <class A>
AttentionValues attention_values(const AttentionCase& c, int D);

/// Mixes over each of kNamedForms' biases, with hidden layers that do or do not fill their tiles.
inline std::vector<AttentionForm> mixed_forms() {
  constexpr MixForm kForms[] = {MixForm::concat, MixForm::concat_residual, MixForm::add_residual,
                                MixForm::bias_only};
  constexpr int64_t kHidden[] = {20, 32, 40, 64, 4};
  std::vector<AttentionForm> all;
  for (AttentionForm form : kNamedForms) {
    const size_t n = all.size();
    const bool biased = form.bias != BiasForm::none;
    form.mix = biased ? kForms[n % std::size(kForms)] : MixForm::add_residual;
    form.mix_hidden = kHidden[n % std::size(kHidden)];
    all.push_back(form);
  }
  return all;
}
inline const std::vector<AttentionForm> kMixedForms = mixed_forms();

/// By name: out, dq, dk, dv and, where the form has them, lse (AttentionSaved::level), dscale,
/// dalpha, the bias's gradients and the mix's. dc2 is missing where nothing depends on c2.
using Results = std::map<std::string, Doubles>;

/// The reference results. `rounds_out`: the backward pass reads out in bf16, as it is stored.
Results attention_truth(const AttentionCase& c, int D, const AttentionValues& x,
                        const AttentionForm& form, bool rounds_out = false);

/// A bias and a mix, and their gradients, in the engine's global memory.
class BiasArrays {
 public:
  BiasArrays(const AttentionCase& c, int D, const AttentionValues& x, const AttentionForm& form);

  void set(kernels::BiasInputs& in) const;
  void set(kernels::BiasOutputs& g) const;
  Results gradients() const;

 private:
  Tensor array(Dtype dtype, std::initializer_list<int64_t> dims);

  Bias bias_;
  BiasGradients gradients_;
  HeadMix mix_;
  HeadMixGradients mix_gradients_;
  std::optional<MixForm> mix_form_;
  std::deque<GlobalArray<float>> floats_;
  std::deque<GlobalArray<double>> doubles_;
  std::deque<GlobalArray<int32_t>> indices_;
};

/// Inputs, outputs and scratch in the engine's global memory.
template <class A>
class AttentionArrays {
 public:
  AttentionArrays(const AttentionCase& c, int D, const AttentionValues& x,
                  const AttentionForm& form);

  kernels::AttentionForward<A> forward();
  kernels::AttentionBackward<A> backward();
  Results results() const;
  /// AttentionSaved::live.
  std::vector<int32_t> live() const { return live_.values(); }

 private:
  template <class Element>
  kernels::Rows<Element> part(Element* data, int head) const;
  template <class Element>
  kernels::Rows<Element> heads(Element* data) const;

  AttentionCase c_;
  int D_;
  AttentionForm form_;
  BiasArrays bias_;
  GlobalArray<A> qkv_, dout_, dqkv_, out_;
  GlobalArray<float> scale_, lse_, row_product_, dscale_, partial_;
  GlobalArray<float> threshold_, alphas_, dalpha_, carries_;
  GlobalArray<float> content_logits_, content_sums_;
  GlobalArray<int32_t> last_, live_;
  GlobalArray<int32_t> first_key_, last_key_;
};

enum class Kernels { fused, general, reference };

/// Runs the forward and backward pass; the launches must succeed.
template <class A>
Results attention_on_engine(Kernels kernels, const AttentionCase& c, int D,
                            const AttentionValues& x, const AttentionForm& form);

/// Checks that the results are bitwise identical in every order of threads, warps and blocks.
template <class A>
void check_every_schedule(Kernels kernels, const AttentionCase& c, int D,
                          const AttentionForm& form);

/// Error norm over the norm of the truth. Infinite if something is not finite, or not zero where
/// the truth is zero.
double relative_error(const Doubles& found, const Doubles& truth);

/// Cases: ragged ends, one row, packed documents, windows, one key per row, grouped heads, longer
/// than one tile and than two.
extern const std::vector<AttentionCase> kAttentionCases;

std::string text_of(const AttentionCase& c, int D, const AttentionForm& form);

}  // namespace bamtrain::test
