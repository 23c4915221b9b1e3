// The tests that judge mutants of the attention kernels (see mutants.py). They are small enough to
// run once per mutant.

#include "catch.h"
#include "kernels/attention_cases.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

void compare_mutant(const AttentionCase& c, const AttentionValues& x, const AttentionForm& form) {
  INFO(text_of(c, 16, form));
  const Results truth = attention_truth(c, 16, x, form);
  for (const auto& [name, found] :
       attention_on_engine<DeviceBf16>(Kernels::general, c, 16, x, form)) {
    INFO(name);
    CHECK(relative_error(found, truth.at(name)) <
          (name == "lse" ? 1e-6 : 4 * kRoundoff<DeviceBf16>));
  }
}

}  // namespace

TEST_CASE(
    "softmax's attention kernels of one head dimension agree with the plain ones in every form") {
  for (const AttentionForm& form : kEveryForm) {
    if (reads_content(bias_of(form.bias))) continue;  // kernels of its own
    for (const AttentionCase& c :
         {AttentionCase{2, 130, 2, 1}, AttentionCase{1, 161, 2, 1, true, 33}}) {
      INFO(text_of(c, 16, form));
      const AttentionValues x = attention_values<DeviceBf16>(c, 16);
      const Results plain = attention_on_engine<DeviceBf16>(Kernels::reference, c, 16, x, form);
      const Results fused = attention_on_engine<DeviceBf16>(Kernels::fused, c, 16, x, form);
      for (const auto& [name, p] : plain) {
        INFO(name);
        // Both round out and gradients to bf16; softmax's kernels also round p and dz.
        CHECK(relative_error(fused.at(name), p) <
              (name == "lse" ? 1e-6 : 3 * kRoundoff<DeviceBf16>));
      }
    }
  }
}

TEST_CASE("general attention kernels of one head dimension agree with the reference") {
  const AttentionCase window = {1, 161, 2, 1, true, 33}, whole = {2, 130, 2, 1};
  const AttentionValues of_window = attention_values<DeviceBf16>(window, 16);
  const AttentionValues of_whole = attention_values<DeviceBf16>(whole, 16);
  for (const NormalizerForm& normalizer : {entmax(1.5), entmax(1.3, true), topk(7)}) {
    compare_mutant(window, of_window, {BiasForm::table, true, true, 0, normalizer, false});
    compare_mutant(whole, of_whole, {BiasForm::none, false, false, 0, normalizer, false});
  }
  for (BiasForm bias : {BiasForm::table, BiasForm::log_square, BiasForm::fire}) {
    const AttentionForm form = {bias, false, false, 0, stick_breaking(), false};
    compare_mutant(window, of_window, form);
    compare_mutant(whole, of_whole, form);
  }
  compare_mutant(whole, of_whole, {BiasForm::difference, true, false, 0, entmax(2), false});
  AttentionCase sides = window, both = whole;  // rows see keys on both sides
  sides.causal = both.causal = false;
  const AttentionValues of_sides = attention_values<DeviceBf16>(sides, 16);
  compare_mutant(sides, of_sides, {BiasForm::table, true, true, 0, entmax(1.5), false});
  compare_mutant(sides, of_sides, {BiasForm::none, false, false, 0, topk(7), false});
  compare_mutant(both, attention_values<DeviceBf16>(both, 16), {BiasForm::log_square});
  // Rows prefer their first keys: only the later rows of a block give weight to some tiles.
  AttentionValues rising = of_window;
  for (size_t n = 0; n < rising.table.size(); ++n) {
    rising.table[n] = 3 * static_cast<double>(n % static_cast<size_t>(window.T));
  }
  compare_mutant(window, rising, {BiasForm::table, false, false, 0, entmax(1.5), false});
  // Nearby logits are nearly equal. Keys far below the largest logit have half of the weight, in
  // separate tiles.
  const AttentionCase far = {1, 300, 2, 1};
  AttentionValues flat = attention_values<DeviceBf16>(far, 16);
  for (size_t n = 0; n < flat.table.size(); ++n) {
    const size_t d = n % static_cast<size_t>(far.T);
    flat.table[n] = d < 16 ? 0 : d < 64 ? -10 : -0.22;
  }
  for (size_t n = 0; n < flat.qkv.size(); ++n) {
    if (n % 64 < 32) flat.qkv[n] /= 1024;  // q
  }
  compare_mutant(far, flat, {BiasForm::table, false, false, 0, entmax(1.5), false});
  // Rows prefer two of eight keys, all in one lane: more than the lane can list.
  const AttentionCase many = {1, 288, 1, 1};
  AttentionValues crowded = attention_values<DeviceBf16>(many, 16);
  for (size_t n = 0; n < crowded.table.size(); ++n) {
    if (n % 8 < 2) crowded.table[n] += 6;
  }
  for (int64_t k : {20, 32}) {
    compare_mutant(many, crowded, {BiasForm::table, false, false, 0, topk(k), false});
  }
  // Two words of block mask bits per group of rows.
  const AttentionCase longer = {1, 2064, 1, 1, false, 40};
  compare_mutant(longer, attention_values<DeviceBf16>(longer, 16),
                 {BiasForm::none, false, false, 0, entmax(1.5), false});
  AttentionValues equal = of_whole;
  for (size_t n = 0; n < equal.qkv.size(); ++n) {
    if (n % 64 < 32) equal.qkv[n] = 0;  // q
  }
  // With equal logits, D is only a mean of dP. With zero keys and queries, dq has no scale.
  const AttentionForm form = {BiasForm::none, false, false, 0, topk(7), false};
  const Results truth = attention_truth(whole, 16, equal, form);
  const Results found = attention_on_engine<DeviceBf16>(Kernels::general, whole, 16, equal, form);
  CHECK(relative_error(found.at("out"), truth.at("out")) < 2 * kRoundoff<DeviceBf16>);
}

TEST_CASE("attention kernels of fp32 of one head dimension agree with the reference") {
  const AttentionCase window = {1, 161, 2, 1, true, 33}, whole = {2, 130, 2, 1};
  for (const NormalizerForm& normalizer : {NormalizerForm(), entmax(1.3, true), topk(7)}) {
    for (const AttentionCase& c : {window, whole}) {
      const AttentionForm form = {BiasForm::table, true, true, 0, normalizer, false};
      INFO(text_of(c, 16, form));
      const AttentionValues x = attention_values<float>(c, 16);
      const Results truth = attention_truth(c, 16, x, form);
      for (const auto& [name, found] :
           attention_on_engine<float>(Kernels::general, c, 16, x, form)) {
        INFO(name);
        // An error in a root of entmax is 1 / (alpha - 1) times as large in its weight, twice in
        // dz.
        CHECK(relative_error(found, truth.at(name)) < 1.2e-5);
      }
    }
  }
}
