// By tdpbf16ps of AMX: tiles of sixteen rows of sums, added to from sixteen rows of 32 elements of
// A and sixteen of pairs of B.

#include <immintrin.h>

#include "ops/cpu/bf16_products.h"
#include "ops/cpu/isa.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

extern const Bf16Products kProducts;

namespace {

constexpr int64_t kRows = 16, kColumns = 16, kInner = 32;  // of a tile: 1 KiB each

// Multiplying sleeps when nothing was multiplied for some 0.3 microseconds, and takes 0.2 to wake,
// as long as the products of a tile of keys: attention comes back after sixteen rows.
constexpr int64_t kRowsAtOnce = kRows;

// Not on the stack: g++ 12 takes an instruction that reads all of it for one that reads the
// beginning, and stores no more than that.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);
constexpr Configuration kConfiguration;

void begin() { _tile_loadconfig(&kConfiguration); }
void end() { _tile_release(); }

// Tiles 0 to 3 are of C, by turns, so that one is stored while others are summed; 4 and 5 of A, 6
// and 7 of B. Their numbers are part of the instructions, and so of the names of these functions.

/// A row of tiles of C and what is added to it at once: `kInners` tiles of A, which are read once.
template <bool kAdd, int kInners>
class Row {
 public:
  Row(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c)
      : b_(b),
        c_(c),
        bytes_of_b_(static_cast<size_t>(s.ldb) * sizeof(Bf16Pair)),
        bytes_of_c_(static_cast<size_t>(s.ldc) * sizeof(float)),
        below_(kInner / 2 * s.ldb) {
    const auto bytes_of_a = static_cast<size_t>(s.lda) * sizeof(bf16);
    _tile_loadd(4, a, bytes_of_a);
    if constexpr (kInners > 1) _tile_loadd(5, a + kInner, bytes_of_a);
    int64_t n = 0;
    for (; n + 4 * kColumns <= s.N; n += 4 * kColumns) {
      tile_0(n);
      tile_1(n + kColumns);
      tile_2(n + 2 * kColumns);
      tile_3(n + 3 * kColumns);
    }
    if (n < s.N) tile_0(n);
    if (n + kColumns < s.N) tile_1(n + kColumns);
    if (n + 2 * kColumns < s.N) tile_2(n + 2 * kColumns);
  }

 private:
#define BAMTRAIN_TILE_OF_C(C)                       \
  void tile_##C(int64_t n) {                        \
    if constexpr (kAdd) {                           \
      _tile_loadd(C, c_ + n, bytes_of_c_);          \
    } else {                                        \
      _tile_zero(C);                                \
    }                                               \
    _tile_loadd(6, b_ + n, bytes_of_b_);            \
    _tile_dpbf16ps(C, 4, 6);                        \
    if constexpr (kInners > 1) {                    \
      _tile_loadd(7, b_ + below_ + n, bytes_of_b_); \
      _tile_dpbf16ps(C, 5, 7);                      \
    }                                               \
    _tile_stored(C, c_ + n, bytes_of_c_);           \
  }
  BAMTRAIN_TILE_OF_C(0)
  BAMTRAIN_TILE_OF_C(1)
  BAMTRAIN_TILE_OF_C(2)
  BAMTRAIN_TILE_OF_C(3)
#undef BAMTRAIN_TILE_OF_C

  const Bf16Pair* b_;
  float* c_;
  size_t bytes_of_b_, bytes_of_c_;
  int64_t below_;  // from a tile of B to the next of the same columns
};

void multiply(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  for (int64_t m = 0; m < s.M; m += kRows, a += kRows * s.lda, c += kRows * s.ldc) {
    if (s.K > kInner) {
      Row<false, 2>(s, a, b, c);
    } else {
      Row<false, 1>(s, a, b, c);
    }
    for (int64_t k = 2 * kInner; k < s.K; k += 2 * kInner) {
      const Bf16Pair* const below = b + k / 2 * s.ldb;
      if (k + kInner < s.K) {
        Row<true, 2>(s, a + k, below, c);
      } else {
        Row<true, 1>(s, a + k, below, c);
      }
    }
  }
}

// Tiles 0 and 1 are of C, 2 and 3 of A, 4 and 5 of A', 6 and 7 of B.
void add_in_two(const Bf16Shape& s, const bf16* a, const Bf16Pair* b, float* c) {
  const auto bytes_of_a = static_cast<size_t>(s.lda) * sizeof(bf16);
  const auto bytes_of_b = static_cast<size_t>(s.ldb) * sizeof(Bf16Pair);
  const auto bytes_of_c = static_cast<size_t>(s.ldc) * sizeof(float);
  for (int64_t m = 0; m < s.M; m += kRows, a += kRows * s.lda, c += kRows * s.ldc) {
    for (int64_t k = 0; k < s.K; k += 2 * kInner) {
      _tile_loadd(2, a + k, bytes_of_a);
      _tile_loadd(3, a + k + kInner, bytes_of_a);
      _tile_loadd(4, a + s.K + k, bytes_of_a);
      _tile_loadd(5, a + s.K + k + kInner, bytes_of_a);
      const Bf16Pair* const pairs = b + k / 2 * s.ldb;
      const Bf16Pair* const below = pairs + kInner / 2 * s.ldb;
      for (int64_t n = 0; n < s.N; n += 2 * kColumns) {
        _tile_loadd(0, c + n, bytes_of_c);
        _tile_loadd(6, pairs + n, bytes_of_b);
        _tile_dpbf16ps(0, 2, 6);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, below + n, bytes_of_b);
        _tile_dpbf16ps(0, 3, 7);
        _tile_dpbf16ps(0, 5, 7);
        _tile_stored(0, c + n, bytes_of_c);
        if (n + kColumns == s.N) break;
        _tile_loadd(1, c + n + kColumns, bytes_of_c);
        _tile_loadd(6, pairs + n + kColumns, bytes_of_b);
        _tile_dpbf16ps(1, 2, 6);
        _tile_dpbf16ps(1, 4, 6);
        _tile_loadd(7, below + n + kColumns, bytes_of_b);
        _tile_dpbf16ps(1, 3, 7);
        _tile_dpbf16ps(1, 5, 7);
        _tile_stored(1, c + n + kColumns, bytes_of_c);
      }
    }
  }
}

}  // namespace

constinit const Bf16Products kProducts = {begin, end, multiply, add_in_two, kRowsAtOnce};

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
