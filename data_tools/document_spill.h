#pragma once
// Documents stored on disk until they are placed.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/resumable_file.h"

namespace bamtrain {

/// A file of documents, each with a number that determines its place. A private temporary format:
/// only the writing bamdata reads it, and it is removed when the output is complete. Errors: as
/// ResumableFile.
class DocumentSpill {
 public:
  struct Record {
    uint64_t number = 0;
    int64_t offset = 0;  // offset of its tokens in the file
    int64_t length = 0;  // tokens
  };

  /// Keeps the first `keep` bytes of the file and appends. REQUIRES: `keep` was returned by sync();
  /// width 2 or 4, bytes per token.
  DocumentSpill(const std::string& path, int width, int64_t keep);

  Record append(uint64_t number, std::span<const int32_t> tokens);
  /// Calls f for each document, in the order of appending.
  void for_each(const std::function<void(const Record&)>& f);
  /// Reads the document's tokens; overwrites `tokens`.
  void read(const Record& record, std::vector<int32_t>* tokens);
  /// Flushes everything to disk and returns the file's size in bytes. The folder entry is durable
  /// only after sync_folder.
  int64_t sync();

 private:
  void flush();

  ResumableFile file_;
  int width_;
  std::vector<std::byte> buffer_;  // appended, not yet written
};

}  // namespace bamtrain
