#pragma once
// The list of all normalizers; the registry and every backend's dispatch use it.

#include <cstdint>

#include "core/type_list.h"
#include "normalizers/entmax.h"
#include "normalizers/softmax.h"
#include "normalizers/stick_breaking.h"
#include "normalizers/topk.h"

namespace bamtrain {

enum class NormalizerKind : uint8_t { softmax, entmax, topk, stick_breaking };

/// In the order of NormalizerKind. N::traits() is what other code needs of it, N::info() the rest.
using Normalizers = TypeList<Softmax, Entmax, Topk, StickBreaking>;

template <class... N>
BAMTRAIN_HD constexpr NormalizerTraits traits_in(TypeList<N...>, NormalizerKind kind) {
  NormalizerTraits traits;
  int n = 0;
  (void)((n++ == static_cast<int>(kind) && (traits = N::traits(), true)) || ...);
  return traits;
}
BAMTRAIN_HD constexpr NormalizerTraits traits_of(NormalizerKind kind) {
  return traits_in(Normalizers(), kind);
}

/// f.template operator()<the struct>().
template <class F>
void with_normalizer(NormalizerKind kind, const F& f) {
  with_type(Normalizers(), static_cast<int>(kind), f);
}

}  // namespace bamtrain
