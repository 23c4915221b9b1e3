#pragma once
// The suite that one waits for runs a part of each large grid of cases, the long tests all of it
// (scripts/test.sh --long).

#include <cstddef>
#include <cstdlib>

namespace bamtrain::testing {

inline bool long_tests() {
  static const bool all = std::getenv("BAMTRAIN_LONG_TESTS") != nullptr;
  return all;
}

/// Whether place (row, column) of a grid is run: with the long tests every one, else one of `of` in
/// each row and each column, which together hold every row and every column.
inline bool is_run(size_t row, size_t column, size_t of) {
  return long_tests() || (row + column) % of == 0;
}

}  // namespace bamtrain::testing
