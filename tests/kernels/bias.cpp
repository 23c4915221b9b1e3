// The bias kernels, compared with fp64.

#include "kernels/bias.h"

#include <array>

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

/// `row`: elements from one row to the next, with the elements in between unchanged; 0: O.
template <class A>
void check_add(size_t N, size_t O, size_t row = 0) {
  INFO("N " << N << " O " << O << " row " << row);
  const size_t stride = row > 0 ? row : O;
  const Doubles y = normal<A>("y", N * stride), b = normal<float>("bias", O);
  GlobalArray<A> out(elements<A>(y));
  const GlobalArray<float> bias(elements<float>(b));
  REQUIRE(kernels::add_bias<A>({out.data(), bias.data(), static_cast<int64_t>(N),
                                static_cast<int64_t>(O), static_cast<int64_t>(row)},
                               nullptr)
              .ok());
  for (size_t i = 0; i < y.size(); ++i) {
    // One sum in fp32, then one rounding to A.
    const double sum = i % stride < O ? as<A>(as<float>(y[i] + b[i % stride])) : y[i];
    if (value_of(out[i]) != sum) FAIL("element " << i << ": " << value_of(out[i]));
  }
}

template <class A>
Doubles sums_of(const Doubles& x, const Doubles& before, size_t N, size_t O, size_t row = 0) {
  const GlobalArray<A> in(elements<A>(x));
  GlobalArray<float> sums(elements<float>(before));
  const auto rows = static_cast<int64_t>(N), columns = static_cast<int64_t>(O);
  GlobalArray<float> partial(static_cast<size_t>(kernels::column_sums_partial(rows, columns)));
  REQUIRE(kernels::column_sums<A>(
              {sums.data(), in.data(), rows, columns, partial.data(), static_cast<int64_t>(row)},
              nullptr)
              .ok());
  return doubles(sums);
}

template <class A>
void check_sums(size_t N, size_t O, size_t row = 0) {
  INFO("N " << N << " O " << O << " row " << row);
  const size_t stride = row > 0 ? row : O;
  const Doubles x = normal<A>("x", N * stride, 1, 0.5), before = normal<float>("before", O);
  Doubles truth = before, size(O);
  for (size_t c = 0; c < O; ++c) {
    size[c] = std::abs(before[c]);
    for (size_t r = 0; r < N; ++r) {
      truth[c] += x[r * stride + c];
      size[c] += std::abs(x[r * stride + c]);
    }
  }
  // A term is rounded at most once per fp32 addition: fewer than N + 40, in the block, among its
  // warps and among the partial sums.
  const double roundings = static_cast<double>(N) + 40;
  check_close(sums_of<A>(x, before, N, O, row), truth,
              [&](size_t c) { return roundings * 0x1p-24 * size[c]; });
}

}  // namespace

TEMPLATE_TEST_CASE("a bias is added to each row", "", float, DeviceBf16) {
  for (const auto& [N, O] : {std::pair<size_t, size_t>{1, 8}, {3, 264}, {70, 40}, {33, 512}}) {
    check_add<TestType>(N, O);
  }
}

TEMPLATE_TEST_CASE("column sums agree with fp64", "", float, DeviceBf16) {
  for (const auto& [N, O] : {std::pair<size_t, size_t>{1, 8}, {65, 264}, {1100, 40}, {64, 512}}) {
    check_sums<TestType>(N, O);
  }
}

TEMPLATE_TEST_CASE("rows that lie apart, of any number of columns, take a bias and are summed", "",
                   float, DeviceBf16) {
  for (const auto& [N, O, row] : {std::array<size_t, 3>{1, 1, 8},
                                  {70, 2, 64},
                                  {67, 5, 64},
                                  {40, 37, 64},
                                  {33, 300, 320},
                                  {9, 64, 128}}) {
    check_add<TestType>(N, O, row);
    check_sums<TestType>(N, O, row);
  }
}

TEST_CASE("column sums give the same bits in every order of threads and blocks") {
  const Doubles x = normal<DeviceBf16>("x", 200 * 48), before = normal<float>("before", 48);
  check_same_under_all_schedules([&] { return sums_of<DeviceBf16>(x, before, 200, 48); });
}

TEST_CASE("pieces of a column sum cover all rows and share the work as the shape demands") {
  for (const int64_t N : {int64_t{1}, int64_t{64}, int64_t{65}, int64_t{4096}, int64_t{1} << 20}) {
    for (const int64_t O : {8, 768, 3072, 32768}) {
      const int64_t rows = kernels::column_sums_rows(N, O);
      const int64_t pieces = kernels::column_sums_pieces(N, O);
      CHECK(pieces * rows >= N);
      CHECK((pieces - 1) * rows < N);  // no block is empty
      CHECK(rows % 32 == 0);           // no warp reads past its block's rows
    }
  }
  CHECK(kernels::column_sums_pieces(65536, 768) == 512);
}

TEST_CASE("the scratch of a column sum serves smaller shapes too") {
  const Rng rng(4, "shapes");
  for (uint64_t i = 0; i < 4000; i += 4) {
    const auto N = static_cast<int64_t>(1 + rng.below(i, 200000));
    const auto O = static_cast<int64_t>(8 + 8 * rng.below(i + 1, 5000));
    const auto n = static_cast<int64_t>(1 + rng.below(i + 2, static_cast<uint64_t>(N)));
    const auto o = static_cast<int64_t>(8 + 8 * rng.below(i + 3, static_cast<uint64_t>(O / 8)));
    REQUIRE(kernels::column_sums_pieces(n, o) * o <= kernels::column_sums_partial(N, O));
  }
}

TEST_CASE("bias kernels refuse what they do not take") {
  GlobalArray<float> x(64), b(64), partial(64);
  check_refused(kernels::add_bias<float>({x.data(), b.data(), 4, 12}, nullptr));
  check_refused(kernels::add_bias<float>({x.data(), b.data(), 0, 8}, nullptr));
  check_refused(kernels::add_bias<float>({x.data() + 1, b.data(), 1, 8}, nullptr));
  check_refused(kernels::column_sums<float>({b.data(), x.data(), 4, 12, partial.data()}, nullptr));
  check_refused(kernels::add_bias<float>({x.data(), b.data(), 4, 2, 12}, nullptr));
  check_refused(kernels::add_bias<float>({x.data(), b.data(), 4, 16, 8}, nullptr));
  check_refused(
      kernels::column_sums<float>({b.data(), x.data(), 4, 2, partial.data(), 12}, nullptr));
}
