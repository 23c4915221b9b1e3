#include "core/input_file.h"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "catch.h"
#include "core/sha256.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

TEST_CASE("a file is read whole, in parts and as a digest") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i);  // longer than one read
  write_bytes(folder.file("a"), text);
  InputFile first(folder.file("a"), ExitCode::data, "");
  const InputFile file(std::move(first));
  CHECK(file.bytes() == static_cast<int64_t>(text.size()));
  CHECK(file.text(file.bytes()) == text);
  CHECK(file.sha256() == sha256_hex(text));
  std::string part(7, '\0');
  file.read(1'234'567, part.data(), 7);
  CHECK(part == text.substr(1'234'567, 7));
  write_bytes(folder.file("empty"), "");
  CHECK(InputFile(folder.file("empty"), ExitCode::data, "").text(0).empty());
}

TEST_CASE("what cannot be read is an Error of the caller's code and remedy") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a"), "four");
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  const auto refusal = [&](const std::string& path) {
    return error_of(ExitCode::checkpoint,
                    [&] { InputFile(path, ExitCode::checkpoint, "look elsewhere"); });
  };
  CHECK(contains(refusal(folder.file("none")), "none: no such"));
  CHECK(contains(refusal(folder.path()), "found a folder; look elsewhere"));
  CHECK(contains(refusal(folder.file("pipe")), "expected a regular file"));

  const InputFile file(folder.file("a"), ExitCode::data, "");
  CHECK(contains(error_of(ExitCode::data, [&] { file.text(3); }), "at most 3 bytes, found 4"));
  char out[8];
  CHECK(contains(error_of(ExitCode::data, [&] { file.read(2, out, 3); }), "the end of the file"));
}

TEST_CASE("what says nothing of the file is an Error of files where the caller wants to know") {
  const TemporaryFolder folder;
  const auto open = [](const std::string& path) {
    return InputFile(path, ExitCode::checkpoint, "", InputFile::Refusals::passing);
  };
  error_of(ExitCode::checkpoint, [&] { open(folder.file("none")); });
  error_of(ExitCode::checkpoint, [&] { open(folder.path()); });
  // A regular file whose first byte is unmapped in every process: EIO.
  const InputFile memory = open("/proc/self/mem");
  char out = 0;
  CHECK(contains(error_of(ExitCode::io, [&] { memory.read(0, &out, 1); }), "Input/output error"));
  const InputFile known("/proc/self/mem", ExitCode::checkpoint, "");
  error_of(ExitCode::checkpoint, [&] { known.read(0, &out, 1); });
}

}  // namespace
}  // namespace bamtrain
