#include "rates.h"

#include <sys/resource.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>

#include "core/arena.h"
#include "core/element.h"
#include "core/parallel.h"
#include "ops/cpu/matmul.h"

namespace bamtrain::bench {

namespace {

constexpr int64_t kCopyBytes = int64_t{512} << 20;

/// A store through the caches reads its line first: three transfers instead of two. REQUIRES:
/// addresses and size are multiples of 16.
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

double peak_matmul(Dtype dtype) {
  double best = 0;
  constexpr int64_t kShapes[][3] = {{1024, 3072, 768}, {1024, 768, 3072}, {2048, 2048, 2048}};
  for (const auto& [M, N, K] : kShapes) {
    Arena arena;
    Tensor a, b, c;
    arena.add("a", &a, dtype, {M, K});
    arena.add("b", &b, dtype, {N, K});
    arena.add("c", &c, dtype, {M, N});
    arena.commit();
    // Untouched memory would be a single page of zeros, read repeatedly.
    for (const Tensor& t : {a, b}) {
      for (int64_t i = 0; i < t.size(); ++i) put(t, i, static_cast<double>(i % 13 - 6));
    }
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

Copy::Copy() {
  arena_.add("from", &from_, Dtype::bf16, {kCopyBytes / 2});
  arena_.add("to", &to_, Dtype::bf16, {kCopyBytes / 2});
  arena_.commit();
  std::memset(from_.data, 1, kCopyBytes);
  std::memset(to_.data, 1, kCopyBytes);
}

double Copy::bandwidth() {
  constexpr int64_t kPiece = int64_t{1} << 20;
  char* const to = static_cast<char*>(to_.data);
  const char* const from = static_cast<const char*>(from_.data);
  const double start = now();
  parallel_ranges(kCopyBytes, kPiece, [&](int64_t begin, int64_t end) {
    copy_past_caches(to + begin, from + begin, end - begin);
  });
  return 2.0 * static_cast<double>(kCopyBytes) / (now() - start);
}

double copy_bandwidth() {
  Copy copy;
  double best = 0;
  for (int run = 0; run < 5; ++run) best = std::max(best, copy.bandwidth());
  return best;
}

int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace bamtrain::bench
