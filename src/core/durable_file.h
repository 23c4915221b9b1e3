#pragma once
// Durable changes to files and folders: each either happened or is an Error (ExitCode::io) naming
// the path, the operating system's reason and the remedy.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/sha256.h"

namespace bamtrain {

/// The operations on which durability rests. `write` is one write(2) call; `create_unnamed` and
/// `link` are the two ends of a file without a name, see AtomicFile.
enum class FileOp {
  make_folder,
  create,
  create_unnamed,
  link,
  write,
  sync,
  sync_folder,
  rename,
  exchange,
  remove
};

/// Called before each operation with its path and, for link, rename and exchange only, the new
/// path. A non-zero errno value makes the operation fail with it, without being attempted. For
/// tests, which also end the process in it; not thread-safe. Null, the default, for none.
using FileFault = int (*)(FileOp op, const std::string& path, const std::string& target);
void set_file_fault(FileFault fault);

/// What that says of an operation about to be done elsewhere: 0, or the errno value it fails with.
int file_fault(FileOp op, const std::string& path, const std::string& target = {});

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

/// A file that appears under its name complete and on the disk, or not at all. Until `commit` its
/// bytes lie in the same folder in a file without a name. On file systems that have no such files
/// (NFS is one), and for a moment in `commit` everywhere, they lie in `path`.tmp-XXXXYYYY, which
/// destruction removes and a process that is killed leaves: the next AtomicFile of this path
/// removes it. Which names are leftovers follows from their letters and from the lock (flock(2))
/// that whoever writes such a file holds; no other file is ever touched.
class AtomicFile {
 public:
  /// Error (ExitCode::io) where `path` is there and is no regular file, or its folder is not there
  /// or not writable. A regular file of this name stays as it is until `commit` replaces it; of a
  /// symbolic link that is the file it leads to.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Where the file will be: the path given, its symbolic links followed.
  const std::string& path() const { return path_; }

  /// Appends.
  void write(const void* data, int64_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), static_cast<int64_t>(bytes.size())); }
  /// Replaces bytes at the start. REQUIRES: so many were written before; `write` is not called
  /// again.
  void rewrite_start(const void* data, int64_t bytes);
  /// SHA-256 of all that is written so far, read back: 64 lower-case digits.
  std::string sha256() const;
  /// Puts everything on the disk under the name `path`. The access rights are those of any new
  /// file. REQUIRES: called once, and nothing after it.
  void commit();

 private:
  void create_named();

  std::string path_;
  std::string temporary_;  // its name until commit; empty while it has none
  int descriptor_ = -1;
  int lock_ = -1;  // the same file, open until commit has ended
};

/// Whether `name` is one of those under which the bytes of an AtomicFile lie whose own name,
/// without its folder, is `file`.
bool is_temporary_of(const std::string& name, const std::string& file);

void make_folder(const std::string& path);
/// Makes the folder and those above it that are missing, each on the disk when it is done. There
/// already: no error.
void make_folders(const std::string& path);
/// Error where make_folders(path), and a file in that folder, would fail for what shows already: a
/// file in the way, permissions. Changes nothing.
void require_folders_can_be_made(const std::string& path);
/// A new folder `prefix`XXXX, four letters and digits that make the name free; its path.
std::string make_new_folder(const std::string& prefix);
/// Puts a folder's entries on the disk: files created in it, renames into and out of it.
void sync_folder(const std::string& path);
/// REQUIRES: `to` does not exist, or is an empty folder where `from` is a folder.
void rename_path(const std::string& from, const std::string& to);
/// `a` and `b`, which both exist, take each other's place in one step; false, and nothing happened,
/// on file systems that cannot do that.
bool exchange_paths(const std::string& a, const std::string& b);
/// Removes a file, or a folder with what is in it; links are not followed. Nothing there: no error.
void remove_tree(const std::string& path);

/// Where `path` leads through symbolic links; nothing need be there. Links in its folder's own path
/// stay. Error (ExitCode::io) where links go round in a circle.
std::string without_links(const std::string& path);

/// Whether `path` leads to the file that is open as `descriptor`; false where it cannot be looked
/// at. Takes no memory.
bool is_file_at(const std::string& path, int descriptor);

/// The folder in which `path` is an entry: "." for a bare name.
std::string parent_folder(const std::string& path);

}  // namespace bamtrain
