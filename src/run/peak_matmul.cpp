#include "run/peak_matmul.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/arena.h"
#include "core/checked.h"
#include "core/element.h"
#include "core/error.h"
#include "core/parallel.h"
#include "ops/host_copy.h"

namespace bamtrain {

namespace {

using Clock = std::chrono::steady_clock;

/// For a host. Products have 2 * 256^3 FLOPs per thread: each takes less than a millisecond, so
/// many finish before another program gets a core.
constexpr double kStays = 0.01, kMostSeconds = 0.05, kFaster = 0.99;
/// For a device. A product has to be long compared to a launch, which takes microseconds.
constexpr int64_t kDeviceSizes[] = {1024, 2048, 4096, 8192};
constexpr double kLongProduct = 1e-3;  // seconds
constexpr int kDeviceProducts = 4;

int64_t host_size() {
  return ceil_div(static_cast<int64_t>(256 * std::cbrt(max_threads())), 64) * 64;
}

/// Products of two matrices (size, size), one after another. Throws Error if memory has no room for
/// three of them.
class Products {
 public:
  Products(Backend& backend, Dtype activations, int64_t size) : backend_(backend), size_(size) {
    for (Tensor* t : {&x_, &w_, &y_}) arena_.add("matrix", t, activations, {size, size});
    arena_.commit(backend.memory());
    // Untouched memory would be a single page of zeros, read again and again.
    for (const Tensor& t : {x_, w_}) {
      HostCopy host(backend, t, HostCopy::Contents::undefined);
      for (int64_t c = 0; c < size; ++c) put(host.tensor(), c, static_cast<double>(c % 13 - 6));
      char* const rows = static_cast<char*>(host.tensor().data);
      const auto row = static_cast<size_t>(size) * size_of(activations);
      for (int64_t r = 1; r < size; ++r) {
        std::memcpy(rows + static_cast<size_t>(r) * row, rows, row);
      }
      host.upload();
    }
    seconds_of_one();  // prepares the product and wakes the threads
  }
  double flops() const { return 2.0 * static_cast<double>(size_ * size_ * size_); }
  double seconds_of_one() {
    const Clock::time_point start = Clock::now();
    backend_.linear_forward(y_, x_, w_, {});
    backend_.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  Backend& backend_;
  int64_t size_;
  Arena arena_;
  Tensor x_, w_, y_;  // (size, size) activations
};

double rate_of_host(Backend& backend, Dtype activations) {
  Products products(backend, activations, host_size());
  return products.flops() / fewest_seconds([&] { return products.seconds_of_one(); });
}

bool has_room(Backend& backend, Dtype activations, int64_t size) {
  try {
    backend.memory().check_fits(3 * size * size * static_cast<int64_t>(size_of(activations)));
  } catch (const Error&) {
    return false;
  }
  return true;
}

double rate_of_device(Backend& backend, Dtype activations) {
  double rate = 0;
  for (const int64_t size : kDeviceSizes) {
    if (rate > 0 && !has_room(backend, activations, size)) break;
    Products products(backend, activations, size);
    double best = products.seconds_of_one();
    for (int done = 1; done < kDeviceProducts; ++done) {
      best = std::min(best, products.seconds_of_one());
    }
    rate = std::max(rate, products.flops() / best);
    if (best >= kLongProduct) break;
  }
  return rate;
}

}  // namespace

double fewest_seconds(const std::function<double()>& seconds_of_one) {
  double fewest = seconds_of_one(), stays = fewest;
  for (double all = fewest, since = 0; since < kStays && all < kMostSeconds;) {
    const double seconds = seconds_of_one();
    fewest = std::min(fewest, seconds);
    all += seconds;
    since += seconds;
    if (seconds < kFaster * stays) {
      stays = seconds;
      since = 0;
    }
  }
  return fewest;
}

double measure_peak_matmul(Backend& backend, Dtype activations) {
  return backend.memory().on_host() ? rate_of_host(backend, activations)
                                    : rate_of_device(backend, activations);
}

}  // namespace bamtrain
