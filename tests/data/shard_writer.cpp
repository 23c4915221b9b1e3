// What an unfinished ShardWriter leaves, and how another one continues. For its output, see
// shard.cpp.

#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <span>
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

TEST_CASE("an unfinished shard is not opened, and another writer continues after what was synced") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin"), whole = folder.file("whole.bin");
  const std::vector<uint32_t> tokens = counting(0, 60000), more = counting(0, 700);
  for (const int width : {2, 4}) {
    {
      ShardWriter writer(path, width);
      writer.append(tokens);
      writer.sync();
      writer.append(more);  // not synced, so not kept
    }
    CHECK(contains(error_of(ExitCode::data, [&] { Shard::open(path); }), path));
    ShardWriter next(path, width, 60000);
    next.append(counting(5, 300));
    const std::string hash = next.finish();
    ShardWriter undisturbed(whole, width);
    undisturbed.append(tokens);
    undisturbed.append(counting(5, 300));
    CHECK(undisturbed.finish() == hash);
    CHECK(read_bytes(path) == read_bytes(whole));
    CHECK(Shard::open(path).tokens() == 60300);
  }
}

TEST_CASE("a writer does not go on behind tokens that are not there") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin");
  {
    ShardWriter writer(path, 2);
    writer.append(counting(0, 10));
    writer.sync();
  }
  const std::string message = error_of(ExitCode::data, [&] { ShardWriter(path, 2, 11); });
  CHECK(contains(message, "expected at least 1046 bytes, found 1044"));
  CHECK(read_bytes(path).size() == 1044);
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
  CHECK(contains(error_of(ExitCode::io, [&] { ShardWriter(folder.file("folder.bin"), 2); }),
                 "folder.bin"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a full disk is an io error that leaves no shard") {
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
    CHECK(read_bytes(path).empty());
  }
}

/// Limits file sizes: a disk that fills up during a write.
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

TEST_CASE("wherever the disk fills up, what is there is no shard, and goes on when there is room") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.bin");
  const std::vector<uint32_t> tokens = counting(0, 700000);
  const rlim_t whole = 1024 + 4 * 700000;
  for (rlim_t limit :
       std::vector<rlim_t>{0, 1, 1023, 1024, 1 << 20, (1 << 20) + 1, 2 << 20, whole - 1, whole}) {
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
    if (!finished) {
      CHECK(code == static_cast<int>(ExitCode::io));
      error_of(ExitCode::data, [&] { Shard::open(path); });
      ShardWriter writer(path, 4, limit > 1024 ? static_cast<int64_t>(limit - 1024) / 4 : 0);
      writer.append(std::span(tokens).subspan(static_cast<size_t>(writer.tokens())));
      writer.finish();
    }
    CHECK(Shard::open(path).tokens() == 700000);
    CHECK(folder.entries() == 1);
  }
}

}  // namespace
}  // namespace bamtrain
