#pragma once
// Shared code of the fuzz targets. A target passes arbitrary bytes to readers of the program, which
// accept them or throw Error. Anything else ends the process: another exception, a violated
// contract, a signal, a sanitizer's report. scripts/fuzz.sh runs the targets with libFuzzer; the
// tests run them with replay.cpp.

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace bamtrain::fuzz {

/// How many inputs this process has accepted.
inline int64_t g_accepted = 0;

/// Whether `f` accepts its input; false if it throws Error.
template <class F>
bool accepts(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.code() == ExitCode::internal) throw;
    return false;
  }
  ++g_accepted;
  return true;
}

/// An input, split into its first byte, by which the target chooses, and the rest.
struct Input {
  char kind = 0;
  std::string rest;

  Input(const uint8_t* data, size_t size) {
    if (size == 0) return;
    kind = static_cast<char>(data[0]);
    rest.assign(data + 1, data + size);
  }
};

/// A temporary folder of this process, removed at exit.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "bamtrain-fuzz-XXXXXX").string();
    require(::mkdtemp(path_.data()) != nullptr, "a temporary folder");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  /// Writes a file, replacing one of the same name. Returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = path_ + "/" + name;
    remove(name);  // some file systems sync a truncated and rewritten file at once
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    require(out.good(), "room for an input");
    return path;
  }
  void remove(const std::string& name) const { std::filesystem::remove(path_ + "/" + name); }

 private:
  std::string path_;
};

}  // namespace bamtrain::fuzz
