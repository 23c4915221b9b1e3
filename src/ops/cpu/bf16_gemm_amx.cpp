// tdpbf16ps of AMX: tiles of sixteen rows of sums, accumulated from sixteen rows of 32 elements of
// A and sixteen of pairs of B.

#include <immintrin.h>

#include "ops/cpu/bf16_gemm.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

extern const Bf16Gemm kProducts;

namespace {

constexpr int64_t kRows = 16, kColumns = 16, kInner = 32;  // of a tile: 1 KiB each

// The AMX unit sleeps after some 0.3 microseconds without a product, and takes 0.2 to wake, as long
// as the products of a tile of keys take. So attention returns to it after sixteen rows.
constexpr int64_t kRowsAtOnce = kRows;

// Not on the stack: g++ 12 assumes that the load instruction reads only the beginning of the
// struct, and stores no more than that.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);
constexpr Configuration kConfiguration;

void begin() { _tile_loadconfig(&kConfiguration); }
void end() { _tile_release(); }

// Tiles 0 and 1 hold C in turn, so that one is stored while the other accumulates; 2 and 3 hold A,
// 4 and 5 A', 6 and 7 B. Tile numbers are part of the instructions, hence of the names here.

/// A row of tiles of C and the products added to it in one pass: `kInners` tiles of A, and of A'
/// with kInTwo, each loaded once.
template <bool kAdd, int kInners, bool kInTwo>
class Row {
 public:
  Row(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c)
      : b_(b),
        c_(c),
        bytes_of_b_(static_cast<size_t>(s.ldb) * sizeof(Bf16Pair)),
        bytes_of_c_(static_cast<size_t>(s.ldc) * sizeof(float)),
        below_(kInner / 2 * s.ldb) {
    const auto bytes_of_a = static_cast<size_t>(s.lda) * sizeof(bf16);
    _tile_loadd(2, a, bytes_of_a);
    if constexpr (kInners > 1) _tile_loadd(3, a + kInner, bytes_of_a);
    if constexpr (kInTwo) {
      _tile_loadd(4, a + s.K, bytes_of_a);
      if constexpr (kInners > 1) _tile_loadd(5, a + s.K + kInner, bytes_of_a);
    }
    int64_t n = 0;
    for (; n + 2 * kColumns <= s.N; n += 2 * kColumns) {
      tile_0(n);
      tile_1(n + kColumns);
    }
    if (n < s.N) tile_0(n);
  }

 private:
#define BAMTRAIN_TILE_OF_C(C)                        \
  void tile_##C(int64_t n) {                         \
    if constexpr (kAdd) {                            \
      _tile_loadd(C, c_ + n, bytes_of_c_);           \
    } else {                                         \
      _tile_zero(C);                                 \
    }                                                \
    _tile_loadd(6, b_ + n, bytes_of_b_);             \
    _tile_dpbf16ps(C, 2, 6);                         \
    if constexpr (kInTwo) _tile_dpbf16ps(C, 4, 6);   \
    if constexpr (kInners > 1) {                     \
      _tile_loadd(7, b_ + below_ + n, bytes_of_b_);  \
      _tile_dpbf16ps(C, 3, 7);                       \
      if constexpr (kInTwo) _tile_dpbf16ps(C, 5, 7); \
    }                                                \
    _tile_stored(C, c_ + n, bytes_of_c_);            \
  }
  BAMTRAIN_TILE_OF_C(0)
  BAMTRAIN_TILE_OF_C(1)
#undef BAMTRAIN_TILE_OF_C

  const Bf16Pair* b_;
  float* c_;
  size_t bytes_of_b_, bytes_of_c_;
  int64_t below_;  // from a tile of B to the next one of the same columns
};

void multiply(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  for (int64_t m = 0; m < s.M; m += kRows, a += kRows * s.lda, c += kRows * s.ldc) {
    if (s.K > kInner) {
      Row<false, 2, false>(s, a, b, c);
    } else {
      Row<false, 1, false>(s, a, b, c);
    }
    for (int64_t k = 2 * kInner; k < s.K; k += 2 * kInner) {
      const Bf16Pair* const below = b + k / 2 * s.ldb;
      if (k + kInner < s.K) {
        Row<true, 2, false>(s, a + k, below, c);
      } else {
        Row<true, 1, false>(s, a + k, below, c);
      }
    }
  }
}

void add_in_two(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  for (int64_t m = 0; m < s.M; m += kRows, a += kRows * s.lda, c += kRows * s.ldc) {
    for (int64_t k = 0; k < s.K; k += 2 * kInner) {
      Row<true, 2, true>(s, a + k, b + k / 2 * s.ldb, c);
    }
  }
}

}  // namespace

constinit const Bf16Gemm kProducts = {begin, end, multiply, add_in_two, kRowsAtOnce};

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
