#include "data_tools/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "data_tools/binary_input.h"

namespace bamtrain {
namespace {

void refuse_binary_file(const std::string& path) {
  std::array<char, kBinaryStart> start;
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  refuse_binary(path, std::string_view(start.data(), static_cast<size_t>(file.gcount())));
}

}  // namespace

Inputs::Inputs(InputOptions options) : options_(std::move(options)) {
  const auto& paths = options_.paths;
  require(!paths.empty(), "at least one input");
  if (std::count(paths.begin(), paths.end(), kStandardInput) > 1) {
    throw Error(ExitCode::usage, "inputs", "standard input once", "\"-\" more than once",
                "name it once");
  }
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const std::string& path : paths) {
    struct stat status = {};
    const bool there = path == kStandardInput || ::stat(path.c_str(), &status) == 0;
    if (there && S_ISREG(status.st_mode)) {
      refuse_binary_file(path);
      const auto [first, is_new] = seen.emplace(std::pair(status.st_dev, status.st_ino), path);
      if (!is_new) {
        throw Error(ExitCode::usage, path, "each input once",
                    "the file of " + first->second + " again", "name it once");
      }
    }
    kinds_.push_back(document_kind_of(path, options_.format, options_.kind));
    if (!there || S_ISDIR(status.st_mode)) {
      throw Error(ExitCode::io, path, "a readable text file",
                  there ? "a folder" : std::strerror(errno), "check the path");
    }
    const std::optional<int64_t> bytes = file_bytes(path);
    if (bytes && total_bytes_) {
      *total_bytes_ += *bytes;
    } else {
      total_bytes_.reset();
    }
  }
}

bool Inputs::next(RawDocument* document) {
  while (true) {
    if (!reader_) reader_.emplace(path(), kind(), options_.max_document_bytes);
    if (reader_->next(document)) return true;
    if (std::string warning = reader_->warning(); !warning.empty()) {
      warnings_.push_back(std::move(warning));
    }
    if (current_ + 1 == options_.paths.size()) return false;
    taken_before_ += reader_->taken();
    reader_.reset();
    ++current_;
  }
}

int64_t Inputs::taken() const { return taken_before_ + (reader_ ? reader_->taken() : 0); }

}  // namespace bamtrain
