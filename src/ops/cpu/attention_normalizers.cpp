#include "ops/cpu/attention_normalizers.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

void with_row_normalizer(const Normalizer& normalizer, int64_t T, const RowWork& work) {
  with_normalizer(normalizer.form.kind, [&]<class N>() { with_rows_of(N(), normalizer, T, work); });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
