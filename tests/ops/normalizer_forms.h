#pragma once
// Normalizers as tests name them.

#include "normalizers/normalizer.h"

namespace bamtrain::testing {

constexpr NormalizerForm entmax(double alpha, bool learned = false) {
  return {NormalizerKind::entmax, alpha, learned, {}};
}
/// number 0: half of the row's keys, or of the sequence's tokens.
constexpr NormalizerForm topk(int64_t number, bool of_sequence = false) {
  return {NormalizerKind::topk, 0, false, {number, of_sequence}};
}
constexpr NormalizerForm stick_breaking() { return {NormalizerKind::stick_breaking, 0, false, {}}; }

}  // namespace bamtrain::testing
