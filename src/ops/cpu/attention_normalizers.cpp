#include "ops/cpu/attention_normalizers.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

void with_row_normalizer(const Normalizer& normalizer, int64_t T, const RowWork& work) {
  switch (normalizer.form.kind) {
#define BAMTRAIN_ENTRY(name) \
  case NormalizerKind::name: \
    return with_##name##_rows(normalizer, T, work);
    BAMTRAIN_NORMALIZERS(BAMTRAIN_ENTRY)
#undef BAMTRAIN_ENTRY
  }
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
