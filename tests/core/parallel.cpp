#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("every piece runs once") {
  std::vector<int> seen(1003, 0);
  parallel_ranges(1003, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (int n : seen) REQUIRE(n == 1);
  parallel_for(0, [](int64_t) { throw std::logic_error("no piece to run"); });
}

TEST_CASE("an exception in a piece reaches the caller") {
  REQUIRE_THROWS_AS(parallel_for(8,
                                 [](int64_t i) {
                                   if (i == 5) throw std::runtime_error("piece 5");
                                 }),
                    std::runtime_error);
}

TEST_CASE("slots are few, and no two pieces share one at once") {
  for (int64_t n : {1, 2, 3, 100}) {
    const int64_t slots = std::min<int64_t>(n, max_threads());
    std::vector<std::atomic<int>> users(static_cast<size_t>(slots));
    std::atomic<int64_t> wrong{0}, pieces{0};
    parallel_for_slots(n, [&](int64_t, int64_t slot) {
      ++pieces;
      if (slot < 0 || slot >= slots) {
        ++wrong;
        return;
      }
      std::atomic<int>& user = users[static_cast<size_t>(slot)];
      if (user.fetch_add(1) != 0) ++wrong;
      for (int again = 0; again < 1000; ++again) wrong += user.load() != 1;
      user.fetch_sub(1);
    });
    CHECK(pieces == n);
    CHECK(wrong == 0);
  }
}

TEST_CASE("of stretches every piece runs once, those of a thread that waits by the others") {
  const int before = max_threads();
  for (const int threads : {1, 2, 3, 7, 70}) {
    omp_set_num_threads(threads);
    for (const int64_t n : {0, 1, 2, 5, 64, 1003}) {
      INFO(n << " pieces, " << threads << " threads");
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      std::atomic<int64_t> others{0};
      parallel_work_stealing(n, [&](int64_t i) {
        ++seen[static_cast<size_t>(i)];
        if (i > 0) ++others;
        while (omp_get_num_threads() > 1 && i == 0 && others < n - 1) std::this_thread::yield();
      });
      CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times == 1; }));
    }
  }
  omp_set_num_threads(2);
  CHECK_THROWS_AS(parallel_work_stealing(8,
                                         [](int64_t i) {
                                           if (i == 5) throw std::runtime_error("piece 5");
                                         }),
                  std::runtime_error);
  omp_set_num_threads(before);
}
