#pragma once
// Durable changes to files and folders. Each one either succeeds or throws Error (ExitCode::io)
// with the path, the operating system's reason and the remedy.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/sha256.h"

namespace bamtrain {

/// The operations that durability rests on. `write` is one write(2) call; `create_unnamed` and
/// `link` begin and end the life of an unnamed file, see AtomicFile.
enum class FileOp {
  make_folder,
  create,
  open,
  create_unnamed,
  link,
  write,
  sync,
  sync_folder,
  rename,
  exchange,
  remove
};

/// Called before each operation with its path and, only for link, rename and exchange, the new
/// path. A nonzero errno value makes the operation fail with it, without being attempted. Used by
/// tests, which also kill the process in it. Not thread-safe. Null, the default, disables it.
using FileFault = int (*)(FileOp op, const std::string& path, const std::string& target);
void set_file_fault(FileFault fault);

/// The hook's result for an operation implemented elsewhere: 0, or the errno value to fail with.
int file_fault(FileOp op, const std::string& path, const std::string& target = {});

/// What was written to a file.
struct FileDigest {
  int64_t bytes = 0;
  std::string sha256;
};

/// A new file, hashed while it is written. The destructor removes it unless `finish` has returned,
/// so no half-written file outlives an Error.
class DurableFile {
 public:
  /// Creates the file, or truncates an existing one.
  explicit DurableFile(const std::string& path);
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  ~DurableFile();

  /// Appends `bytes` bytes at `data`.
  void write(const void* data, int64_t bytes);
  /// Appends zeros, which take no space and are not hashed, up to a length of `bytes`.
  void extend(int64_t bytes);
  /// Syncs the file to disk and closes it. The folder's entry for a new file is durable only after
  /// `sync_folder`.
  FileDigest finish();

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  Sha256 digest_;
};

/// Bytes of a file that exists, of whose others other processes may write at the same time. They
/// lie before the file's end: past it, NFS writes whole pages, over what others have there.
class PartOfFile {
 public:
  explicit PartOfFile(const std::string& path);
  PartOfFile(const PartOfFile&) = delete;
  PartOfFile& operator=(const PartOfFile&) = delete;
  ~PartOfFile();

  /// Writes `bytes` bytes at `data` from byte `offset` of the file on.
  void write(int64_t offset, const void* data, int64_t bytes);
  /// Syncs the file to disk and closes it.
  void finish();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// A file that appears under its name complete and on disk, or not at all. Until `commit`, its
/// bytes are in an unnamed file in the same folder. On file systems without unnamed files (such as
/// NFS), and briefly in `commit` everywhere, they are in `path`.tmp-XXXXYYYY. The destructor
/// removes that file. A killed process leaves it, and the next AtomicFile of this path removes it.
/// A file is a leftover only if the letters in its name match and no writer holds its lock
/// (flock(2)); no other file is ever touched.
class AtomicFile {
 public:
  /// Throws Error (ExitCode::io) if `path` exists and is not a regular file, or if its folder is
  /// missing or not writable. An existing regular file stays unchanged until `commit` replaces it.
  /// If `path` is a symbolic link, its target is replaced.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Where the file will be: the given path with its symbolic links followed.
  const std::string& path() const { return path_; }

  /// Appends.
  void write(const void* data, int64_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), static_cast<int64_t>(bytes.size())); }
  /// Replaces bytes at the start. REQUIRES: at least `bytes` bytes were written; `write` is not
  /// called again.
  void rewrite_start(const void* data, int64_t bytes);
  /// SHA-256 of everything written so far, read back: 64 lower-case hex digits.
  std::string sha256() const;
  /// Syncs everything to disk under the name `path`. The file has the default permissions of a new
  /// file. REQUIRES: called once; no other call follows.
  void commit();

 private:
  void create_named();

  std::string path_;
  std::string temporary_;  // the file's name until commit; empty while unnamed
  int descriptor_ = -1;
  int lock_ = -1;  // a second descriptor of the file, open until commit ends
};

/// Whether `name` is a temporary name of an AtomicFile whose own name, without its folder, is
/// `file`.
bool is_temporary_of(const std::string& name, const std::string& file);

void make_folder(const std::string& path);
/// Creates the folder and its missing parents, and syncs each to disk. Existing folders are not an
/// error.
void make_folders(const std::string& path);
/// Throws Error if make_folders(path), or a file in that folder, would fail for a reason that is
/// already visible: a file in the way, permissions. Changes nothing.
void require_folders_can_be_made(const std::string& path);
/// Creates a new folder `prefix`XXXX, where XXXX are letters and digits that make the name unique.
/// Returns its path.
std::string make_new_folder(const std::string& prefix);
/// Syncs a folder's entries to disk: files created in it, renames into and out of it.
void sync_folder(const std::string& path);
/// REQUIRES: `to` does not exist, or is an empty folder where `from` is a folder.
void rename_path(const std::string& from, const std::string& to);
/// Exchanges `a` and `b`, which must both exist, atomically. Returns false, with nothing changed,
/// on file systems that cannot do that.
bool exchange_paths(const std::string& a, const std::string& b);
/// Removes a file, or a folder with its content; does not follow links. A missing path is no error.
void remove_tree(const std::string& path);

/// Returns `path` with its final symbolic links followed; the target may be missing. Links in its
/// parent path stay. Throws Error (ExitCode::io) if links form a cycle.
std::string without_links(const std::string& path);

/// Whether `path` leads to the file that is open as `descriptor`; false if it cannot be examined.
/// Allocates no memory.
bool is_file_at(const std::string& path, int descriptor);

/// The folder that contains `path`: "." for a bare name.
std::string parent_folder(const std::string& path);

}  // namespace bamtrain
