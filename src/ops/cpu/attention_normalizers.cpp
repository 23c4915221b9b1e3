#include "ops/cpu/attention_normalizers.h"

#include "ops/cpu/normalizer_entmax.h"
#include "ops/cpu/normalizer_softmax.h"
#include "ops/cpu/normalizer_stick_breaking.h"
#include "ops/cpu/normalizer_topk.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

void with_row_normalizer(const Attention& a, const RowWork& work) {
  with_normalizer(a.form.normalizer.kind, [&]<class N>() {
    auto rows = row::rows_of(N(), a);
    work(rows);
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
