#pragma once
// The default test suite runs part of each large grid of cases; the long tests run all of it
// (scripts/test.sh --long).

#include <cstddef>
#include <cstdlib>

namespace bamtrain::testing {

inline bool long_tests() {
  static const bool all = std::getenv("BAMTRAIN_LONG_TESTS") != nullptr;
  return all;
}

/// Whether to run place (row, column) of a grid. Long tests run every place. Otherwise runs one in
/// `of` of each row and each column, so that every row and every column is covered.
inline bool is_run(size_t row, size_t column, size_t of) {
  return long_tests() || (row + column) % of == 0;
}

}  // namespace bamtrain::testing
