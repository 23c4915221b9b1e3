#include "model/random_positions.h"

#include "core/error.h"

namespace bamtrain {

void draw_positions(const Rng& rng, int64_t sequence, int64_t range, int64_t T,
                    int32_t* positions) {
  require(T <= range, "as many positions as tokens");
  // Each is taken with the probability that what is still wanted has among what is left (Knuth,
  // TAOCP 3.4.2, algorithm S).
  int64_t taken = 0;
  for (int64_t p = 0; taken < T; ++p) {
    const auto draw = static_cast<uint64_t>(sequence * range + p);
    if (rng.below(draw, static_cast<uint64_t>(range - p)) < static_cast<uint64_t>(T - taken)) {
      positions[taken++] = static_cast<int32_t>(p);
    }
  }
}

}  // namespace bamtrain
