#pragma once
// What fuzz targets share. A target gives bytes of any kind to readers of the program, which take
// them or refuse them with an Error; whatever else happens ends the process: another exception, a
// broken contract, a signal, a sanitizer's report. scripts/fuzz.sh runs the targets with libFuzzer,
// replay.cpp in the tests.

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

/// How many times something was taken, in this process.
inline int64_t g_accepted = 0;

/// Whether `f` takes what it is given; false: it refuses it.
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

/// Of an input, whose first byte is for the target to choose by.
struct Input {
  char kind = 0;
  std::string rest;

  Input(const uint8_t* data, size_t size) {
    if (size == 0) return;
    kind = static_cast<char>(data[0]);
    rest.assign(data + 1, data + size);
  }
};

/// A folder of this process, removed at its end.
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
  /// Puts a file there, in place of the one of that name. Returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::string path = path_ + "/" + name;
    remove(name);  // some file systems put what is cut off and written anew on the disk at once
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
