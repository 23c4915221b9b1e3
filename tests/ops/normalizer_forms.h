#pragma once
// Names for normalizers in tests.

#include <vector>

#include "normalizers/registry.h"

namespace bamtrain::testing {

constexpr NormalizerForm entmax(double alpha, bool learned = false) {
  return {.kind = NormalizerKind::entmax, .alpha = alpha, .learned = learned};
}
/// number 0: half of the row's keys, or of the sequence's tokens.
constexpr NormalizerForm topk(int64_t number, bool of_sequence = false) {
  return {.kind = NormalizerKind::topk, .keys = {number, of_sequence}};
}
constexpr NormalizerForm stick_breaking() { return {.kind = NormalizerKind::stick_breaking}; }

/// The n-th example of a normalizer.
inline NormalizerForm example_of(const NormalizerInfo& info, size_t n) {
  Options o = default_options(info.options);
  for (const auto& [name, value] : info.examples.at(n)) o.set(name, value);
  return info.form_of(o);
}
/// Every normalizer with each of its examples, and `more`.
inline std::vector<NormalizerForm> every_normalizer(const std::vector<NormalizerForm>& more = {}) {
  std::vector<NormalizerForm> forms;
  for (const NormalizerInfo& info : all_normalizers()) {
    for (size_t n = 0; n < info.examples.size(); ++n) forms.push_back(example_of(info, n));
  }
  forms.insert(forms.end(), more.begin(), more.end());
  return forms;
}
/// Every normalizer with its first example, and `more`.
inline std::vector<NormalizerForm> one_of_every_normalizer(
    const std::vector<NormalizerForm>& more = {}) {
  std::vector<NormalizerForm> forms;
  for (const NormalizerInfo& info : all_normalizers()) forms.push_back(example_of(info, 0));
  forms.insert(forms.end(), more.begin(), more.end());
  return forms;
}

}  // namespace bamtrain::testing
