#include "core/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"

namespace bamtrain {

namespace {

constexpr const char* kAppendRemedy = "check free space and permissions of the run's folder";

[[noreturn]] void append_failed(const std::string& path, const char* action, int reason) {
  throw system_error(ExitCode::io, path, action, reason, kAppendRemedy);
}

int64_t bytes_of(int descriptor) {
  struct stat info = {};
  return ::fstat(descriptor, &info) == 0 ? info.st_size : 0;
}

bool is_regular(int descriptor) {
  struct stat info = {};
  return ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

int open_to_append(const std::string& path, const char* remedy) {
  const auto failed = [&](int reason) {
    return system_error(ExitCode::io, path, "write", reason, remedy);
  };
  if (const int fault = file_fault(FileOp::create, path)) throw failed(fault);
  // With O_NONBLOCK, a pipe without a reader fails with ENXIO instead of blocking.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  const int descriptor = ::open(path.c_str(), kFlags, 0666);
  if (descriptor < 0 && errno != ENXIO) throw failed(errno);
  if (descriptor >= 0 && is_regular(descriptor)) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  throw Error(ExitCode::io, path, "a regular file", "a pipe, a device or a socket", remedy);
}

AppendFile::AppendFile(const std::string& path, int64_t keep, WholeBytes whole)
    : path_(path), whole_(whole), descriptor_(open_to_append(path, kAppendRemedy)) {
  try {
    cut_back(keep);
  } catch (const Error&) {
    ::close(descriptor_);
    throw;
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::cut_back(int64_t keep) {
  if (::ftruncate(descriptor_, keep) != 0) {
    append_failed(path_, "cut off its damaged end", errno);
  }
  bytes_ = keep;
}

/// Reopens the file by its name if it was replaced, or keeps its complete part if it was truncated.
void AppendFile::find_again() {
  if (!is_file_at(path_, descriptor_)) {
    ::close(std::exchange(descriptor_, open_to_append(path_, kAppendRemedy)));
    bytes_ = bytes_of(descriptor_);
    lost_ = true;
  } else if (const int64_t left = bytes_of(descriptor_); left < bytes_) {
    cut_back(whole_ ? whole_(path_) : left);
    lost_ = true;
  }
}

bool AppendFile::take_lost() { return std::exchange(lost_, false); }

void AppendFile::write(std::string_view bytes) {
  find_again();
  while (!bytes.empty()) {
    if (const int fault = file_fault(FileOp::write, path_)) append_failed(path_, "append", fault);
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) append_failed(path_, "append", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
    bytes_ += n;
  }
}

void AppendFile::sync() {
  if (const int fault = file_fault(FileOp::sync, path_)) append_failed(path_, "sync", fault);
  if (::fsync(descriptor_) != 0) append_failed(path_, "sync", errno);
  sync_folder(parent_folder(path_));
}

}  // namespace bamtrain
