#pragma once
// Threads. Work is split so that results never depend on the number of threads: either the split
// itself does not, or every result is summed in the same order for any split.

#include <omp.h>

#include <atomic>
#include <cstdint>
#include <exception>

namespace bamtrain {

inline int max_threads() { return omp_get_max_threads(); }
inline int thread_index() { return omp_get_thread_num(); }

/// Starts the threads of parallel loops, once; the functions below call it first. Throws
/// std::system_error if the system refuses a thread. The OpenMP runtime would instead end the
/// process with exit code 1.
void start_threads();

/// Calls f(i, slot) for i in [0, n), in any order, on all threads. `slot` indexes scratch memory:
/// it is below min(n, max_threads()), and concurrent calls never share one. If n >= max_threads(),
/// it is the index of the thread. The first exception is rethrown on the caller's thread after the
/// loop.
template <class F>
void parallel_for_slots(int64_t n, F&& f) {
  if (n <= 0) return;
  if (n > 1) start_threads();
  std::exception_ptr failure;
  const bool one_per_thread = n >= max_threads();
  std::atomic<int64_t> taken{0};
  int64_t slot = -1;
#pragma omp parallel for schedule(dynamic, 1) firstprivate(slot) if (n > 1)
  for (int64_t i = 0; i < n; ++i) {
    if (slot < 0) slot = one_per_thread ? thread_index() : taken.fetch_add(1);
    try {
      f(i, slot);
    } catch (...) {
#pragma omp critical(bamtrain_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// Calls f(i) for i in [0, n), likewise.
template <class F>
void parallel_for(int64_t n, F&& f) {
  parallel_for_slots(n, [&f](int64_t i, int64_t) { f(i); });
}

/// Calls f(i) for i in [0, n): each thread processes a contiguous range, then steals from the
/// others. For memory that is read once, where interleaved access is slower.
template <class F>
void parallel_work_stealing(int64_t n, F&& f) {
  constexpr int64_t kMost = 64;
  struct alignas(64) Stretch {
    std::atomic<int64_t> taken{0};
  };
  const int64_t count = max_threads() < kMost ? max_threads() : kMost;
  Stretch stretches[kMost];
  parallel_for(count, [&](int64_t own) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t s = (own + k) % count, begin = s * n / count, end = (s + 1) * n / count;
      for (int64_t i; (i = begin + stretches[s].taken.fetch_add(1)) < end;) f(i);
    }
  });
}

/// Calls f(begin, end) over [0, n) in ranges of `grain` elements.
template <class F>
void parallel_ranges(int64_t n, int64_t grain, F&& f) {
  parallel_for((n + grain - 1) / grain, [&](int64_t piece) {
    const int64_t begin = piece * grain;
    f(begin, begin + grain < n ? begin + grain : n);
  });
}

}  // namespace bamtrain
