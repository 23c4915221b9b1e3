#include "data_tools/parquet_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/faults.h"
#include "data_tools/interrupt.h"
#include "data_tools/parquet_script.h"

extern char** environ;

namespace bamtrain {
namespace {

constexpr size_t kMostBatch = size_t{1} << 34;  // bytes; a batch of 1,024 texts is smaller

void close_end(int* end) {
  if (*end >= 0) ::close(*end);
  *end = -1;
}

/// A pipe that other processes do not inherit.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw system_error(ExitCode::device, "parquet", "open a pipe", errno,
                       "raise the limit of open files (ulimit -n)");
  }
  return ends;
}

/// The last non-empty line.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

ParquetReader::Command ParquetReader::python() {
  return {"python3", "-c", std::string(parquet_script().front().text)};
}

ParquetReader::ParquetReader(std::vector<std::string> files, std::string column, int processes,
                             int64_t max_document_bytes, const Command& command)
    : files_(std::move(files)),
      column_(std::move(column)),
      max_document_bytes_(max_document_bytes) {
  require(!files_.empty() && processes >= 1, "parquet files, and a process to read them");
  try {
    for (int part = 0; part < processes; ++part) start(command, part, processes);
  } catch (...) {
    stop();
    throw;
  }
}

ParquetReader::~ParquetReader() { stop(); }

void ParquetReader::start(const Command& command, int part, int parts) {
  std::vector<std::string> words = command;
  for (const std::string& word : {column_, std::to_string(part), std::to_string(parts)}) {
    words.push_back(word);
  }
  words.insert(words.end(), files_.begin(), files_.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  std::array<int, 2> out = make_pipe();
  int errors = -1;  // in-memory file: an unread pipe would block the process
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  int error = 0;
  Process process;
  try {
    errors = ::memfd_create("errors of a reader", MFD_CLOEXEC);
    if (errors < 0) {
      throw system_error(ExitCode::device, files_[0], "create a file in memory", errno,
                         "free some memory");
    }
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    // bamdata handles Ctrl-C; a process group of its own shields the process from the terminal's.
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    error = ::posix_spawnp(&process.id, words[0].c_str(), &actions, &attributes, arguments.data(),
                           environ);
    if (error == 0) {
      process.pipe = std::exchange(out[0], -1);
      process.errors = std::exchange(errors, -1);
      // Buffers more of a row group; less if the system's limit is lower.
      ::fcntl(process.pipe, F_SETPIPE_SZ, 1 << 20);
      processes_.push_back(process);
    }
  } catch (...) {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    for (int* end : {&out[0], &out[1], &errors}) close_end(end);
    throw;
  }
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  for (int* end : {&out[0], &out[1], &errors}) close_end(end);
  if (error != 0) {
    throw system_error(ExitCode::device, files_[0],
                       "start " + words[0] + " to read parquet with pyarrow", error,
                       "install Python 3, and pyarrow: python3 -m pip install pyarrow");
  }
}

void ParquetReader::stop() {
  for (Process& p : processes_) {
    close_end(&p.pipe);
    close_end(&p.errors);
    if (p.id > 0) {
      ::kill(p.id, SIGKILL);
      while (::waitpid(p.id, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    p.id = -1;
  }
}

bool ParquetReader::next(RawDocument* document) {
  *document = {};
  while (next_ == lengths_.size()) {
    if (!advance()) return false;
  }
  const int32_t length = lengths_[next_++];
  document->line = ++row_;
  if (length > max_document_bytes_) {
    throw Error(ExitCode::data, where() + ": row " + std::to_string(row_),
                "at most " + std::to_string(max_document_bytes_) + " bytes", std::to_string(length),
                "raise --max-document-bytes");
  }
  if (length > 0) {
    document->text = texts_.substr(at_, static_cast<size_t>(length));
    at_ += static_cast<size_t>(length);
  }
  return true;
}

bool ParquetReader::advance() {
  const Header h = read_header();
  switch (h.letter) {
    case 'G':
      begin_group(h);
      return true;
    case 'B':
      read_batch(h);
      return true;
    case 'D':
      ++groups_;
      turn_ = (turn_ + 1) % processes_.size();
      return true;
    case 'E':
      if (h.a != groups_) ended_early("the end after " + std::to_string(h.a) + " row groups");
      return false;
    case 'F':
      fail(h);
    default:
      ended_early("something else than rows");
  }
}

void ParquetReader::begin_group(const Header& h) {
  if (h.a >= files_.size()) ended_early("a file that was not asked for");
  if (h.a != file_) row_ = 0;
  file_ = static_cast<size_t>(h.a);
  group_ = static_cast<int64_t>(h.b);
  taken_ = static_cast<int64_t>(h.c);
}

void ParquetReader::read_batch(const Header& h) {
  if (h.a > kMostBatch / sizeof(int32_t) || h.b > kMostBatch) {
    ended_early("a batch of impossible size");
  }
  lengths_.resize(static_cast<size_t>(h.a));
  read(lengths_.data(), lengths_.size() * sizeof(int32_t));
  texts_.resize(static_cast<size_t>(h.b));
  read(texts_.data(), texts_.size());
  next_ = at_ = 0;
  uint64_t bytes = 0;
  for (const int32_t length : lengths_) bytes += length > 0 ? static_cast<uint64_t>(length) : 0;
  if (bytes != h.b) ended_early("rows of another size than their batch");
}

ParquetReader::Header ParquetReader::read_header() {
  char letter = 0;
  std::array<uint64_t, 3> numbers;
  read(&letter, 1);
  read(numbers.data(), sizeof numbers);
  return {letter, numbers[0], numbers[1], numbers[2]};
}

void ParquetReader::read(void* out, size_t n) {
  auto* at = static_cast<char*>(out);
  while (n > 0) {
    wait_for_input(processes_[turn_].pipe);
    const ssize_t got = ::read(processes_[turn_].pipe, at, n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw system_error(ExitCode::io, where(), "read from the parquet reader", errno, "try again");
    }
    if (got == 0) {
      Process& p = processes_[turn_];
      int status = 0;
      while (::waitpid(p.id, &status, 0) < 0 && errno == EINTR) {
      }
      p.id = -1;
      std::string said(4096, '\0');
      const off_t size = ::lseek(p.errors, 0, SEEK_END), last_of = static_cast<off_t>(said.size());
      const ssize_t bytes =
          ::pread(p.errors, said.data(), said.size(), std::max<off_t>(size - last_of, 0));
      said.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
      const std::string last = last_line(said);
      ended_early("its reader " + how_it_ended(status) + (last.empty() ? "" : ": " + last));
    }
    at += got;
    n -= static_cast<size_t>(got);
  }
}

void ParquetReader::fail(const Header& h) {
  std::string message(static_cast<size_t>(std::min<uint64_t>(h.b, 1 << 16)), '\0');
  read(message.data(), message.size());
  std::array<std::string, 4> parts;
  size_t part = 0;
  for (const char c : message) {
    if (c != '\0') {
      parts[part] += c;
    } else if (++part == parts.size()) {
      break;
    }
  }
  const ExitCode code = h.a == 6 ? ExitCode::io : h.a == 9 ? ExitCode::device : ExitCode::data;
  throw Error(code, parts[0], parts[1], parts[2], parts[3]);
}

void ParquetReader::ended_early(const std::string& how) {
  throw Error::fault(ExitCode::data, where(), how,
                     "run the same command again: no row of it was kept");
}

std::string ParquetReader::where() const {
  return files_[file_] + (group_ < 0 ? "" : ": row group " + std::to_string(group_));
}

}  // namespace bamtrain
