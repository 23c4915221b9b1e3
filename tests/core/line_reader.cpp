#include "core/line_reader.h"

#include <vector>

#include "catch.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;

/// The lines of the file from `offset` on. Checks that the reader's offset is where the next line
/// starts.
std::vector<std::string> lines_of(const std::string& path, int64_t offset = 0) {
  const InputFile file(path, ExitCode::data, "");
  LineReader reader(file, offset);
  std::vector<std::string> out;
  CHECK(reader.offset() == offset);
  for (std::string_view line; reader.next(&line);) {
    out.emplace_back(line);
    offset += static_cast<int64_t>(line.size()) + 1;
    CHECK(reader.offset() == offset);
  }
  std::string_view none;
  CHECK_FALSE(reader.next(&none));
  CHECK(reader.offset() == offset);
  return out;
}

TEST_CASE("lines end with a newline, empty ones too; the unterminated rest is not a line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_bytes(path, "one\n\nthree\r\nfo");
  CHECK(lines_of(path) == std::vector<std::string>{"one", "", "three\r"});
  CHECK(lines_of(path, 4) == std::vector<std::string>{"", "three\r"});
  CHECK(lines_of(path, 14).empty());
  write_bytes(path, "");
  CHECK(lines_of(path).empty());
}

TEST_CASE("lines are whole across the pieces in which a file is read") {
  const TemporaryFolder folder;
  std::vector<std::string> truth;
  std::string text;
  // Lines that end before, at and after a multiple of 1 MiB, and lines longer than that.
  for (const size_t length : {(1u << 20) - 1, 5u, (1u << 20) - 7, 3u << 20, 0u, 1u}) {
    truth.emplace_back(length, static_cast<char>('a' + truth.size()));
    text += truth.back() + "\n";
  }
  write_bytes(folder.file("a"), text + std::string(1 << 21, 'z'));
  CHECK(lines_of(folder.file("a")) == truth);
}

TEST_CASE("of a line that is too long the beginning is given, and the next is whole") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a"), piece(1 << 20, 'x');
  write_bytes(path, "1234\n12345\nok\n" + piece + piece + piece + "\nmore\n" + piece);
  const InputFile file(path, ExitCode::data, "");
  LineReader reader(file, 0, 4);
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(&line);) lines.emplace_back(line);
  CHECK(lines == std::vector<std::string>{"1234", "12345", "ok", "xxxxx", "more", "xxxxx"});
}

}  // namespace
}  // namespace bamtrain
