#include "inspect/attention_copy.h"

#include "core/element.h"

namespace bamtrain {

AttentionCopy::AttentionCopy(const Attention& a) : copy_(a) {
  require(a.past() == 0, "all rows of a text");
  for_tensors(copy_, [this](const char*, Tensor& t) {
    if (!t) return;
    Tensor own = t;
    own.dtype = t.dtype == Dtype::i32 ? Dtype::i32 : Dtype::f64;
    int64_t stride = 1;
    for (int d = t.rank - 1; d >= 0; --d) {
      own.stride[static_cast<size_t>(d)] = stride;
      stride *= t.shape[static_cast<size_t>(d)];
    }
    own.data = memory_.emplace_back(static_cast<size_t>(own.bytes())).data();
    for_elements(t, [&](int64_t at, int64_t n) { put(own, n, get(t, at)); });
    t = own;
  });
}

}  // namespace bamtrain
