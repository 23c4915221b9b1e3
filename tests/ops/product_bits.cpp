// Prints hashes of the bits of products with awkward shapes, one per line, for tests that need a
// separate process: OpenMP and oneDNN read their environment once. With an argument, C++
// allocations fail inside parallel regions.

#include <omp.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "core/rng.h"
#include "ops/cpu/matmul.h"

using namespace bamtrain;

namespace {

bool refuse_in_parallel = false;

}  // namespace

void* operator new(size_t bytes) {
  if (refuse_in_parallel && omp_in_parallel()) throw std::bad_alloc();
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {

std::vector<float> random_floats(int64_t n, const char* stream) {
  const Rng rng(5, stream);
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(rng.normal(i));
  return x;
}

/// C (M, N) += A (M, K) B (K, N), A transposed in memory or not.
void print_product(Matmul& matmul, int64_t M, int64_t N, int64_t K, bool transposed) {
  std::vector<float> a = random_floats(M * K, "a"), b = random_floats(K * N, "b"),
                     c = random_floats(M * N, "c");
  const Tensor ta =
      transposed ? Tensor(a.data(), Dtype::f32, {K, M}) : Tensor(a.data(), Dtype::f32, {M, K});
  matmul.run(matrix(Tensor(c.data(), Dtype::f32, {M, N})),
             transposed ? matrix_transposed(ta) : matrix(ta),
             matrix(Tensor(b.data(), Dtype::f32, {K, N})), nullptr, true);
  uint64_t hash = 14695981039346656037u;
  for (float x : c) hash = (hash ^ std::bit_cast<uint32_t>(x)) * 1099511628211u;
  std::printf("%016llx\n", static_cast<unsigned long long>(hash));
}

}  // namespace

int main(int argc, char**) try {
  refuse_in_parallel = argc > 1;
  Matmul matmul;
  print_product(matmul, 131, 72, 72, false);
  print_product(matmul, 131, 216, 72, false);
  print_product(matmul, 72, 72, 131, true);
  print_product(matmul, 72, 72, 4000, true);
  print_product(matmul, 1, 5000, 72, false);
  print_product(matmul, 256, 512, 1100, true);
  return 0;
} catch (const Error& e) {
  std::printf("%s\n", e.what());
  return static_cast<int>(e.code());
}
