// The measured peak matmul throughput: how many products a host runs, and their size on a device.

#include "run/peak_matmul.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "core/error.h"
#include "model/null_backend.h"
#include "ops/cpu/cpu.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// The host's memory, presented as that of a device with `room` bytes.
class Room final : public MemorySource {
 public:
  explicit Room(int64_t room) : room_(room) {}
  void* allocate(int64_t bytes) override {
    check_fits(bytes);
    return host_memory().allocate(bytes);
  }
  void release(void* memory, int64_t bytes) override { host_memory().release(memory, bytes); }
  void check_fits(int64_t bytes) const override {
    if (bytes > room_) throw Error(ExitCode::device, "memory plan", "less", "more", kPlanRemedy);
  }
  bool on_host() const override { return false; }

 private:
  int64_t room_;
};

/// A device whose products take no time, or run on the CPU.
class Far final : public NullBackend {
 public:
  Far(int64_t room, std::unique_ptr<Backend> products)
      : room_(room), products_(std::move(products)) {}
  MemorySource& memory() override { return room_; }
  void linear_forward(Tensor y, Tensor x, Tensor w, Tensor bias) override {
    sizes.push_back(y.shape[0]);
    if (products_) products_->linear_forward(y, x, w, bias);
  }
  std::vector<int64_t> sizes;

 private:
  Room room_;
  std::unique_ptr<Backend> products_;
};

constexpr int64_t kMiB = int64_t{1} << 20;

}  // namespace

TEST_CASE("the matmuls of the peak measurement fit into the device") {
  // In fp32, three matrices of 2,048^2 elements take 48 MiB, three of 4,096^2 take 192.
  Far device(100 * kMiB, nullptr);
  CHECK(measure_peak_matmul(device, Dtype::f32) > 0);
  REQUIRE(!device.sizes.empty());
  CHECK(device.sizes.back() == 2048);
  Far larger(1000 * kMiB, nullptr);
  CHECK(measure_peak_matmul(larger, Dtype::bf16) > 0);
  CHECK(larger.sizes.back() == 8192);
  Far none(kMiB, nullptr);
  CHECK_THROWS_AS(measure_peak_matmul(none, Dtype::f32), Error);
}

TEST_CASE(
    "the matmuls of the peak measurement stay small where they are slow, as with device=check") {
  Far slow(1000 * kMiB, make_cpu_backend());
  CHECK(measure_peak_matmul(slow, Dtype::f32) > 0);
  // A product of 2,048^3 takes more than a millisecond on any host.
  CHECK(slow.sizes.back() <= 2048);
}

TEST_CASE("the peak of a host is measured until it stays for 10 ms, and for 50 at most") {
  // fewest_seconds() of series whose n-th product takes seconds(n), and how many it ran.
  const auto measure = [](const std::function<double(int)>& seconds, int* products) {
    *products = 0;
    return fewest_seconds([&] { return seconds((*products)++); });
  };
  int products = 0;
  CHECK(measure([](int) { return 1e-3; }, &products) == 1e-3);
  CHECK(products == 11);
  // One that is faster begins the 10 ms anew, wherever it comes in them.
  CHECK(measure([](int n) { return n == 9 ? 5e-4 : 1e-3; }, &products) == 5e-4);
  CHECK(products == 20);
  // Each is faster by less than a hundredth than the one before: 0.5 % at a time, for 30 products.
  const auto ramp = [](int n) { return 1e-3 * std::pow(0.995, std::min(n, 30)); };
  CHECK(measure(ramp, &products) == ramp(30));
  CHECK(products > 35);
  // Faster by 1.5 % all the time: 1 ms (1 - 0.985^n) / 0.015 is 50 ms at n = 92.
  measure([](int n) { return 1e-3 * std::pow(0.985, n); }, &products);
  CHECK(products == 92);
  CHECK(measure([](int) { return 0.06; }, &products) == 0.06);
  CHECK(products == 1);
}
