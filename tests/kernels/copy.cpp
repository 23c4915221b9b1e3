// Copies between arrays with separate row strides, on the engine.

#include "kernels/copy.h"

#include <cstdint>
#include <vector>

#include "catch.h"
#include "engine/support.h"
#include "kernels/device.cuh"

using namespace bamtrain;
using engine::GlobalArray;
using engine::ScopedOptions;

namespace {

/// The sizes of an array and its memory layout: elements before it, and gaps after the rows of each
/// dimension but the last.
struct Layout {
  int64_t before = 0, gaps[3] = {};

  kernels::Strided of(const int64_t (&shape)[4]) const {
    kernels::Strided s;
    for (int d = 0; d < 4; ++d) s.shape[d] = shape[d];
    s.stride[2] = shape[3] + gaps[2];
    s.stride[1] = shape[2] * s.stride[2] + gaps[1];
    s.stride[0] = shape[1] * s.stride[1] + gaps[0];
    return s;
  }
};

template <class T>
void check(const int64_t (&shape)[4], const Layout& to, const Layout& from) {
  kernels::Strided dst = to.of(shape), src = from.of(shape);
  const auto size = [&](const kernels::Strided& s, const Layout& l) {
    return static_cast<size_t>(l.before + shape[0] * s.stride[0]);
  };
  std::vector<T> source(size(src, from)), expected(size(dst, to), T{7});
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<T>(i + 100);
  for (int64_t a = 0; a < shape[0]; ++a) {
    for (int64_t b = 0; b < shape[1]; ++b) {
      for (int64_t c = 0; c < shape[2]; ++c) {
        for (int64_t d = 0; d < shape[3]; ++d) {
          const auto place = [&](const kernels::Strided& s, const Layout& l) {
            return static_cast<size_t>(l.before + a * s.stride[0] + b * s.stride[1] +
                                       c * s.stride[2] + d);
          };
          expected[place(dst, to)] = source[place(src, from)];
        }
      }
    }
  }
  const GlobalArray<T> of_source(source);
  GlobalArray<T> copied(std::vector<T>(expected.size(), T{7}));
  dst.data = copied.data() + to.before;
  src.data = const_cast<T*>(of_source.data()) + from.before;
  dst.element = src.element = static_cast<int>(sizeof(T));
  REQUIRE(kernels::copy_rows(dst, src, nullptr).ok());
  INFO(shape[0] << " x " << shape[1] << " x " << shape[2] << " x " << shape[3] << " of "
                << sizeof(T) << " bytes");
  CHECK(copied.values() == expected);
}

/// Rows that are multiples of words of 2 to 16 bytes.
template <class T>
void check_all() {
  for (const engine::Options& o : engine::schedules()) {
    const ScopedOptions with(o);
    check<T>({2, 3, 5, 16}, {0, {0, 0, 0}}, {8, {16, 8, 32}});
    check<T>({2, 3, 5, 12}, {4, {4, 0, 8}}, {0, {0, 12, 0}});
    check<T>({1, 2, 7, 6}, {2, {0, 0, 2}}, {6, {1, 0, 4}});
    check<T>({1, 1, 4, 5}, {3, {0, 0, 1}}, {0, {0, 0, 0}});
    check<T>({3, 1, 1, 1}, {0, {4, 0, 0}}, {1, {2, 0, 0}});
    check<T>({1, 1, 1, 700}, {0, {0, 0, 0}}, {0, {0, 0, 0}});
  }
}

}  // namespace

TEST_CASE("a copy between rows that lie apart") {
  check_all<uint16_t>();
  check_all<float>();
  check_all<double>();
}

TEST_CASE("an empty copy does nothing, and one that does not fit is refused") {
  GlobalArray<float> x(16);
  kernels::Strided a;
  a.data = x.data();
  a.element = 4;
  a.shape[3] = 4;
  const auto refused = [](const kernels::Strided& dst, const kernels::Strided& src) {
    return kernels::copy_rows(dst, src, nullptr).code == device::LaunchStatus::kRefused;
  };
  CHECK_FALSE(refused(a, a));
  kernels::Strided b = a;
  b.shape[2] = 0;
  CHECK(refused(a, b));
  CHECK(kernels::copy_rows(b, b, nullptr).ok());
  b = a;
  b.element = 8;
  CHECK(refused(a, b));
  b = a;
  b.data = nullptr;
  CHECK(refused(a, b));
  CHECK(refused(b, a));
  b.shape[3] = -1;
  CHECK(refused(b, b));
  kernels::Strided odd = a;
  odd.element = 3;
  CHECK(refused(odd, odd));
}
