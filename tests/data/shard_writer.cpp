// What a ShardWriter leaves, where it cannot finish too. What it writes: shard.cpp.

#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "data/shard.h"
#include "files.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("an unfinished shard leaves nothing, and the one of that name stays") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin");
  write_bytes(path, shard_bytes({1, 2, 3}));
  {
    ShardWriter writer(path, 2);
    writer.append(counting(0, 60000));
  }
  CHECK(folder.entries() == 1);
  CHECK(read_bytes(path) == shard_bytes({1, 2, 3}));
}

TEST_CASE("an id that does not fit the width is refused by position") {
  const TemporaryFolder folder;
  ShardWriter writer(folder.file("a.bin"), 2);
  writer.append(std::vector<uint32_t>{1, 65535});
  const std::string message = error_of(ExitCode::data, [&] {
    writer.append(std::vector<uint32_t>{3, 65536});
  });
  CHECK(contains(message, "a.bin: token 3"));
  CHECK(contains(message, "65536"));
}

TEST_CASE("a path that cannot be written is an io error") {
  const TemporaryFolder folder;
  write_bytes(folder.file("file"), "");
  const std::string path = folder.file("file/a.bin");
  CHECK(contains(error_of(ExitCode::io, [&] { ShardWriter(path, 2); }), path));
  const std::string missing = folder.file("missing/a.bin");
  CHECK(contains(error_of(ExitCode::io, [&] { ShardWriter(missing, 2); }), missing));
  std::filesystem::create_directory(folder.file("folder.bin"));
  write_bytes(folder.file("folder.bin/x"), "");
  CHECK(contains(error_of(ExitCode::io,
                          [&] {
                            ShardWriter writer(folder.file("folder.bin"), 2);
                            writer.finish();
                          }),
                 "folder.bin"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a full disk is an io error that leaves nothing half-written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin");
  const auto write = [&](size_t tokens) {
    set_file_fault([](FileOp op, const std::string&, const std::string&) {
      return op == FileOp::write ? ENOSPC : 0;
    });
    ShardWriter writer(path, 2);
    writer.append(counting(0, tokens));
    writer.append(counting(0, tokens));
    writer.finish();
  };
  for (size_t tokens : {10, 60000}) {
    const std::string message = error_of(ExitCode::io, [&] { write(tokens); });
    set_file_fault(nullptr);
    CHECK(contains(message, path));
    CHECK(contains(message, "No space left"));
    CHECK(folder.entries() == 0);
  }
}

/// Files cannot grow past a limit: a disk that fills up in the middle of a write.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

TEST_CASE("wherever the disk fills up, the old shard stays whole until the new one is") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin"), old = shard_bytes({1, 2, 3});
  const std::vector<uint32_t> tokens = counting(0, 700000);
  const rlim_t whole = 1024 + 4 * 700000;
  for (rlim_t limit :
       std::vector<rlim_t>{0, 1, 1023, 1024, 1 << 20, (1 << 20) + 1, 2 << 20, whole - 1, whole}) {
    write_bytes(path, old);
    bool finished = false;
    int code = -1;
    {
      const FileSizeLimit full(limit);
      try {
        ShardWriter writer(path, 4);
        writer.append(tokens);
        writer.finish();
        finished = true;
      } catch (const Error& e) {
        code = static_cast<int>(e.code());
      }
    }
    INFO("limit " << limit);
    CHECK(finished == (limit >= whole));
    if (!finished) CHECK(code == static_cast<int>(ExitCode::io));
    CHECK((finished ? Shard::open(path).tokens() == 700000 : read_bytes(path) == old));
    CHECK(folder.entries() == 1);
  }
}

}  // namespace
}  // namespace bamtrain
