// Products of f32 in TF32, on the engine. (A GPU's library may choose not to round.)

#include "catch.h"
#include "ops/compare.h"
#include "ops/cuda/cuda.h"

namespace bamtrain::testing {
namespace {

/// x times w, as a product of single numbers.
double product(bool tf32, Dtype t, double x, double w) {
  const auto backend = make_cuda_backend(0, tf32);
  const Memory a(t, {1, 1}, x, backend->memory()), b(t, {1, 1}, w, backend->memory());
  const Memory y(Dtype::f32, {1, 1}, 0, backend->memory());
  backend->linear_forward(y.tensor(), a.tensor(), b.tensor(), {});
  return read(y.tensor(), Role::parameter).x[0];
}

TEST_CASE("in TF32 products of f32 round their operands to 10 bits of mantissa, others none") {
  CHECK(product(true, Dtype::f32, 1 + 0x1p-12, 3) == 3);
  CHECK(product(true, Dtype::f32, 3, 1 + 0x1p-11) == 3 * (1 + 0x1p-10));  // a tie
  CHECK(product(true, Dtype::f32, 1 + 0x1p-10, 1) == 1 + 0x1p-10);
  CHECK(product(false, Dtype::f32, 1 + 0x1p-12, 3) == 3 * (1 + 0x1p-12));
  CHECK(product(true, Dtype::bf16, 1 + 0x1p-7, 3) == 3 * (1 + 0x1p-7));
}

}  // namespace
}  // namespace bamtrain::testing
