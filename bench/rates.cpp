#include "rates.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/arena.h"
#include "core/parallel.h"
#include "ops/cpu/matmul.h"

namespace bamtrain::bench {

double matrix_rate(Dtype dtype) {
  double best = 0;
  constexpr int64_t kShapes[][3] = {{1024, 3072, 768}, {1024, 768, 3072}, {2048, 2048, 2048}};
  for (const auto& [M, N, K] : kShapes) {
    Arena arena;
    Tensor a, b, c;
    arena.add("a", &a, dtype, {M, K});
    arena.add("b", &b, dtype, {N, K});
    arena.add("c", &c, dtype, {M, N});
    arena.commit();
    for (int run = 0; run < 6; ++run) {
      const double start = now();
      matmul_unguarded(matrix(c), matrix(a), matrix_transposed(b));
      const double elapsed = now() - start;
      const auto flops = 2.0 * static_cast<double>(M) * static_cast<double>(N * K);
      if (run > 0) best = std::max(best, flops / elapsed);
    }
  }
  return best;
}

double copy_bandwidth() {
  constexpr int64_t kBytes = int64_t{256} << 20, kPiece = int64_t{1} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int run = 0; run < 6; ++run) {
    const double start = now();
    parallel_ranges(kBytes, kPiece, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
    });
    if (run > 0) best = std::max(best, 2.0 * static_cast<double>(kBytes) / (now() - start));
  }
  return best;
}

int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace bamtrain::bench
