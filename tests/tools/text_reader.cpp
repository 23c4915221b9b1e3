#include "data_tools/text_reader.h"

#include <string>
#include <vector>

#include "catch.h"
#include "data_tools/binary_input.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;

constexpr int64_t kNoLimit = int64_t{1} << 40;

std::string all_bytes(const std::string& path, size_t at_once) {
  const auto source = open_bytes(path);
  std::string text, buffer(at_once, '\0');
  while (const size_t n = source->read(buffer.data(), at_once)) text.append(buffer, 0, n);
  return text;
}

/// Nonrepeating text longer than one read.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 1'500'000; ++i) text += std::to_string(i) + " sheep jumped\n";
  return text;
}

TEST_CASE("plain, zstd, xz and gzip files give the same bytes, however few are asked for") {
  const TemporaryFolder folder;
  const std::string text = long_text();
  write_bytes(folder.file("a.txt"), text);
  write_bytes(folder.file("a.txt.zst"), zstd_of(text));
  write_bytes(folder.file("a.txt.xz"), xz_of(text));
  write_bytes(folder.file("a.txt.gz"), gzip_of(text));
  for (const char* name : {"a.txt", "a.txt.zst", "a.txt.xz", "a.txt.gz"}) {
    for (size_t at_once : {size_t{3}, size_t{4096}, size_t{10'000'000}}) {
      CHECK(all_bytes(folder.file(name), at_once) == text);
    }
  }
}

TEST_CASE("several frames, streams or members in one file are read one after the other") {
  const TemporaryFolder folder;
  const std::string text = long_text();
  write_bytes(folder.file("a.zst"), zstd_of(text) + zstd_of("") + zstd_of("end\n"));
  write_bytes(folder.file("a.xz"), xz_of(text) + xz_of("") + xz_of("end\n"));
  CHECK(all_bytes(folder.file("a.zst"), 65536) == text + "end\n");
  CHECK(all_bytes(folder.file("a.xz"), 65536) == text + "end\n");
  const std::string members = gzip_of(text) + gzip_of("") + gzip_of("end\n");
  for (const size_t zeros : {0, 1, 10'000}) {  // padding of a block, which gzip(1) skips too
    write_bytes(folder.file("a.gz"), members + std::string(zeros, '\0'));
    CHECK(all_bytes(folder.file("a.gz"), 65536) == text + "end\n");
  }
  write_bytes(folder.file("a.gz"), members + "more");
  CHECK(contains(error_of(ExitCode::data, [&] { all_bytes(folder.file("a.gz"), 65536); }),
                 "a.gz: damaged gzip data"));
}

// RFC 8878, section 3.1.2: 184D2A50 to 184D2A5F, the size, then that many bytes.
TEST_CASE("zstd may begin with a skippable frame, in a file in .zst and on standard input") {
  const TemporaryFolder folder;
  for (const char first : {'\x50', '\x5F'}) {
    const std::string frame = first + std::string("*M\x18\4\0\0\0abcd", 11);
    write_bytes(folder.file("a.txt.zst"), frame + zstd_of("one\n") + frame + zstd_of("two\n"));
    CHECK(all_bytes(folder.file("a.txt.zst"), 65536) == "one\ntwo\n");
    // lz4 has the same frames.
    write_bytes(folder.file("a.txt"), frame + zstd_of("one\n"));
    const std::string message = error_of(ExitCode::data, [&] { open_bytes(folder.file("a.txt")); });
    CHECK(contains(message, "found zstd or lz4, in a skippable frame"));
    CHECK(contains(message, "mv " + folder.file("a.txt") + " " + folder.file("a.txt.zst")));
    CHECK(begins_zstd("-", frame));
  }
  write_bytes(folder.file("b.txt.zst"), std::string("\x50*M\x18\0\0\0\0not zstd", 16));
  error_of(ExitCode::data, [&] { all_bytes(folder.file("b.txt.zst"), 65536); });
}

TEST_CASE("compression is recognised by the first bytes, whatever the name") {
  const TemporaryFolder folder;
  write_bytes(folder.file("a.txt"), zstd_of("hills\n"));
  CHECK(all_bytes(folder.file("a.txt"), 100) == "hills\n");
  write_bytes(folder.file("a.txt"), gzip_of("hills\n"));
  CHECK(all_bytes(folder.file("a.txt"), 100) == "hills\n");
  for (const char* name : {"b.txt.xz", "b.txt.zst", "b.txt.gz"}) {
    write_bytes(folder.file(name), "hills\n");
    const std::string message = error_of(ExitCode::data, [&] { open_bytes(folder.file(name)); });
    CHECK(contains(message, folder.file(name)));
  }
}

TEST_CASE(
    "compressed data that is cut off or has a flipped byte is refused, never given as whole") {
  const TemporaryFolder folder;
  const std::string text = long_text();
  const std::string path = folder.file("a.bin");
  for (const std::string& whole : {zstd_of(text), xz_of(text), gzip_of(text)}) {
    for (size_t keep : {size_t{6}, size_t{20}, whole.size() / 2, whole.size() - 1}) {
      write_bytes(path, whole.substr(0, keep));
      const std::string message = error_of(ExitCode::data, [&] { all_bytes(path, 65536); });
      CHECK(contains(message, path));
    }
  }
  // These formats check their content; zstd's one-call form does not.
  for (std::string flipped : {xz_of(text), gzip_of(text)}) {
    flipped[flipped.size() / 2] ^= 1;
    write_bytes(path, flipped);
    error_of(ExitCode::data, [&] { all_bytes(path, 65536); });
  }
}

TEST_CASE("a missing file and a folder are refused with their path") {
  const TemporaryFolder folder;
  CHECK(contains(error_of(ExitCode::io, [&] { open_bytes(folder.file("no.txt")); }), "no.txt"));
  CHECK(contains(error_of(ExitCode::io, [&] { open_bytes(folder.path()); }), "Is a directory"));
}

TEST_CASE("lines come with their number and offset, the last one with or without its newline") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt");
  struct Seen {
    std::string text;
    int64_t line, offset;
    bool newline;
    bool operator==(const Seen&) const = default;
  };
  const auto lines_of = [&](const std::string& text) {
    write_bytes(path, text);
    TextReader reader(path, kNoLimit);
    std::vector<Seen> seen;
    for (std::string_view line; reader.next(&line);) {
      seen.push_back({std::string(line), reader.line(), reader.offset(), reader.had_newline()});
    }
    return seen;
  };
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == std::vector<Seen>{{"", 1, 0, true}});
  CHECK(lines_of("a\n\nbc\r\nd") ==
        std::vector<Seen>{
            {"a", 1, 0, true}, {"", 2, 2, true}, {"bc\r", 3, 3, true}, {"d", 4, 7, false}});
  CHECK(lines_of("\xEF\xBB\xBFmark\nx") ==
        std::vector<Seen>{{"mark", 1, 3, true}, {"x", 2, 8, false}});
  CHECK(lines_of("\xEF\xBB\xBF").empty());
}

TEST_CASE("lines of any length around the size of a read are whole") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt");
  const std::vector<size_t> lengths = {262143, 0, 262144, 1, 262145, 1'000'000, 5};
  std::string text;
  for (size_t i = 0; i < lengths.size(); ++i) {
    text += std::string(lengths[i], static_cast<char>('a' + i)) + "\n";
  }
  write_bytes(path, text);
  TextReader reader(path, kNoLimit);
  std::string_view line;
  for (size_t i = 0; i < lengths.size(); ++i) {
    REQUIRE(reader.next(&line));
    CHECK(line == std::string(lengths[i], static_cast<char>('a' + i)));
  }
  CHECK_FALSE(reader.next(&line));
}

TEST_CASE("a line past the limit is refused by its number, one at the limit is not") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt");
  for (const std::string& end : {std::string("\n"), std::string()}) {
    write_bytes(path, "ab\n" + std::string(1000, 'x') + end);
    std::string_view line;
    TextReader fits(path, 1000);
    REQUIRE(fits.next(&line));
    REQUIRE(fits.next(&line));
    CHECK(line.size() == 1000);
    TextReader refuses(path, 999);
    REQUIRE(refuses.next(&line));
    const std::string message = error_of(ExitCode::data, [&] { refuses.next(&line); });
    CHECK(contains(message, path + ":2"));
    CHECK(contains(message, "--max-document-bytes"));
  }
}

TEST_CASE("the rest of a file is every byte of it, within the limit") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt");
  const std::string text = long_text();
  write_bytes(path, text);
  CHECK(TextReader(path, static_cast<int64_t>(text.size())).rest() == text);
  error_of(ExitCode::data, [&] { TextReader(path, static_cast<int64_t>(text.size()) - 1).rest(); });
}

TEST_CASE("bytes taken are those of the file, so that they end at its size") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt.zst");
  write_bytes(path, zstd_of(long_text()));
  TextReader reader(path, kNoLimit);
  for (std::string_view line; reader.next(&line);) continue;
  REQUIRE(file_bytes(path).has_value());
  CHECK(reader.taken() == *file_bytes(path));
  CHECK_FALSE(file_bytes("-").has_value());
}

}  // namespace
}  // namespace bamtrain
