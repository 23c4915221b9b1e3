#include "tasks/binary_number.h"

#include <cstdint>

#include "catch.h"

namespace bamtrain::binary {
namespace {

Number number(uint64_t x, size_t digits) {
  Number n(digits);
  for (size_t i = 0; i < digits; ++i) n[i] = static_cast<int32_t>(x >> i & 1);
  return n;
}

uint64_t value(const Number& n) {
  uint64_t x = 0;
  for (size_t i = n.size(); i-- > 0;) x = 2 * x + static_cast<uint64_t>(n[i]);
  return x;
}

TEST_CASE("sums, products and roots of all small numbers are those of integers") {
  for (uint64_t a = 0; a < 40; ++a) {
    for (uint64_t b = 0; b < 40; ++b) {
      CHECK(value(sum(number(a, 6), number(b, 7))) == a + b);
      CHECK(value(product(number(a, 6), number(b, 7))) == a * b);
    }
  }
  for (uint64_t a = 0; a < 5000; ++a) {
    for (const size_t digits : {13, 14}) {
      const Number root = square_root(number(a, digits));
      CHECK(root.size() == 7);
      const uint64_t r = value(root);
      CHECK(r * r <= a);
      CHECK((r + 1) * (r + 1) > a);
    }
  }
}

TEST_CASE("the root of a square of many digits is what was squared, and one less falls below") {
  const Rng stream(3, "roots");
  for (int i = 0; i < 20; ++i) {
    Draws draws(stream, i);
    const Number r = draw_positive(200, &draws);
    const Number square = product(r, r);
    CHECK(trimmed(square_root(square)) == trimmed(r));
    Number below = square;  // becomes square - 1
    size_t at = 0;
    while (below[at] == 0) below[at++] = 1;
    below[at] = 0;
    const Number lower = square_root(below);
    CHECK(trimmed(sum(lower, {1})) == trimmed(r));
  }
}

TEST_CASE("leading zeros go, but one digit stays") {
  CHECK(trimmed({0, 1, 0, 0}) == Number{0, 1});
  CHECK(trimmed({0, 0}) == Number{0});
  CHECK(trimmed({1}) == Number{1});
}

TEST_CASE("a positive number is drawn uniformly") {
  const Rng stream(5, "positive");
  std::vector<int> counts(8);
  for (int i = 0; i < 7000; ++i) {
    Draws draws(stream, i);
    ++counts[value(draw_positive(3, &draws))];
  }
  CHECK(counts[0] == 0);
  for (size_t x = 1; x < 8; ++x) CHECK(std::abs(counts[x] - 1000) < 150);  // 5 standard deviations
}

}  // namespace
}  // namespace bamtrain::binary
