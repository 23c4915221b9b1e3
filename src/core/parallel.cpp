#include "core/parallel.h"

#include <sched.h>
#include <sys/stat.h>

#include <latch>
#include <thread>
#include <vector>

namespace bamtrain {

namespace {

/// The number of this process's threads; 0 if the system does not report it.
int64_t living_threads() {
  struct stat tasks = {};
  return ::stat("/proc/self/task", &tasks) == 0 ? static_cast<int64_t>(tasks.st_nlink) - 2 : 0;
}

bool start_once() {
  const int count = max_threads() - 1;
  const int64_t before = living_threads();
  std::latch all_tried(1);
  {
    std::vector<std::jthread> threads;
    // Declared after the threads, so it releases them before they are joined, also on an exception.
    struct Release {
      std::latch& latch;
      ~Release() { latch.count_down(); }
    } release{all_tried};
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads.emplace_back([&all_tried] { all_tried.wait(); });
  }
  // A joined thread counts against the limit until the system has cleaned it up.
  constexpr int kMostYields = 100'000;
  for (int i = 0; i < kMostYields && living_threads() > before; ++i) ::sched_yield();
#pragma omp parallel
  {}
  return true;
}

}  // namespace

void start_threads() { [[maybe_unused]] static const bool started = start_once(); }

}  // namespace bamtrain
