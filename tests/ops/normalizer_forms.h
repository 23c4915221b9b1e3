#pragma once
// Normalizers as tests name them.

#include "normalizers/normalizer.h"

namespace bamtrain::testing {

constexpr NormalizerForm entmax(double alpha, bool learned = false) {
  return {.kind = NormalizerKind::entmax, .alpha = alpha, .learned = learned};
}
/// number 0: half of the row's keys, or of the sequence's tokens.
constexpr NormalizerForm topk(int64_t number, bool of_sequence = false) {
  return {.kind = NormalizerKind::topk, .keys = {number, of_sequence}};
}
constexpr NormalizerForm stick_breaking() { return {.kind = NormalizerKind::stick_breaking}; }

}  // namespace bamtrain::testing
