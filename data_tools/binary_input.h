#pragma once
// Inputs that hold no plain text, told by their first bytes.

#include <cstddef>
#include <string>
#include <string_view>

namespace bamtrain {

/// So many first bytes of an input tell.
inline constexpr size_t kBinaryStart = 10;

/// Error (ExitCode::data) where `start`, the first kBinaryStart bytes of `path` or all of it,
/// begins a file of a known format that is neither text nor read as it is (zstd, xz). It says what
/// it is; its remedy is a command that makes text of it.
void refuse_binary(const std::string& path, std::string_view start);

}  // namespace bamtrain
