#pragma once

#include <cstdint>
#include <string>

namespace bamtrain {

/// "12,345,678".
inline std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

}  // namespace bamtrain
