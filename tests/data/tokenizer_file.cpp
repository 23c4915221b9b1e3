#include "data/tokenizer_file.h"

#include <cerrno>
#include <filesystem>
#include <string>

#include "catch.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "files.h"

namespace bamtrain {
namespace {

using namespace testing;
namespace fs = std::filesystem;

// printf abc | sha256sum
const char* const kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST_CASE("a tokenizer's file is copied under its own name, and an equal one stays untouched") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("to"));
  write_bytes(folder.file("t.model"), "abc");
  const TokenizerFile file(folder.file("t.model"), kAbc);
  CHECK(file.name() == "t.model");
  fs::remove(folder.file("t.model"));  // its bytes were read
  file.write(folder.file("to"));
  const std::string copy = folder.file("to/t.model");
  CHECK(read_bytes(copy) == "abc");
  int operations = 0;
  static int* counted = nullptr;
  counted = &operations;
  set_file_fault([](FileOp, const std::string&, const std::string&) {
    ++*counted;
    return 0;
  });
  file.write(folder.file("to"));
  set_file_fault(nullptr);
  CHECK(operations == 0);
  CHECK(std::distance(fs::directory_iterator(folder.file("to")), {}) == 1);
}

TEST_CASE("another file under the name of a tokenizer is an error, and stays") {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("to/folder"));
  write_bytes(folder.file("t.model"), "abc");
  write_bytes(folder.file("folder"), "abc");
  write_bytes(folder.file("to/t.model"), "mine");
  const std::string message = error_of(
      ExitCode::io, [&] { TokenizerFile(folder.file("t.model"), kAbc).write(folder.file("to")); });
  CHECK(
      contains(message, folder.file("to/t.model") + ": expected no such file, or the tokenizer "));
  CHECK(contains(message, std::string(kAbc) + ", found another file"));
  CHECK(read_bytes(folder.file("to/t.model")) == "mine");
  CHECK(contains(
      error_of(ExitCode::io,
               [&] { TokenizerFile(folder.file("folder"), kAbc).write(folder.file("to")); }),
      "a folder of this name exists"));
}

TEST_CASE("a tokenizer's file with another digest than expected is refused") {
  const TemporaryFolder folder;
  write_bytes(folder.file("t.model"), "abd");
  const std::string message =
      error_of(ExitCode::data, [&] { TokenizerFile(folder.file("t.model"), kAbc); });
  CHECK(contains(message, "t.model: expected the tokenizer with SHA-256 " + std::string(kAbc)));
  CHECK(contains(error_of(ExitCode::io, [&] { TokenizerFile(folder.file("none"), kAbc); }),
                 "none: no such file"));
}

TEST_CASE("a tokenizer's file that cannot be written leaves nothing") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("to"));
  write_bytes(folder.file("t.model"), "abc");
  const TokenizerFile file(folder.file("t.model"), kAbc);
  set_file_fault([](FileOp op, const std::string&, const std::string&) {
    return op == FileOp::write ? ENOSPC : 0;
  });
  const std::string message = error_of(ExitCode::io, [&] { file.write(folder.file("to")); });
  set_file_fault(nullptr);
  CHECK(contains(message, "No space left"));
  CHECK(fs::is_empty(folder.file("to")));
}

}  // namespace
}  // namespace bamtrain
