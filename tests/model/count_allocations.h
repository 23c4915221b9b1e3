#pragma once
// Counts the calls of operator new, of all threads. A test program that links the library of
// count_allocations.cpp has it in the place of the standard one.

#include <cstdint>

namespace bamtrain::testing {

int64_t allocations();

}  // namespace bamtrain::testing
