#include "rates.h"

#include <sys/resource.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>

#include "core/arena.h"
#include "core/parallel.h"
#include "ops/cpu/matmul.h"

namespace bamtrain::bench {

namespace {

/// A store that goes through the caches reads its line first: three transfers for two.
/// REQUIRES: addresses and size are multiples of 16.
void copy_past_caches(char* to, const char* from, int64_t bytes) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

}  // namespace

std::string matrix_library() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

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
    const auto product = prepare_unguarded(matrix(c), matrix(a), matrix_transposed(b));
    for (int run = 0; run < 6; ++run) {
      const double start = now();
      product();
      const double elapsed = now() - start;
      const auto flops = 2.0 * static_cast<double>(M) * static_cast<double>(N * K);
      if (run > 0) best = std::max(best, flops / elapsed);
    }
  }
  return best;
}

double copy_bandwidth() {
  constexpr int64_t kBytes = int64_t{512} << 20, kPiece = int64_t{1} << 20;
  Arena arena;  // memory as the training has it
  Tensor from, to;
  arena.add("from", &from, Dtype::bf16, {kBytes / 2});
  arena.add("to", &to, Dtype::bf16, {kBytes / 2});
  arena.commit();
  std::memset(from.data, 1, kBytes);
  double best = 0;
  for (int run = 0; run < 6; ++run) {
    const double start = now();
    parallel_ranges(kBytes, kPiece, [&](int64_t begin, int64_t end) {
      copy_past_caches(static_cast<char*>(to.data) + begin, static_cast<char*>(from.data) + begin,
                       end - begin);
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
