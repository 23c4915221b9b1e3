#include "train/matrix_rate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/arena.h"
#include "core/checked.h"
#include "core/element.h"
#include "core/parallel.h"
#include "ops/host_copy.h"

namespace bamtrain {

namespace {

using Clock = std::chrono::steady_clock;

/// How much is measured.
struct Effort {
  int64_t size;             // rows and columns of the matrices
  int least;                // products, however long they take
  Clock::duration at_most;  // beyond those, no product begins later
};

/// A device is fed from afar: a product has to be large beside a launch. On a host one of 2 256^3
/// FLOPs per thread takes less than a millisecond: many end before another program gets a core.
Effort effort_on(Backend& backend) {
  if (!backend.memory().on_host()) return {8192, 4, Clock::duration::zero()};
  const auto size = static_cast<int64_t>(256 * std::cbrt(max_threads()));
  return {ceil_div(size, 64) * 64, 1, std::chrono::milliseconds(50)};
}

}  // namespace

double measure_matrix_rate(Backend& backend, Dtype activations) {
  const Effort effort = effort_on(backend);
  const int64_t size = effort.size;
  const auto flops = 2.0 * static_cast<double>(size * size * size);
  Arena arena;
  Tensor x, w, y;  // (size, size) activations
  arena.add("x", &x, activations, {size, size});
  arena.add("w", &w, activations, {size, size});
  arena.add("y", &y, activations, {size, size});
  arena.commit(backend.memory());
  // Untouched memory would be one page of zeros, read over and over.
  for (const Tensor& t : {x, w}) {
    HostCopy host(backend, t, HostCopy::Contents::undefined);
    for (int64_t c = 0; c < size; ++c) put(host.tensor(), c, static_cast<double>(c % 13 - 6));
    char* const rows = static_cast<char*>(host.tensor().data);
    const auto row = static_cast<size_t>(size) * size_of(activations);
    for (int64_t r = 1; r < size; ++r) std::memcpy(rows + static_cast<size_t>(r) * row, rows, row);
    host.upload();
  }
  const auto seconds_of_one = [&] {
    const Clock::time_point start = Clock::now();
    backend.linear_forward(y, x, w, {});
    backend.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Clock::time_point end = Clock::now() + effort.at_most;
  seconds_of_one();  // prepares the product, and wakes the threads
  double best = seconds_of_one();
  for (int done = 1; done < effort.least || Clock::now() < end; ++done) {
    best = std::min(best, seconds_of_one());
  }
  return flops / best;
}

}  // namespace bamtrain
