#include "data_tools/binary_input.h"

#include <string>

#include "catch.h"
#include "data_tools/inputs.h"
#include "tools/support.h"

namespace bamtrain {
namespace {

using namespace testing;
using namespace std::string_literals;

TEST_CASE("a format that is no text is told by its first bytes, with a command that makes text") {
  struct Case {
    std::string start, name, command;
  };
  // From the formats' specifications: Parquet and Arrow, bzip2, lz4, xz's for lzma, lzip, APPNOTE,
  // RAR, Avro, SQLite, HDF5, NumPy, PDF, Unicode; and from file(1) for compress, lzop and snappy.
  const std::vector<Case> cases = {
      {"PAR1\x15\x04\x15"s, "parquet in a stream", "name the file"},
      {"ARROW1\0\0"s, "an Arrow file", "pandas.read_feather(\"d/a.x\").to_json(\"d/a.jsonl\""},
      {"\xFF\xFF\xFF\xFF\x10\1\0\0"s, "an Arrow stream",
       "datasets.Dataset.from_file(\"d/a.x\").to_json(\"d/a.jsonl\")"},
      {"BZh91AY&SYxx"s, "bzip2", "bzcat d/a.x >d/a"},
      {"BZh11AY&SYxx"s, "bzip2", "bzcat d/a.x >d/a"},
      {"\x04\x22\x4D\x18\x64\x40\xA7"s, "lz4", "lz4 -dc d/a.x >d/a"},
      {"\x02\x21\x4C\x18\x10\0\0\0"s, "lz4", "lz4 -dc d/a.x >d/a"},
      {"\x1F\x9D\x90"s, "compress", "zcat d/a.x >d/a"},
      {"\x5D\0\0\x80\0"s, "lzma", "xz -dc d/a.x >d/a"},
      {"LZIP\1\x0C"s, "lzip", "lzip -dc d/a.x >d/a"},
      {"\x89LZO\0\r\n\x1A\n"s, "lzop", "lzop -dc d/a.x >d/a"},
      {"\xFF\6\0\0sNaPpY"s, "snappy", "snzip -dc d/a.x >d/a"},
      {"\x5A*M\x18\4\0\0\0"s, "a skippable frame", "mv d/a.x d/a.x.zst"},
      {"Rar!\x1A\7\1\0"s, "a rar archive", "unrar x d/a.x"},
      {"Obj\1\4\x14"s, "Avro", "avro-tools"},
      {"SQLite format 3\0"s, "an SQLite database", "sqlite3 d/a.x"},
      {"\x89HDF\r\n\x1A\n"s, "HDF5", "h5py"},
      {"\x93NUMPY\1\0"s, "an array of NumPy", "numpy.load"},
      {"\xFF\xFE\0\0h\0\0\0"s, "UTF-32", "iconv -f UTF-32 -t UTF-8 d/a.x >d/a.utf8.txt"},
      {"\0\0\xFE\xFF\0\0\0h"s, "UTF-32", "iconv -f UTF-32"},
      {"PK\3\4\x14"s, "a zip archive", "unzip d/a.x"},
      {"7z\xBC\xAF\x27\x1C\0\4"s, "a 7z archive", "7z x d/a.x"},
      {"%PDF-1.7\n"s, "PDF", "pdftotext d/a.x d/a.txt"},
      {"\xFF\xFEh\0i\0"s, "UTF-16", "iconv -f UTF-16 -t UTF-8 d/a.x >d/a.utf8.txt"},
      {"\xFE\xFF\0h\0i"s, "UTF-16", "iconv -f UTF-16"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string message = error_of(ExitCode::data, [&] { refuse_binary("d/a.x", c.start); });
    CHECK(contains(message, "d/a.x: expected text or JSON lines"));
    CHECK(contains(message, c.name));
    CHECK(contains(message, "; "));
    CHECK(contains(message, c.command));
  }
  for (const std::string& text :
       {"PAR"s, "PARIS"s, ""s, "BZh"s, "Obj"s, "P*M"s, "LZIP"s, "{\"text\""s, "\xEF\xBB\xBFhi"s}) {
    refuse_binary("a.txt", text);
  }
}

TEST_CASE("whatever its name, its format and its document, a binary input is told as such") {
  const TemporaryFolder folder;
  for (const char* name : {"a.parquet", "a.txt", "a.jsonl", "a"}) {
    const std::string path = folder.file(name);
    write_bytes(path, "ARROW1\0\0"s);
    InputOptions o;
    o.paths = {path};
    o.kind = DocumentKind::line;
    const std::string message = error_of(ExitCode::data, [&] { Inputs{o}; });
    if (std::string(name) == "a.parquet") {
      CHECK(contains(message, path + ": not a parquet file: it does not begin with PAR1"));
      continue;
    }
    CHECK(contains(message, path + ": expected text or JSON lines, plain or compressed with zstd, "
                                   "xz or gzip, found an Arrow file"));
    CHECK(contains(message, "pandas.read_feather(\"" + path + "\")"));
  }
  // Read as input from a pipe.
  CHECK(contains(error_of(ExitCode::data, [&] { open_bytes(folder.file("a")); }), "Arrow"));
  // Parquet is recognised, and needs no kind of document.
  write_bytes(folder.file("b"), "PAR1\x15\x04");
  InputOptions o;
  o.paths = {folder.file("b")};
  CHECK(Inputs(o).kind() == DocumentKind::row);
  CHECK(contains(error_of(ExitCode::data, [&] { open_bytes(folder.file("b")); }), "parquet"));
}

}  // namespace
}  // namespace bamtrain
