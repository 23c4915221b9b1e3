#pragma once

#include <fmt/format.h>

#include <string>

namespace bamtrain {

/// Three digits and a unit: "7.25", "72.5", "725", "7.25k", "7.25M". REQUIRES: n >= 0.
inline std::string short_number(double n) {
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    if (n < 999.5) break;
    n /= 1000;
    unit = next;
  }
  return fmt::format("{:.{}f}{}", n, n < 9.995 ? 2 : n < 99.95 ? 1 : 0, unit);
}

}  // namespace bamtrain
