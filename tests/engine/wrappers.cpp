// Each wrapper on random operands, compared with its definition, computed here element by element.
// The layouts of matrix fragments are those of the PTX ISA, section "Matrix multiply-accumulate
// operation using mma instruction", "Matrix fragments for mma.m16n8k16" and "ldmatrix".

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "catch.h"
#include "engine/support.h"

using namespace bamtrain;
using namespace bamtrain::engine;
using wrappers::Case;

namespace {

using Words = std::vector<uint32_t>;

Case case_named(const std::string& name) {
  static const std::vector<Case> all = wrappers::cases();
  for (const Case& c : all) {
    if (c.name == name) return c;
  }
  throw std::runtime_error("no case " + name);
}

/// Runs the case in every order and checks that the words are identical.
Words run_in_every_order(const Case& c) {
  const Words first = run(c);
  for (const Options& o : schedules()) {
    const ScopedOptions with(o);
    CHECK(run(c) == first);
  }
  return first;
}

/// Element `i` of a bf16 array packed in pairs.
double bf16_at(const uint32_t* words, int i) {
  return std::bit_cast<float>((words[i / 2] >> (i % 2 * 16) & 0xFFFFu) << 16);
}

/// The matrices of an mma case, assembled from the lanes' registers.
struct Fragments {
  double a[16][16], b[16][8], c[16][8];

  explicit Fragments(const Words& in) {
    for (int lane = 0; lane < 32; ++lane) {
      const int group = lane >> 2, in_group = lane % 4;
      uint32_t of_a[4], of_b[2];
      for (int r = 0; r < 4; ++r) of_a[r] = in[static_cast<size_t>(r * 32 + lane)];
      for (int r = 0; r < 2; ++r) of_b[r] = in[static_cast<size_t>((4 + r) * 32 + lane)];
      for (int i = 0; i < 8; ++i) {
        const int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
        const int column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        a[row][column] = bf16_at(of_a, i);
      }
      for (int i = 0; i < 4; ++i) {
        const int row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
        b[row][group] = bf16_at(of_b, i);
        c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)] =
            std::bit_cast<float>(in[static_cast<size_t>((6 + i) * 32 + lane)]);
      }
    }
  }
};

/// The nearest bf16, by comparing distances in fp64; of two at the same distance, the one with an
/// even last bit.
uint32_t nearest_bf16(uint32_t bits) {
  const float x = std::bit_cast<float>(bits);
  if (std::isnan(x)) return 0x7FFF;
  const uint32_t below = bits >> 16;  // closer to zero
  if (std::isinf(x)) return below;
  const auto value = [](uint32_t b) {
    // Past the largest bf16, the next value would be 2^128, which stands for infinity.
    if ((b & 0x7FFFu) == 0x7F80u) return (b & 0x8000u) != 0 ? -0x1p128 : 0x1p128;
    return double{std::bit_cast<float>(b << 16)};
  };
  const double to_below = std::abs(double{x} - value(below));
  const double to_above = std::abs(double{x} - value(below + 1));
  if (to_below != to_above) return to_below < to_above ? below : below + 1;
  return below % 2 == 0 ? below : below + 1;
}

float without_subnormal(double x) {
  const auto f = static_cast<float>(x);
  return std::abs(f) < std::numeric_limits<float>::min() ? 0.0f : f;
}

}  // namespace

TEST_CASE("shuffles move the words that their definition says") {
  const int operands[] = {0, 1, 2, 7, 16, 31};
  for (const char* name : {"shuffle_xor", "shuffle", "shuffle_up", "shuffle_down"}) {
    const Case c = case_named(name);
    const Words out = run_in_every_order(c);
    for (int i = 0; i < 6; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        int from = lane;
        if (c.name == "shuffle_xor") from = lane ^ operands[i];
        if (c.name == "shuffle") from = (lane * operands[i] + 5) % 32;
        if (c.name == "shuffle_up" && lane >= operands[i]) from = lane - operands[i];
        if (c.name == "shuffle_down" && lane + operands[i] < 32) from = lane + operands[i];
        INFO(name << " by " << operands[i] << ", lane " << lane);
        CHECK(out[static_cast<size_t>(i * 32 + lane)] == c.in[static_cast<size_t>(from)]);
      }
    }
  }
}

TEST_CASE("a ballot collects the votes of its mask") {
  const Case c = case_named("ballot");
  const Words out = run_in_every_order(c);
  uint32_t votes = 0;
  for (size_t l = 0; l < 32; ++l) votes += (c.in[l] % 2) << l;
  for (size_t l = 0; l < 32; ++l) {
    CHECK(out[l] == votes);
    CHECK(out[32 + l] == (l < 16 ? votes % 65536 : votes / 65536 * 65536));
  }
}

TEST_CASE("ldmatrix distributes rows, or columns when transposed") {
  for (const int matrices : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const Case c =
          case_named("ldmatrix_x" + std::to_string(matrices) + (transposed ? "_transposed" : ""));
      INFO(c.name);
      const Words out = run_in_every_order(c);
      const auto* elements = reinterpret_cast<const unsigned char*>(c.in.data());
      const auto element = [&](int m, int row, int column) {
        const int shared_row = ((m * 8 + row) * 11 + 3) % 32;
        uint16_t e;
        std::memcpy(&e, elements + shared_row * 16 + column * 2, 2);
        return e;
      };
      for (int m = 0; m < matrices; ++m) {
        for (int lane = 0; lane < 32; ++lane) {
          const int slow = lane / 4, fast = lane % 4 * 2;
          const uint32_t low = transposed ? element(m, fast, slow) : element(m, slow, fast);
          const uint32_t high =
              transposed ? element(m, fast + 1, slow) : element(m, slow, fast + 1);
          CHECK(out[static_cast<size_t>(m * 32 + lane)] == low + 65536 * high);
        }
      }
    }
  }
}

TEST_CASE("mma multiplies the fragments of the documented layout") {
  for (const char* name : {"mma", "mma_exact"}) {
    const Case c = case_named(name);
    INFO(name);
    const Words out = run_in_every_order(c);
    const Fragments f(c.in);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + i % 2;
        double sum = f.c[row][column], magnitude = std::abs(sum);
        for (int k = 0; k < 16; ++k) {
          sum += f.a[row][k] * f.b[k][column];
          magnitude += std::abs(f.a[row][k] * f.b[k][column]);
        }
        const double got = std::bit_cast<float>(out[static_cast<size_t>(i * 32 + lane)]);
        CHECK(std::abs(got - sum) <= allowed(c.tolerance, 0.0, sum, magnitude));
      }
    }
  }
}

TEST_CASE("asynchronous copies arrive, and as zeros where they are not wanted") {
  const Case c = case_named("copy_async");
  const Words out = run_in_every_order(c);
  int zeros = 0;
  for (size_t chunk = 0; chunk < 96; ++chunk) {
    const bool wanted = (c.in[96 * 4 + chunk % 32] >> (chunk / 32) & 1) != 0;
    zeros += wanted ? 0 : 1;
    for (size_t w = 0; w < 4; ++w) {
      CHECK(out[chunk * 4 + w] == (wanted ? c.in[chunk * 4 + w] : 0));
    }
  }
  CHECK(zeros > 20);
}

TEST_CASE("a launch has its dynamic shared memory beside the kernel's own arrays") {
  const Case c = case_named("shared");
  const Words out = run_in_every_order(c);
  for (size_t l = 0; l < 32; ++l) {
    CHECK(out[l] == c.in[31 - l]);
    CHECK(out[32 + l] == ~c.in[31 - l]);
  }
}

TEST_CASE("exp2 and log2 are within their tolerance, subnormal numbers zero") {
  for (const char* name : {"exp2", "log2"}) {
    const Case c = case_named(name);
    const bool exponential = c.tolerance == wrappers::Tolerance::exp2;
    const Words out = run_in_every_order(c);
    for (size_t i = 0; i < out.size(); ++i) {
      const double x = without_subnormal(std::bit_cast<float>(c.in[i]));
      const double expected = exponential ? without_subnormal(std::exp2(x)) : std::log2(x);
      const double got = std::bit_cast<float>(out[i]);
      INFO(name << " of " << x);
      if (std::isnan(expected)) {
        CHECK(std::isnan(got));
      } else if (std::isinf(expected)) {
        CHECK(got == expected);
      } else {
        CHECK(std::abs(got - expected) <= allowed(c.tolerance, x, expected, 0.0));
      }
    }
  }
}

TEST_CASE("packing rounds to the nearest bf16, ties to even, NaN to NaN") {
  const Case c = case_named("pack_bf16");
  const Words out = run_in_every_order(c);
  const size_t pairs = out.size();
  for (size_t i = 0; i < pairs; ++i) {
    INFO(std::hex << c.in[i] << " " << c.in[pairs + i]);
    CHECK(out[i] == nearest_bf16(c.in[i]) + 65536 * nearest_bf16(c.in[pairs + i]));
  }
}

TEST_CASE("thread and block indices count x first") {
  struct Recorder {
    static void kernel(uint32_t* out) {
      const device::Dim3 t = device::thread_index(), b = device::block_index();
      const device::Dim3 n = device::block_size(), m = device::grid_size();
      const uint32_t thread = t.x + n.x * (t.y + n.y * t.z);
      const uint32_t block = b.x + m.x * (b.y + m.y * b.z);
      out[block * 24 + thread] =
          t.x + 10 * t.y + 100 * t.z + 1000 * b.x + 10000 * b.y + 100000 * b.z;
    }
  };
  for (const Options& o : schedules()) {
    const ScopedOptions with(o);
    GlobalArray<uint32_t> out(24 * 30);
    REQUIRE(device::launch(Recorder::kernel, {2, 3, 5}, {4, 3, 2}, 0, nullptr, out.data()).ok());
    CHECK(out[0] == 0);
    CHECK(out[1] == 1);            // x of the thread
    CHECK(out[4] == 10);           // y
    CHECK(out[12] == 100);         // z
    CHECK(out[24] == 1000);        // x of the block
    CHECK(out[24 * 2] == 10000);   // y
    CHECK(out[24 * 6] == 100000);  // z
    CHECK(out[24 * 30 - 1] == 421123);
  }
}
