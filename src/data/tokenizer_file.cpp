#include "data/tokenizer_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/sha256.h"
#include "data/tokenizer.h"

namespace bamtrain {

namespace fs = std::filesystem;

TokenizerFile::TokenizerFile(const std::string& path, std::string sha256)
    : name_(fs::path(path).filename().string()),
      sha256_(std::move(sha256)),
      bytes_(InputFile(path, ExitCode::io, "check the path").text(Tokenizer::kMostBytes)) {
  if (const std::string found = sha256_hex(bytes_); found != sha256_) {
    throw Error(ExitCode::data, path, "the tokenizer with SHA-256 " + sha256_, found,
                "restore the file that made the shards");
  }
}

void TokenizerFile::write(const std::string& folder, const std::string& prefix) const {
  const std::string path = (fs::path(folder) / (prefix + name_)).string();
  std::error_code ignored;  // AtomicFile reports the reason
  if (fs::is_regular_file(path, ignored)) {
    const std::string found = sha256_file(path);
    if (found == sha256_) return;
    throw Error(ExitCode::io, path, "no such file, or the tokenizer with SHA-256 " + sha256_,
                "another file, SHA-256 " + found, "move it elsewhere");
  }
  AtomicFile file(path);
  file.write(bytes_);
  file.commit();
}

}  // namespace bamtrain
