#pragma once
// Durable changes to files and folders: each either happened or is an Error (ExitCode::io) naming
// the path, the operating system's reason and the remedy.

#include <cstdint>
#include <string>

#include "core/sha256.h"

namespace bamtrain {

/// The operations on which durability rests. `write` is one write(2) call.
enum class FileOp { make_folder, create, write, sync, sync_folder, rename, remove };

/// Called before each operation with its path and, for rename only, the new path. A non-zero errno
/// value makes the operation fail with it, without being attempted. For tests, which also end the
/// process in it; not thread-safe. Null, the default, for none.
using FileFault = int (*)(FileOp op, const std::string& path, const std::string& target);
void set_file_fault(FileFault fault);

/// What was written to a file.
struct FileDigest {
  int64_t bytes = 0;
  std::string sha256;
};

/// A new file, digested while it is written. Unless `finish` has returned, destruction removes it:
/// no half-written file outlives an Error.
class DurableFile {
 public:
  /// Creates the file, or empties the one that is there.
  explicit DurableFile(const std::string& path);
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  ~DurableFile();

  /// Appends `bytes` bytes at `data`.
  void write(const void* data, int64_t bytes);
  /// Puts everything on the disk and closes the file. The folder's entry for a new file is durable
  /// only after `sync_folder`.
  FileDigest finish();

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  Sha256 digest_;
};

void make_folder(const std::string& path);
/// Puts a folder's entries on the disk: files created in it, renames into and out of it.
void sync_folder(const std::string& path);
/// REQUIRES: `to` does not exist.
void rename_path(const std::string& from, const std::string& to);
/// Removes a file, or a folder with what is in it; links are not followed. Nothing there: no error.
void remove_tree(const std::string& path);

}  // namespace bamtrain
