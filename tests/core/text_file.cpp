#include "core/text_file.h"

#include <string>

#include "catch.h"
#include "core/line_reader.h"
#include "core/sha256.h"
#include "data/files.h"

namespace bamtrain {
namespace {

using namespace testing;
using namespace std::string_literals;

const std::string kLine = "the northern hills\n";

/// gzip.compress(b"the northern hills\n" * 3, mtime=0) in Python 3.11.
const std::string kCompressed =
    "\x1F\x8B\x08\0\0\0\0\0\x02\x03\x2B\xC9\x48\x55\xC8\xCB\x2F\x2A\xC9\x48\x2D\xCA\x53\xC8\xC8\xCC"
    "\xC9"
    "\x29\xE6\x2A\x21\x4A\x08\0\xB6\xF4\xA8\xB1\x39\0\0\0"s;

TEST_CASE("text in gzip is read as the text itself, whatever the name") {
  const TemporaryFolder folder;
  const std::string text = kLine + kLine + kLine;
  write_bytes(folder.file("plain"), text);
  write_bytes(folder.file("packed"), kCompressed);
  write_bytes(folder.file("twice.gz"), kCompressed + kCompressed);
  for (const auto& [name, times] : {std::pair("plain", 1), {"packed", 1}, {"twice.gz", 2}}) {
    INFO(name);
    const InputFile file = open_text_file(folder.file(name), "look elsewhere");
    const std::string whole = times == 1 ? text : text + text;
    CHECK(file.text(1000) == whole);
    CHECK(file.sha256() == sha256_hex(whole));
    CHECK(file.path() == folder.file(name));
    LineReader lines(file);
    int64_t count = 0;
    for (std::string_view line; lines.next(&line); ++count) CHECK(line == "the northern hills");
    CHECK(count == 3 * times);
  }
  for (const char* shorter : {"", "\x1F"}) {
    write_bytes(folder.file("short"), shorter);
    CHECK(open_text_file(folder.file("short"), "").text(1) == shorter);
  }
}

TEST_CASE("gzip that is cut or damaged is refused by its path, and so is what is not there") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl.gz");
  const auto refused = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    CHECK(contains(error_of(ExitCode::data, [&] { open_text_file(path, ""); }),
                   path + ": damaged gzip data"));
  };
  for (size_t keep = 2; keep < kCompressed.size(); ++keep) refused(kCompressed.substr(0, keep));
  std::string flipped = kCompressed;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  refused(flipped);
  refused(kCompressed + "more");
  CHECK(
      contains(error_of(ExitCode::io, [&] { open_text_file(folder.file("no"), "look"); }), "look"));
}

}  // namespace
}  // namespace bamtrain
