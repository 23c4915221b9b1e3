#pragma once
// Recognizes inputs that are not plain text by their first bytes.

#include <cstddef>
#include <string>
#include <string_view>

namespace bamtrain {

/// Number of first bytes needed to recognize a format.
inline constexpr size_t kBinaryStart = 16;

/// Throws Error (ExitCode::data) if `start`, the first kBinaryStart bytes of `path` or all of it,
/// begins a known binary format that is not read directly (as zstd, xz and gzip are). The error
/// names the format; its remedy is a command that converts it to text.
void refuse_binary(const std::string& path, std::string_view start);

/// Whether `start` begins zstd. A skippable frame (RFC 8878, section 3.1.2), with which pzstd
/// begins, may also be lz4's: it counts as zstd in a .zst file and on standard input.
bool begins_zstd(const std::string& path, std::string_view start);

}  // namespace bamtrain
