#pragma once
// Threads. Work is cut into pieces whose number and content never depend on the number of threads,
// so that results do not either.

#include <omp.h>

#include <cstdint>
#include <exception>

namespace bamtrain {

inline int max_threads() { return omp_get_max_threads(); }
inline int thread_index() { return omp_get_thread_num(); }

/// f(i) for i in [0, n), in any order, on all threads. The first exception of any piece is rethrown
/// on the caller's thread after the loop.
template <class F>
void parallel_for(int64_t n, F&& f) {
  if (n <= 0) return;
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1) if (n > 1)
  for (int64_t i = 0; i < n; ++i) {
    try {
      f(i);
    } catch (...) {
#pragma omp critical(bamtrain_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// f(begin, end) over [0, n) in pieces of `grain` elements.
template <class F>
void parallel_ranges(int64_t n, int64_t grain, F&& f) {
  parallel_for((n + grain - 1) / grain, [&](int64_t piece) {
    const int64_t begin = piece * grain;
    f(begin, begin + grain < n ? begin + grain : n);
  });
}

}  // namespace bamtrain
