#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace bamtrain::bench {

/// Accepts sizes and counts of one or more.
inline CLI::Range positive() { return {int64_t{1}, int64_t{1} << 40}; }

}  // namespace bamtrain::bench
