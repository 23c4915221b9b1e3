#include "core/tensor.h"

#include <limits>
#include <vector>

#include "catch.h"
#include "core/arena.h"
#include "core/checked.h"

using namespace bamtrain;

TEST_CASE("slices and reshapes view the same memory") {
  std::vector<float> x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Tensor t(x.data(), Dtype::f32, {2, 3, 4});
  CHECK(t.size() == 24);
  CHECK(t.bytes() == 96);
  const Tensor s = t.slice(1, 1, 2);
  CHECK(s.ptr<float>()[0] == 4);
  CHECK(s.stride[0] == 12);
  CHECK_FALSE(s.contiguous());
  CHECK(t.slice(0, 1, 1).contiguous());
  CHECK(t.reshaped({6, 4}).slice(0, 5, 1).ptr<float>()[3] == 23);
  CHECK(t.describe() == "(2, 3, 4) f32");
}

TEST_CASE("what breaks a tensor's contract is refused") {
  std::vector<float> x(24);
  const Tensor t(x.data(), Dtype::f32, {2, 12});
  REQUIRE_THROWS_AS(t.ptr<double>(), Error);
  REQUIRE_THROWS_AS(t.slice(1, 10, 3), Error);
  REQUIRE_THROWS_AS(t.reshaped({5, 5}), Error);
  REQUIRE_THROWS_AS(t.slice(1, 0, 3).reshaped({6}), Error);
}

TEST_CASE("an arena gives aligned, zeroed, separate memory after commit") {
  Arena arena;
  Tensor a, b;
  arena.add("group.a", &a, Dtype::bf16, {3, 5});
  arena.add("group.b", &b, Dtype::f64, {7});
  CHECK(a.data == nullptr);
  CHECK(arena.total_bytes() == 128);
  arena.commit();
  CHECK(reinterpret_cast<uintptr_t>(a.data) % 64 == 0);
  CHECK(reinterpret_cast<uintptr_t>(b.data) % 64 == 0);
  for (int i = 0; i < 7; ++i) CHECK(b.ptr<double>()[i] == 0);
  CHECK(static_cast<char*>(b.data) - static_cast<char*>(a.data) >= 30);
  CHECK(arena.table().find("group") != std::string::npos);
}

TEST_CASE("sizes that overflow are errors") {
  const int64_t big = std::numeric_limits<int64_t>::max() / 2;
  REQUIRE_THROWS_AS(checked_mul(big, 3, "x"), Error);
  REQUIRE_THROWS_AS(checked_add(big, big + 2, "x"), Error);
  REQUIRE_THROWS_AS(checked_mul(-1, 3, "x"), Error);
  CHECK(checked_mul(big, 2, "x") == big * 2);
  CHECK(ceil_div(7, 3) == 3);
  Arena arena;
  Tensor t;
  REQUIRE_THROWS_AS(arena.add("t", &t, Dtype::f32, {big, big}), Error);
}
