#include "model/kv_cache_capacity.h"

namespace bamtrain {

void shift_to_front(Backend& backend, const Tensor& t, int dim, int64_t from, int64_t count) {
  require(from >= 1, "elements that have a way to go");
  // In blocks of at most `from` elements, so that none is overwritten before it is read.
  for (int64_t n = 0; n < count; n += from) {
    const int64_t piece = std::min(from, count - n);
    backend.copy(t.slice(dim, n, piece), t.slice(dim, from + n, piece));
  }
}

}  // namespace bamtrain
