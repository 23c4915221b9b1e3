#pragma once
// Every task, once: the registry and the sources that meson.build compiles come from this list.

#include "tasks/task.h"

/// X(name): `name`_task() declares it, in a file of its name. ASEntmax's, then the Chomsky
/// benchmark's.
#define BAMTRAIN_TASKS(X)      \
  X(mqmtar)                    \
  X(copy)                      \
  X(reverse)                   \
  X(sort)                      \
  X(two_back)                  \
  X(local_count)               \
  X(flip_flop)                 \
  X(max_retrieval)             \
  X(even_pairs)                \
  X(modular_arithmetic_simple) \
  X(parity_check)              \
  X(cycle_navigation)          \
  X(stack_manipulation)        \
  X(reverse_string)            \
  X(modular_arithmetic)        \
  X(solve_equation)            \
  X(duplicate_string)          \
  X(missing_duplicate)         \
  X(odds_first)                \
  X(binary_addition)           \
  X(binary_multiplication)     \
  X(compute_sqrt)              \
  X(bucket_sort)

namespace bamtrain {

#define BAMTRAIN_ENTRY(name) TaskInfo name##_task();
BAMTRAIN_TASKS(BAMTRAIN_ENTRY)
#undef BAMTRAIN_ENTRY

}  // namespace bamtrain
