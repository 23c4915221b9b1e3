#include "checkpoint/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"

namespace bamtrain {
namespace {

// Digested while still in the cache, and below the 2 GiB that one write(2) takes.
constexpr int64_t kPiece = int64_t{8} << 20;

FileFault g_fault = nullptr;

int injected(FileOp op, const std::string& path, const std::string& target = {}) {
  return g_fault ? g_fault(op, path, target) : 0;
}

const char* remedy_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space on this disk, or choose an out_dir on another one";
    case EACCES:
    case EPERM:
    case EROFS:
      return "make the folder writable, or choose another out_dir";
    case ENOENT:
    case ENOTDIR:
      return "create the folder, or choose another out_dir";
    case EIO:
      return "check the disk: the system's log names the device";
    default:
      return "check the folder and its disk";
  }
}

[[noreturn]] void fail(const std::string& path, const std::string& expected, int error) {
  throw Error(ExitCode::io, path, expected, std::strerror(error), remedy_for(error));
}

/// Repeats a call that a signal interrupted. Returns 0 or the errno value.
template <class Call>
int outcome(FileOp op, const std::string& path, Call&& call) {
  if (const int error = injected(op, path)) return error;
  while (call() != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

void set_file_fault(FileFault fault) { g_fault = fault; }

DurableFile::DurableFile(const std::string& path) : path_(path) {
  const int error = outcome(FileOp::create, path_, [&] {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return descriptor_ < 0 ? -1 : 0;
  });
  if (error) fail(path_, "a file to be created", error);
}

DurableFile::~DurableFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void DurableFile::write(const void* data, int64_t bytes) {
  require(descriptor_ >= 0 && bytes >= 0, "a file that is not finished yet");
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t piece = static_cast<size_t>(std::min(bytes, kPiece));
    ssize_t written = 0;
    const int error = outcome(FileOp::write, path_, [&] {
      written = ::write(descriptor_, next, piece);
      return written < 0 ? -1 : 0;
    });
    if (error) fail(path_, std::to_string(bytes) + " more bytes to be written", error);
    digest_.update(next, static_cast<size_t>(written));
    next += written;
    bytes -= written;
    bytes_ += written;
  }
}

FileDigest DurableFile::finish() {
  require(descriptor_ >= 0, "a file that is not finished yet");
  int error = outcome(FileOp::sync, path_, [&] { return ::fsync(descriptor_); });
  if (error) fail(path_, "the file to be put on the disk", error);
  // Network file systems report a full disk here. After EINTR the descriptor is closed on Linux.
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 && errno != EINTR) {
    error = errno;
    ::unlink(path_.c_str());
    fail(path_, "the file to be closed", error);
  }
  return {bytes_, digest_.hex()};
}

void make_folder(const std::string& path) {
  const int error = outcome(FileOp::make_folder, path, [&] { return ::mkdir(path.c_str(), 0777); });
  if (error) fail(path, "a folder to be created", error);
}

void sync_folder(const std::string& path) {
  const int error = outcome(FileOp::sync_folder, path, [&] {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    int result = ::fsync(descriptor);
    // What a file system says that has no way to sync a folder; its entries are then as durable as
    // it ever makes them.
    if (result != 0 && errno == EINVAL) result = 0;
    const int reason = errno;
    ::close(descriptor);
    errno = reason;
    return result;
  });
  if (error) fail(path, "the folder's entries to be put on the disk", error);
}

void rename_path(const std::string& from, const std::string& to) {
  int error = injected(FileOp::rename, from, to);
  if (!error && ::rename(from.c_str(), to.c_str()) != 0) error = errno;
  if (error) fail(from, "to be renamed to " + to, error);
}

void remove_tree(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return;
    fail(path, "to be removed", errno);
  }
  if (S_ISDIR(info.st_mode)) {
    std::error_code failure;
    std::vector<std::string> entries;
    for (std::filesystem::directory_iterator it(path, failure), end; !failure && it != end;
         it.increment(failure)) {
      entries.push_back(it->path().string());
    }
    if (failure) fail(path, "a folder to be removed", failure.value());
    for (const std::string& entry : entries) remove_tree(entry);
  }
  const int error = outcome(FileOp::remove, path, [&] { return std::remove(path.c_str()); });
  if (error) fail(path, "to be removed", error);
}

}  // namespace bamtrain
