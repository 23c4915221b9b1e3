#pragma once
// Folders, bytes and errors, for tests of src/data and others. Shards are built here byte by byte,
// without code of src/data.

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.h"
#include "core/error.h"

namespace bamtrain::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "bamtrain-data-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// The number of entries in the folder, so that a test sees leftovers.
  int64_t entries() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

 private:
  std::string path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  REQUIRE(out);
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// `value` as `width` little-endian bytes.
inline std::string little_endian(uint32_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// A file in llm.c's layout, with any header fields.
inline std::string shard_bytes(int32_t magic, int32_t version, int32_t count, int width,
                               const std::vector<uint32_t>& tokens) {
  std::string bytes = little_endian(static_cast<uint32_t>(magic), 4) +
                      little_endian(static_cast<uint32_t>(version), 4) +
                      little_endian(static_cast<uint32_t>(count), 4) + std::string(253 * 4, '\0');
  for (uint32_t t : tokens) bytes += little_endian(t, width);
  return bytes;
}

/// A valid shard of uint16 tokens.
inline std::string shard_bytes(const std::vector<uint32_t>& tokens) {
  return shard_bytes(20240520, 1, static_cast<int32_t>(tokens.size()), 2, tokens);
}

/// Writes valid shards a.bin, b.bin, ... with these tokens.
inline void write_shards(const TemporaryFolder& folder,
                         const std::vector<std::vector<uint32_t>>& shards) {
  for (size_t i = 0; i < shards.size(); ++i) {
    write_bytes(folder.file(std::string(1, static_cast<char>('a' + i)) + ".bin"),
                shard_bytes(shards[i]));
  }
}

/// `count` numbers: first, first + 1, ...
inline std::vector<uint32_t> counting(uint32_t first, size_t count) {
  std::vector<uint32_t> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = first + static_cast<uint32_t>(i);
  return v;
}

/// The message of the Error that `f` throws; "" if it throws none. Checks the Error's code.
template <class F>
std::string error_or_none(ExitCode code, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(static_cast<int>(e.code()) == static_cast<int>(code));
    return e.what();
  }
  return "";
}

/// The message of the Error that `f` throws. Fails if it throws none; checks the Error's code.
template <class F>
std::string error_of(ExitCode code, F&& f) {
  const std::string message = error_or_none(code, f);
  if (message.empty()) FAIL("an Error was expected");
  return message;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Calls `read` with the path of a file that has these bytes. Returns the message of the Error that
/// it throws, which must name the file and a remedy.
template <class F>
std::string file_refusal(const std::string& name, const std::string& bytes, F&& read) {
  const TemporaryFolder folder;
  const std::string path = folder.file(name);
  write_bytes(path, bytes);
  const std::string message = error_of(ExitCode::data, [&] { read(path); });
  CHECK(contains(message, path));
  CHECK(contains(message, "; "));
  return message;
}

}  // namespace bamtrain::testing
