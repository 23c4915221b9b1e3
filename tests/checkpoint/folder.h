#pragma once
// Files and folders of the tests.

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace bamtrain {

/// A fresh empty folder, removed with its content at the end. It is in memory where the system has
/// such a place, as some tests sync tens of thousands of files.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    for (const char* place : {"/dev/shm", "/tmp"}) {
      path_ = std::string(place) + "/bamtrain-checkpoint-XXXXXX";
      if (::mkdtemp(path_.data())) return;
    }
    require(false, "a place for temporary files");
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.is_open(), "a file of the test");
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  require(file.good(), "a file of the test to be written");
}

/// Names in `folder`, including hidden ones.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The message of the bamtrain::Error that `f` throws; "" if it throws none or one with another
/// code.
template <class F>
std::string error_of(ExitCode code, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() == code ? e.what() : "";
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace bamtrain
