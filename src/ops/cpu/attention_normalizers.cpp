#include "ops/cpu/attention_normalizers.h"

#include "ops/cpu/normalizer_entmax.h"
#include "ops/cpu/normalizer_softmax.h"
#include "ops/cpu/normalizer_stick_breaking.h"
#include "ops/cpu/normalizer_topk.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

void with_row_normalizer(const Normalizer& normalizer, int64_t T, const RowWork& work) {
  with_normalizer(normalizer.form.kind, [&]<class N>() {
    auto rows = row::rows_of(N(), normalizer, T);
    work(rows);
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
