#include "ops/cpu/attention_softmax_rows.h"

#include "ops/cpu/attention_normalizers.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

namespace {

using namespace row;

class SoftmaxRows final : public RowNormalizer {
 public:
  void weights(float* z, int64_t n, SavedRow& saved) const override { saved.level = softmax(z, n); }
  void recall(float* z, float* u, int64_t n, const SavedRow& saved) const override {
    softmax_again(z, u, n, saved.level);
  }
  int64_t support(const float*, int64_t n, const SavedRow&) const override { return n; }
  float adjoint(float* dp, const float*, const float* u, int64_t n) const override {
    centred(dp, u, n);
    return 0;
  }
};

}  // namespace

void with_rows_of(Softmax, const Normalizer&, int64_t, const RowWork& work) {
  SoftmaxRows rows;
  work(rows);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
