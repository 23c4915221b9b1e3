#include "core/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/faults.h"

namespace bamtrain {
namespace {

// Small enough to hash while still in the cache, and below the 2 GiB limit of one write(2).
constexpr int64_t kWriteBytes = int64_t{8} << 20;

FileFault g_fault = nullptr;

const char* remedy_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space on this disk, or choose a folder on another one";
    case EACCES:
    case EPERM:
    case EROFS:
      return "make the folder writable, or choose another one";
    case ENOENT:
    case ENOTDIR:
      return "create the folder, or choose another one";
    case EIO:
      return "check the disk: dmesg names the device";
    default:
      return "check the folder and its disk";
  }
}

[[noreturn]] void file_failed(const std::string& path, const std::string& action, int error) {
  throw system_error(ExitCode::io, path, action, error, remedy_for(error));
}

/// Repeats a call that a signal interrupted. Returns 0 or the errno value.
template <class Call>
int outcome(FileOp op, const std::string& path, Call&& call) {
  if (const int error = file_fault(op, path)) return error;
  while (call() != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Appends in chunks, calling written(chunk, bytes) after each.
template <class F>
void write_all(int descriptor, const std::string& path, const void* data, int64_t bytes,
               F&& written) {
  require(descriptor >= 0 && bytes >= 0, "a file that is not finished yet");
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t piece = static_cast<size_t>(std::min(bytes, kWriteBytes));
    ssize_t n = 0;
    const int error = outcome(FileOp::write, path, [&] {
      n = ::write(descriptor, next, piece);
      return n < 0 ? -1 : 0;
    });
    if (error) file_failed(path, "write " + std::to_string(bytes) + " bytes", error);
    written(next, static_cast<int64_t>(n));
    next += n;
    bytes -= n;
  }
}

void sync_file(int descriptor, const std::string& path) {
  require(descriptor >= 0, "a file that is not finished yet");
  const int error = outcome(FileOp::sync, path, [&] { return ::fsync(descriptor); });
  if (error) file_failed(path, "sync", error);
}

/// Network file systems report a full disk here. Returns 0 or the errno value; after EINTR the
/// descriptor is closed on Linux.
int close_file(int* descriptor) {
  return ::close(std::exchange(*descriptor, -1)) != 0 && errno != EINTR ? errno : 0;
}

/// Encodes `number` as four letters and digits.
std::string letters_of(uint32_t number) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string out;
  for (int k = 0; k < 4; ++k, number /= kLetters.size()) out += kLetters[number % kLetters.size()];
  return out;
}

/// NAME.tmp-XXXXYYYY: XXXX is random, YYYY a checksum of everything before it. The checksum
/// distinguishes an AtomicFile's name from any other.
std::string temporary_name(const std::string& name, const std::string& chance) {
  const std::string begin = name + ".tmp-" + chance;
  return begin + letters_of(crc32c(begin));
}

/// Tries names that `draw` makes from random letters until `make` finds one free. Returns 0 or the
/// errno value.
template <class Draw, class Make>
int take_free_name(Draw&& draw, std::string* name, Make&& make) {
  std::random_device random;
  constexpr int kTries = 100;
  int error = EEXIST;
  for (int i = 0; i < kTries && error == EEXIST; ++i) {
    *name = draw(letters_of(static_cast<uint32_t>(random())));
    error = make(*name);
  }
  return error;
}

/// Temporary names next to `path`.
auto beside(const std::string& path) {
  return [path](const std::string& chance) {
    const std::string file = std::filesystem::path(path).filename().string();
    return path.substr(0, path.size() - file.size()) + temporary_name(file, chance);
  };
}

/// The writer of an AtomicFile holds this lock. Returns 0 or the errno value: another process holds
/// it, or the file system has no locks.
int lock_file(int descriptor, int how) {
  while (::flock(descriptor, LOCK_EX | how) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// Removes leftovers of AtomicFiles of this name from killed processes. A failure to remove one,
/// perhaps another user's, does not matter here.
void remove_leftovers(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  std::error_code failure;
  for (std::filesystem::directory_iterator it(parent_folder(path), failure), end;
       !failure && it != end; it.increment(failure)) {
    if (!is_temporary_of(it->path().filename().string(), file)) continue;
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int descriptor = ::open(it->path().c_str(), flags);
    if (descriptor < 0) continue;
    struct stat info {};
    const bool regular = ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
    if (regular && lock_file(descriptor, LOCK_NB) == 0) ::unlink(it->path().c_str());
    ::close(descriptor);
  }
}

/// The path by which the system knows an open file, even an unnamed one.
std::string name_of_descriptor(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

/// Creates an unnamed file in the folder of `path`; returns -1 if that is not possible.
int create_unnamed(const std::string& path) {
  int descriptor = -1;
  const std::string folder = parent_folder(path);
  const int error = outcome(FileOp::create_unnamed, path, [&] {
    descriptor = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    return descriptor < 0 ? -1 : 0;
  });
  if (error) return -1;
  // Without /proc the file could never get a name.
  struct stat info {};
  if (::stat(name_of_descriptor(descriptor).c_str(), &info) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

bool is_temporary_of(const std::string& name, const std::string& file) {
  const size_t chance = file.size() + std::string_view(".tmp-").size();
  return name.size() == chance + 8 && name == temporary_name(file, name.substr(chance, 4));
}

void set_file_fault(FileFault fault) { g_fault = fault; }

int file_fault(FileOp op, const std::string& path, const std::string& target) {
  return g_fault ? g_fault(op, path, target) : 0;
}

DurableFile::DurableFile(const std::string& path) : path_(path) {
  const int error = outcome(FileOp::create, path_, [&] {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    descriptor_ = ::open(path_.c_str(), kFlags | O_NONBLOCK, 0666);  // never blocks on a pipe
    return descriptor_ < 0 ? -1 : 0;
  });
  if (error) file_failed(path_, "create", error);
}

DurableFile::~DurableFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void DurableFile::write(const void* data, int64_t bytes) {
  write_all(descriptor_, path_, data, bytes, [&](const char* piece, int64_t n) {
    digest_.update(piece, static_cast<size_t>(n));
    bytes_ += n;
  });
}

void DurableFile::extend(int64_t bytes) {
  const int error = outcome(FileOp::write, path_, [&] { return ::ftruncate(descriptor_, bytes); });
  if (error) file_failed(path_, "extend", error);
}

FileDigest DurableFile::finish() {
  sync_file(descriptor_, path_);
  if (const int error = close_file(&descriptor_)) {
    ::unlink(path_.c_str());
    file_failed(path_, "close", error);
  }
  return {bytes_, digest_.hex()};
}

PartOfFile::PartOfFile(const std::string& path) : path_(path) {
  const int error = outcome(FileOp::open, path_, [&] {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    return descriptor_ < 0 ? -1 : 0;
  });
  if (error) file_failed(path_, "open", error);
}

PartOfFile::~PartOfFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartOfFile::write(int64_t offset, const void* data, int64_t bytes) {
  if (::lseek(descriptor_, offset, SEEK_SET) != offset) file_failed(path_, "write", errno);
  write_all(descriptor_, path_, data, bytes, [](const char*, int64_t) {});
}

void PartOfFile::finish() {
  sync_file(descriptor_, path_);
  if (const int error = close_file(&descriptor_)) file_failed(path_, "close", error);
}

AtomicFile::AtomicFile(const std::string& path) : path_(without_links(path)) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw Error::fault(
        ExitCode::io, path_,
        S_ISDIR(info.st_mode) ? "a folder of this name exists" : "not a regular file",
        "choose another name");
  }
  remove_leftovers(path_);
  descriptor_ = create_unnamed(path_);
  if (descriptor_ < 0) create_named();
  // If this fails for lack of locks, no process removes leftovers either.
  lock_file(descriptor_, 0);
}

void AtomicFile::create_named() {
  for (;;) {
    const int error = take_free_name(beside(path_), &temporary_, [&](const std::string& name) {
      return outcome(FileOp::create, name, [&] {
        descriptor_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return descriptor_ < 0 ? -1 : 0;
      });
    });
    if (error) file_failed(path_, "create", error);
    // Another process may have taken it for a leftover before it was locked.
    lock_file(descriptor_, 0);
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0 || info.st_nlink > 0) return;
    ::close(descriptor_);
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFile::write(const void* data, int64_t bytes) {
  write_all(descriptor_, path_, data, bytes, [](const char*, int64_t) {});
}

void AtomicFile::rewrite_start(const void* data, int64_t bytes) {
  if (::lseek(descriptor_, 0, SEEK_SET) != 0) file_failed(path_, "rewrite", errno);
  write(data, bytes);
}

std::string AtomicFile::sha256() const {
  require(descriptor_ >= 0, "a file that is not finished yet");
  Sha256 digest;
  std::vector<char> piece(size_t{1} << 20);
  for (off_t offset = 0;;) {
    const ssize_t n = ::pread(descriptor_, piece.data(), piece.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) file_failed(path_, "read back", errno);
    if (n == 0) return digest.hex();
    digest.update(piece.data(), static_cast<size_t>(n));
    offset += n;
  }
}

void AtomicFile::commit() {
  sync_file(descriptor_, path_);
  int error = 0;
  if (temporary_.empty()) {
    std::string name;
    error = take_free_name(beside(path_), &name, [&](const std::string& free) {
      if (const int fault = file_fault(FileOp::link, path_, free)) return fault;
      const int linked = ::linkat(AT_FDCWD, name_of_descriptor(descriptor_).c_str(), AT_FDCWD,
                                  free.c_str(), AT_SYMLINK_FOLLOW);
      return linked == 0 ? 0 : errno;
    });
    if (error) file_failed(path_, "link", error);
    temporary_ = name;
  }
  // close() reports whether the disk took everything; the lock is held until the file has its name.
  lock_ = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  error = close_file(&descriptor_);
  if (error) file_failed(path_, "close", error);
  error = file_fault(FileOp::rename, temporary_, path_);
  if (!error && std::rename(temporary_.c_str(), path_.c_str()) != 0) error = errno;
  if (error) file_failed(path_, "rename to it", error);
  temporary_.clear();
  sync_folder(parent_folder(path_));
}

void make_folder(const std::string& path) {
  const int error = outcome(FileOp::make_folder, path, [&] { return ::mkdir(path.c_str(), 0777); });
  if (error) file_failed(path, "create the folder", error);
}

void make_folders(const std::string& path) {
  std::error_code ignored;  // if this check fails, creating the folder reports the reason
  if (std::filesystem::is_directory(path, ignored)) return;
  if (path.size() > 1 && path.back() == '/') return make_folders(path.substr(0, path.size() - 1));
  const std::string above = parent_folder(path);
  if (above != path) make_folders(above);
  try {
    make_folder(path);
  } catch (const Error&) {  // unless another process has created it meanwhile
    if (!std::filesystem::is_directory(path, ignored)) throw;
  }
  sync_folder(above);
}

void require_folders_can_be_made(const std::string& path) {
  std::string there = path;
  struct stat found = {};
  while (::stat(there.c_str(), &found) != 0) {
    const int error = errno;
    const std::string above = parent_folder(there);
    if (error == ENOENT && ::lstat(there.c_str(), &found) == 0) {  // a dangling link
      file_failed(there, "create the folder", EEXIST);
    }
    if (error != ENOENT || above == there) file_failed(path, "create the folder", error);
    there = above;
  }
  if (!S_ISDIR(found.st_mode)) file_failed(there, "create a folder in it", ENOTDIR);
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    file_failed(there, "create a folder in it", errno);
  }
}

std::string make_new_folder(const std::string& prefix) {
  std::string made;
  const auto draw = [&](const std::string& chance) { return prefix + chance; };
  const int error = take_free_name(draw, &made, [](const std::string& name) {
    return outcome(FileOp::make_folder, name, [&] { return ::mkdir(name.c_str(), 0777); });
  });
  if (error) file_failed(made, "create the folder", error);
  return made;
}

void sync_folder(const std::string& path) {
  const int error = outcome(FileOp::sync_folder, path, [&] {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    int result = ::fsync(descriptor);
    // File systems that cannot sync a folder return EINVAL; its entries are already as durable as
    // they can be.
    if (result != 0 && errno == EINVAL) result = 0;
    const int reason = errno;
    ::close(descriptor);
    errno = reason;
    return result;
  });
  if (error) file_failed(path, "sync the folder", error);
}

void rename_path(const std::string& from, const std::string& to) {
  int error = file_fault(FileOp::rename, from, to);
  if (!error && ::rename(from.c_str(), to.c_str()) != 0) error = errno;
  if (error) file_failed(from, "rename to " + to, error);
}

bool exchange_paths(const std::string& a, const std::string& b) {
  int error = file_fault(FileOp::exchange, a, b);
  if (!error && ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
    error = errno;
  }
  if (error == EINVAL || error == ENOSYS || error == EOPNOTSUPP) return false;
  if (error) file_failed(a, "exchange with " + b, error);
  return true;
}

void remove_tree(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return;
    file_failed(path, "remove", errno);
  }
  if (S_ISDIR(info.st_mode)) {
    std::error_code failure;
    std::vector<std::string> entries;
    for (std::filesystem::directory_iterator it(path, failure), end; !failure && it != end;
         it.increment(failure)) {
      entries.push_back(it->path().string());
    }
    if (failure) file_failed(path, "remove the folder", failure.value());
    for (const std::string& entry : entries) remove_tree(entry);
  }
  const int error = outcome(FileOp::remove, path, [&] { return std::remove(path.c_str()); });
  if (error) file_failed(path, "remove", error);
}

std::string without_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // the kernel's limit
  std::string place = path;
  std::error_code failure;
  for (int i = 0; i < kMostLinks && fs::is_symlink(place, failure); ++i) {
    const fs::path target = fs::read_symlink(place, failure);
    if (failure) file_failed(path, "follow the symbolic link", failure.value());
    place = (fs::path(place).parent_path() / target).string();
  }
  if (fs::is_symlink(place, failure)) file_failed(path, "follow the symbolic link", ELOOP);
  return place;
}

bool is_file_at(const std::string& path, int descriptor) {
  struct stat open = {}, named = {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

std::string parent_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace bamtrain
