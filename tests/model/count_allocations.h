#pragma once
// Counts the calls of operator new in all threads. Linking the library of count_allocations.cpp
// replaces the standard operator new of a test program.

#include <cstdint>

namespace bamtrain::testing {

int64_t allocations();

}  // namespace bamtrain::testing
