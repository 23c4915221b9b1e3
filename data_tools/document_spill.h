#pragma once
// Documents that wait on the disk for their place.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/resumable_file.h"

namespace bamtrain {

/// A file of documents, each with a number that tells its place. It is bamdata's own and is gone
/// when its output is complete; nothing but the bamdata that wrote it reads it. Errors: as
/// ResumableFile.
class DocumentSpill {
 public:
  struct Record {
    uint64_t number = 0;
    int64_t offset = 0;  // of its tokens in the file
    int64_t length = 0;  // tokens
  };

  /// The first `keep` bytes of the file are the beginning. REQUIRES: `keep` was returned by sync();
  /// width 2 or 4, bytes of a token.
  DocumentSpill(const std::string& path, int width, int64_t keep);

  Record append(uint64_t number, std::span<const int32_t> tokens);
  /// Calls f for each document, in the order in which they came.
  void for_each(const std::function<void(const Record&)>& f);
  /// Its tokens, in place of what `tokens` held.
  void read(const Record& record, std::vector<int32_t>* tokens);
  /// Puts all on the disk; how many bytes that are. The folder's entry only sync_folder does.
  int64_t sync();

 private:
  void flush();

  ResumableFile file_;
  int width_;
  std::vector<std::byte> buffer_;  // appended, not yet written
};

}  // namespace bamtrain
