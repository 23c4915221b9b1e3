#pragma once
// Every normalizer, once: NormalizerKind, the registry, each backend's choice among them and the
// sources that meson.build compiles come from this list.

#include <cstdint>

#include "normalizers/entmax.h"
#include "normalizers/softmax.h"
#include "normalizers/stick_breaking.h"
#include "normalizers/topk.h"

/// X(name): `name`_traits() says what others ask of it, and `name`_normalizer() declares the rest.
#define BAMTRAIN_NORMALIZERS(X) \
  X(softmax)                    \
  X(entmax)                     \
  X(topk)                       \
  X(stick_breaking)

namespace bamtrain {

enum class NormalizerKind : uint8_t {
#define BAMTRAIN_ENTRY(name) name,
  BAMTRAIN_NORMALIZERS(BAMTRAIN_ENTRY)
#undef BAMTRAIN_ENTRY
};

BAMTRAIN_HD constexpr NormalizerTraits traits_of(NormalizerKind kind) {
  switch (kind) {
#define BAMTRAIN_ENTRY(name) \
  case NormalizerKind::name: \
    return name##_traits();
    BAMTRAIN_NORMALIZERS(BAMTRAIN_ENTRY)
#undef BAMTRAIN_ENTRY
  }
  return {};
}

}  // namespace bamtrain
