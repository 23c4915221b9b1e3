// Files that grow over several process lifetimes. For shards, see tests/data/shard_writer.cpp.

#include "core/resumable_file.h"

#include <cerrno>
#include <string>

#include "catch.h"
#include "core/durable_file.h"
#include "core/sha256.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("a file grows, is read back, and is cut back to what was to be kept") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  {
    ResumableFile file(path, 0);
    file.append("abcdef", 6);
    file.append("ghi", 3);
    CHECK(file.bytes() == 9);
    file.rewrite_start("AB", 2);
    char part[4] = {};
    file.read(1, part, 3);
    CHECK(std::string(part) == "Bcd");
    CHECK(file.sha256() == sha256_hex("ABcdefghi"));
    file.sync();
  }
  CHECK(read_bytes(path) == "ABcdefghi");
  {
    ResumableFile file(path, 4);
    CHECK(file.bytes() == 4);
    file.append("xyz", 3);
  }
  CHECK(read_bytes(path) == "ABcdxyz");
}

TEST_CASE("a file that has less than was to be kept is refused and left as it is") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a"), "abc");
  const std::string message = error_of(ExitCode::data, [&] { ResumableFile(folder.file("a"), 4); });
  CHECK(contains(message, "a: expected at least 4 bytes, found 3"));
  CHECK(read_bytes(folder.file("a")) == "abc");
}

TEST_CASE("a file that another process has cut is an error where it is read, not zeros") {
  const TemporaryFolder folder;
  ResumableFile file(folder.file("a"), 0);
  file.append("abcdef", 6);
  std::filesystem::resize_file(folder.file("a"), 3);
  char part[6];
  CHECK(contains(error_of(ExitCode::io, [&] { file.read(0, part, 6); }), "read back"));
}

TEST_CASE("each operation that the system refuses is an io error with its reason") {
  const TemporaryFolder folder;
  ResumableFile file(folder.file("a"), 0);
  static FileOp refused;
  for (const FileOp op : {FileOp::create, FileOp::write, FileOp::sync}) {
    refused = op;
    set_file_fault(
        [](FileOp o, const std::string&, const std::string&) { return o == refused ? ENOSPC : 0; });
    const std::string message = error_of(ExitCode::io, [&] {
      ResumableFile other(folder.file("b"), 0);
      other.append("x", 1);
      other.sync();
    });
    set_file_fault(nullptr);
    CHECK(contains(message, "No space left on device"));
    CHECK(contains(message, "free space"));
  }
  CHECK(
      contains(error_of(ExitCode::io, [&] { ResumableFile(folder.file("none/a"), 0); }), "none/a"));
}

}  // namespace
}  // namespace bamtrain
