#pragma once
// Registered global memory, as the checker sees it.

#include <cstddef>

#include "engine/checker.h"

namespace bamtrain::engine {

struct GlobalBuffer {
  char* pages = nullptr;  // accessible
  size_t page_bytes = 0;
  char* data = nullptr;  // inside the pages, ending at their end up to alignment
  size_t bytes = 0;
  checker::Cell* cells = nullptr;  // one for kCellBytes of data; null until the checker runs
};

/// The buffer whose data, pages or guard pages contain `address`, or null.
GlobalBuffer* global_buffer_around(const void* address);

}  // namespace bamtrain::engine
