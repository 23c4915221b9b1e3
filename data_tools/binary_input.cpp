#include "data_tools/binary_input.h"

#include <filesystem>

#include "core/error.h"

namespace bamtrain {
namespace {

using namespace std::string_view_literals;

/// In a command, IN is replaced by the input, BARE by its path without the last suffix.
struct Format {
  std::string_view magic;
  const char* name;
  const char* command;
};

constexpr Format kFormats[] = {
    {"PAR1", "parquet in a stream", "name the file: its end is read first"},
    {"ARROW1", "an Arrow file",
     "python3 -c 'import pandas; pandas.read_feather(\"IN\").to_json(\"BARE.jsonl\", "
     "orient=\"records\", lines=True)'"},
    {"\xFF\xFF\xFF\xFF", "an Arrow stream, as Hugging Face's datasets keep it",
     "python3 -c 'import datasets; datasets.Dataset.from_file(\"IN\").to_json(\"BARE.jsonl\")'"},
    {"\x1F\x9D", "compress", "zcat IN >BARE"},
    {"\x04\x22\x4D\x18", "lz4", "lz4 -dc IN >BARE"},
    {"\x02\x21\x4C\x18", "lz4", "lz4 -dc IN >BARE"},
    {"LZIP\1", "lzip", "lzip -dc IN >BARE"},
    {"\x5D\0\0"sv, "lzma", "xz -dc IN >BARE"},
    {"\x89LZO\0"sv, "lzop", "lzop -dc IN >BARE"},
    {"\xFF\6\0\0sNaPpY"sv, "snappy", "snzip -dc IN >BARE"},
    {"PK\3\4", "a zip archive", "unzip IN"},
    {"PK\5\6", "an empty zip archive", "fetch the file again"},
    {"Rar!\x1A\7", "a rar archive", "unrar x IN"},
    {"7z\xBC\xAF\x27\x1C", "a 7z archive", "7z x IN"},
    {"%PDF-", "PDF", "pdftotext IN BARE.txt"},
    {"Obj\1", "Avro", "java -jar avro-tools.jar tojson IN >BARE.jsonl"},
    {"SQLite format 3\0"sv, "an SQLite database", "sqlite3 IN, which exports its tables"},
    {"\x89HDF\r\n\x1A\n", "HDF5", "python3, whose h5py reads it"},
    {"\x93NUMPY", "an array of NumPy", "python3, whose numpy.load reads it"},
    {"\xFF\xFE\0\0"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 IN >BARE.utf8.txt"},
    {"\0\0\xFE\xFF"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 IN >BARE.utf8.txt"},
    {"\xFF\xFE"sv, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 IN >BARE.utf8.txt"},
    {"\xFE\xFF"sv, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 IN >BARE.utf8.txt"},
};

std::string filled(const std::string& command, const std::string& path) {
  const std::string bare = std::filesystem::path(path).replace_extension().string();
  std::string text;
  for (size_t at = 0; at < command.size();) {
    if (command.compare(at, 4, "BARE") == 0) {
      text += bare;
      at += 4;
    } else if (command.compare(at, 2, "IN") == 0) {
      text += path;
      at += 2;
    } else {
      text += command[at++];
    }
  }
  return text;
}

/// The fourth byte is the block size, 1 to 9 times 100 kB.
bool begins_bzip2(std::string_view start) {
  return start.size() > 4 && start.starts_with("BZh") && start.substr(4).starts_with("1AY&SY");
}

bool begins_skippable_frame(std::string_view start) {
  return start.size() >= 4 && (start[0] & 0xF0) == 0x50 && start.substr(1).starts_with("*M\x18");
}

}  // namespace

void refuse_binary(const std::string& path, std::string_view start) {
  const auto refuse = [&](const char* name, const char* command) {
    throw Error(ExitCode::data, path,
                "text or JSON lines, plain or compressed with zstd, xz or gzip", name,
                filled(command, path == "-" ? "FILE" : path));
  };
  if (begins_bzip2(start)) refuse("bzip2", "bzcat IN >BARE");
  if (begins_skippable_frame(start) && !begins_zstd(path, start)) {
    refuse("zstd or lz4, in a skippable frame", "where it is zstd, mv IN IN.zst");
  }
  for (const Format& f : kFormats) {
    if (start.starts_with(f.magic)) refuse(f.name, f.command);
  }
}

bool begins_zstd(const std::string& path, std::string_view start) {
  if (start.starts_with("\x28\xB5\x2F\xFD")) return true;
  return begins_skippable_frame(start) && (path == "-" || path.ends_with(".zst"));
}

}  // namespace bamtrain
