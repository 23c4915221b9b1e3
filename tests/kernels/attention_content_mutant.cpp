// The tests that judge mutants of the kernels of biases that read queries and keys, and of mixes of
// heads (see mutants.py). They are small enough to run once per mutant.

#include "catch.h"
#include "kernels/attention_cases.h"
#include "kernels/attention_content.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

constexpr int kD = 16;

/// Forward and backward pass in parts of `sequences` sequences; 0: of the fewest queries.
template <class A>
Results in_parts(int sequences, const AttentionCase& c, const AttentionValues& x,
                 const AttentionForm& form) {
  AttentionArrays<A> arrays(c, kD, x, form);
  kernels::AttentionForward<A> f = arrays.forward();
  kernels::AttentionBackward<A> g = arrays.backward();
  const int64_t queries =
      sequences > 0 ? sequences * kernels::content_rows(c.T) : kernels::kPartRows;
  const int64_t logits = queries * c.H * kernels::content_stride(c.T);
  const bool scores = kernels::reads_scores(f.in);
  const int64_t forward = kernels::content_arrays(scores, false) * logits;
  const int64_t backward = kernels::content_arrays(scores, true) * logits;
  REQUIRE(backward <= f.in.content.count);
  f.in.content.count = forward;
  g.in.content.count = backward;
  if constexpr (std::is_same_v<A, float>) {
    REQUIRE(kernels::attention_reference_forward(f, nullptr).ok());
    REQUIRE(kernels::attention_reference_backward(g, nullptr).ok());
  } else {
    REQUIRE(kernels::attention_forward(f, nullptr, true).ok());
    REQUIRE(kernels::attention_backward(g, nullptr, true).ok());
  }
  return arrays.results();
}

/// For softmax. See attention_general.cpp and, for mixes, attention_mix.cpp.
template <class A>
double content_tolerance(const std::string& name, const AttentionForm& form) {
  if (std::is_same_v<A, float>) return 4e-6;
  if (name == "lse") {
    if (form.mix) return 0x1p-15;
    return form.bias == BiasForm::relative ? 1e-6 + 0x1p-17 : 1e-6;
  }
  const bool network = name == "dw1" || name == "dc1" || name == "dw2" || name == "dc2";
  const int of_mix = form.mix ? 1 : 0;
  return (network ? 4 : name == "out" || name == "dv" ? 2 : 2 + of_mix) * kRoundoff<A>;
}

template <class A>
void compare_content(int sequences, const AttentionCase& c, const AttentionForm& form) {
  INFO(text_of(c, kD, form) << " of " << sizeof(A) << " bytes");
  const AttentionValues x = attention_values<A>(c, kD);
  const Results truth = attention_truth(c, kD, x, form);
  const Results found = in_parts<A>(sequences, c, x, form);
  REQUIRE(found.size() == truth.size());
  for (const auto& [name, t] : truth) {
    INFO(name);
    CHECK(relative_error(found.at(name), t) < content_tolerance<A>(name, form));
  }
}

AttentionForm mix(BiasForm bias, MixForm form, int64_t hidden, bool scale, bool scale_bias) {
  AttentionForm of = {bias, scale, scale_bias};
  of.mix = form;
  of.mix_hidden = hidden;
  return of;
}

// One sequence in two parts, the second of which ends with a single query in its tile; and one with
// documents.
const AttentionCase kWhole = {1, 193, 1, 1}, kWindow = {1, 140, 2, 1, true, 33};
// Two sequences of two parts each.
const AttentionCase kTwo = {2, 150, 2, 1, true};
// Two sequences per part, then one.
const AttentionCase kShort = {3, 33, 4, 2, true};

}  // namespace

TEST_CASE("kernels of biases that read queries and keys agree with the reference in parts") {
  constexpr BiasForm kRelative = BiasForm::relative, kContextual = BiasForm::contextual;
  compare_content<DeviceBf16>(0, kWhole, {kRelative, false, false, 0.06});
  compare_content<DeviceBf16>(0, kWindow, {kRelative, true});
  compare_content<DeviceBf16>(2, kShort, {kRelative, true, true});
  compare_content<float>(0, kWindow, {kRelative, true, true});
  compare_content<DeviceBf16>(0, kWhole, {kContextual, true});
  compare_content<DeviceBf16>(2, kShort, {kContextual, true, true});
  compare_content<float>(0, kWindow, {kContextual});
  for (const BiasForm bias : {kRelative, kContextual}) {
    compare_content<DeviceBf16>(0, kTwo, {bias, true});
    compare_content<float>(0, kTwo, {bias, true});
  }
}

TEST_CASE("mixes of heads agree with the reference in parts") {
  const AttentionForm of_table = mix(BiasForm::table, MixForm::concat_residual, 20, true, true);
  const AttentionForm of_sums = mix(BiasForm::difference, MixForm::concat, 4, true, true);
  const AttentionForm of_fire = mix(BiasForm::fire, MixForm::add_residual, 8, true, false);
  // Its db do not sum to zero.
  AttentionForm of_sticks = mix(BiasForm::table, MixForm::add_residual, 8, false, false);
  of_sticks.normalizer = stick_breaking();
  compare_content<DeviceBf16>(0, kWindow, of_sticks);
  compare_content<DeviceBf16>(0, kWindow, of_table);
  compare_content<float>(0, kWindow, of_table);
  compare_content<DeviceBf16>(0, kWindow, of_sums);
  compare_content<float>(2, kShort, of_sums);
  compare_content<DeviceBf16>(2, kShort, of_fire);
  for (const AttentionForm& form : {of_table, of_sums, of_fire}) {
    compare_content<DeviceBf16>(0, kTwo, form);
    compare_content<float>(0, kTwo, form);
  }
}
