#include "data_tools/binary_input.h"

#include <filesystem>

#include "core/error.h"

namespace bamtrain {
namespace {

using namespace std::string_view_literals;

/// In a command IN stands for the input, BARE for its path without the last suffix.
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
    {"\x1F\x8B", "gzip", "zcat IN >BARE"},
    {"BZh91AY&SY", "bzip2", "bzcat IN >BARE"},
    {"PK\3\4", "a zip archive", "unzip IN"},
    {"7z\xBC\xAF\x27\x1C", "a 7z archive", "7z x IN"},
    {"%PDF-", "PDF", "pdftotext IN BARE.txt"},
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

}  // namespace

void refuse_binary(const std::string& path, std::string_view start) {
  for (const Format& f : kFormats) {
    if (!start.starts_with(f.magic)) continue;
    throw Error(ExitCode::data, path, "text or JSON lines, plain or compressed by zstd or xz",
                f.name, filled(f.command, path == "-" ? "FILE" : path));
  }
}

}  // namespace bamtrain
