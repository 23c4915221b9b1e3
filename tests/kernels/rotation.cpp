// The rotation kernel, compared with fp64.

#include "kernels/rotation.h"

#include "values.h"

using namespace bamtrain;
using namespace bamtrain::test;

namespace {

constexpr size_t kPositions = 40;

struct RotationCase {
  size_t B, T, heads, D;
  size_t before = 0, after = 0;  // elements of a row on either side of the heads
  size_t gap = 0;                // between heads

  size_t head() const { return D + gap; }
  size_t row() const { return before + heads * head() + after; }
};

struct RotationInputs {
  Doubles x, cosine, sine;
  std::vector<int32_t> positions;
};

template <class A>
RotationInputs inputs_of(const RotationCase& c) {
  RotationInputs in;
  in.x = normal<A>("x", c.B * c.T * c.row());
  for (size_t p = 0; p < kPositions; ++p) {
    for (size_t n = 0; n < c.D / 2; ++n) {
      const double angle = static_cast<double>(p) / (1.0 + static_cast<double>(n));
      in.cosine.push_back(as<float>(std::cos(angle)));
      in.sine.push_back(as<float>(std::sin(angle)));
    }
  }
  for (size_t n = 0; n < c.B * c.T; ++n) {
    in.positions.push_back(static_cast<int32_t>(n * 7 % kPositions));
  }
  return in;
}

template <class A>
Doubles rotated(const RotationCase& c, const RotationInputs& in, bool inverse) {
  GlobalArray<A> x(elements<A>(in.x));
  const GlobalArray<float> cosine(elements<float>(in.cosine)), sine(elements<float>(in.sine));
  const GlobalArray<int32_t> positions(in.positions);
  kernels::Rotation<A> r;
  r.x = x.data() + c.before;
  r.batch = static_cast<int64_t>(c.T * c.row());
  r.row = static_cast<int64_t>(c.row());
  r.head = static_cast<int64_t>(c.head());
  r.B = static_cast<int>(c.B);
  r.T = static_cast<int>(c.T);
  r.heads = static_cast<int>(c.heads);
  r.D = static_cast<int>(c.D);
  r.positions = positions.data();
  r.cosine = cosine.data();
  r.sine = sine.data();
  r.inverse = inverse;
  REQUIRE(kernels::rotate(r, nullptr).ok());
  return doubles(x);
}

template <class A>
void check(const RotationCase& c, bool inverse) {
  INFO("B " << c.B << " T " << c.T << " heads " << c.heads << " D " << c.D << " inverse "
            << inverse);
  const RotationInputs in = inputs_of<A>(c);
  Doubles truth = in.x, size(in.x.size(), 0);
  const size_t half = c.D / 2;
  for (size_t n = 0; n < c.B * c.T; ++n) {
    for (size_t h = 0; h < c.heads; ++h) {
      for (size_t k = 0; k < half; ++k) {
        const size_t low = n * c.row() + c.before + h * c.head() + k, high = low + half;
        const size_t angle = static_cast<size_t>(in.positions[n]) * half + k;
        const double cs = in.cosine[angle], sn = inverse ? -in.sine[angle] : in.sine[angle];
        truth[low] = in.x[low] * cs - in.x[high] * sn;
        truth[high] = in.x[high] * cs + in.x[low] * sn;
        size[low] = size[high] = std::abs(in.x[low]) + std::abs(in.x[high]);
      }
    }
  }
  const double u = kRoundoff<A>;
  // Two products and a sum in fp32, then one rounding to A. Elements outside the heads do not
  // change.
  check_close(rotated<A>(c, in, inverse), truth, [&](size_t i) {
    return size[i] == 0 ? 1e-300 : 3 * 0x1p-24 * size[i] + u * std::abs(truth[i]);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("rotations agree with fp64", "", float, DeviceBf16) {
  for (const bool inverse : {false, true}) {
    check<TestType>({1, 1, 1, 16}, inverse);
    check<TestType>({2, 9, 3, 48}, inverse);
    check<TestType>({2, 5, 2, 64, 64, 128}, inverse);     // k of a fused tensor
    check<TestType>({3, 11, 5, 16, 8, 24, 16}, inverse);  // separated heads
    check<TestType>({1, 3, 40, 64}, inverse);             // several elements per thread and row
  }
}

TEMPLATE_TEST_CASE("rotations of what does not come in 16 bytes agree with fp64", "", float,
                   DeviceBf16) {
  check<TestType>({2, 5, 3, 2}, false);
  check<TestType>({2, 5, 3, 10}, true);
  check<TestType>({2, 5, 3, 16, 3, 5}, false);  // misaligned
  check<TestType>({1, 4, 2, 16, 0, 3}, true);
}

TEST_CASE("a rotation and its inverse undo each other") {
  const RotationCase c{2, 8, 2, 32};
  RotationInputs in = inputs_of<float>(c);
  const Doubles before = in.x;
  in.x = rotated<float>(c, in, false);
  // Two products and a sum, twice; a pair's |x| at most doubles.
  check_close(rotated<float>(c, in, true), before, [](size_t) { return 6 * 0x1p-24 * 10; });
}

TEST_CASE("rotations give the same bits in every order of threads and blocks") {
  const RotationCase c{2, 9, 3, 32};
  const RotationInputs in = inputs_of<DeviceBf16>(c);
  check_same_under_all_schedules([&] { return rotated<DeviceBf16>(c, in, false); });
}

TEST_CASE("the rotation kernel refuses what it does not take") {
  kernels::Rotation<float> r;
  r.B = r.T = r.heads = 1;
  r.D = 7;
  check_refused(kernels::rotate(r, nullptr));
  r.D = 8;
  r.T = 0;
  check_refused(kernels::rotate(r, nullptr));
}
