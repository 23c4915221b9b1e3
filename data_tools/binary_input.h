#pragma once
// Inputs that hold no plain text, told by their first bytes.

#include <cstddef>
#include <string>
#include <string_view>

namespace bamtrain {

/// So many first bytes of an input tell.
inline constexpr size_t kBinaryStart = 16;

/// Error (ExitCode::data) where `start`, the first kBinaryStart bytes of `path` or all of it,
/// begins a file of a known format that is neither text nor read as it is (zstd, xz, gzip). It says
/// what it is; its remedy is a command that makes text of it.
void refuse_binary(const std::string& path, std::string_view start);

/// Whether `start` begins zstd. A skippable frame (RFC 8878, section 3.1.2), with which pzstd
/// begins, may be lz4's as well: it is zstd in a file in .zst and on standard input.
bool begins_zstd(const std::string& path, std::string_view start);

}  // namespace bamtrain
