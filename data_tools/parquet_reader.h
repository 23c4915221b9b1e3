#pragma once
// Reads texts of parquet files with pyarrow in separate processes; the program embeds their script,
// parquet_rows.py.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data_tools/documents.h"

namespace bamtrain {

/// Iterates over the rows of one column of several files, in order. `processes` processes decode
/// row groups ahead, in turn; a pipe limits how far. They end with their reader.
class ParquetReader {
 public:
  /// Command line of a process: a program on PATH and its first arguments.
  using Command = std::vector<std::string>;
  /// Runs parquet_rows.py in Python.
  static Command python();

  /// REQUIRES: files, processes >= 1. Throws Error (device) if a process cannot be started.
  ParquetReader(std::vector<std::string> files, std::string column, int processes,
                int64_t max_document_bytes, const Command& command = python());
  ~ParquetReader();
  ParquetReader(const ParquetReader&) = delete;
  ParquetReader& operator=(const ParquetReader&) = delete;

  /// Reads the next row's text; null becomes an empty text. `line` is the row's number in its file,
  /// from 1. Returns false at the end of the last file. Throws Error (data) with file and row group
  /// for damaged files, other columns, and a process that ended early. Throws Error (io) if reading
  /// fails, and Error (device) if pyarrow is missing, with the command to install it.
  bool next(RawDocument* document);

  /// File index of the last returned row.
  size_t file() const { return file_; }
  /// Bytes on disk of its file, up to the end of its row group.
  int64_t taken() const { return taken_; }

 private:
  struct Process {
    pid_t id = -1;
    int pipe = -1, errors = -1;
  };
  struct Header {
    char letter;
    uint64_t a, b, c;
  };

  void start(const Command& command, int part, int parts);
  void stop();
  /// Reads exactly `n` bytes from the current process.
  void read(void* out, size_t n);
  Header read_header();
  /// Reads the next message; false at the end.
  bool advance();
  void begin_group(const Header& h);
  void read_batch(const Header& h);
  [[noreturn]] void fail(const Header& h);
  [[noreturn]] void ended_early(const std::string& how);
  std::string where() const;

  std::vector<std::string> files_;
  std::string column_;
  int64_t max_document_bytes_;
  std::vector<Process> processes_;
  size_t turn_ = 0;      // process of the current row group
  uint64_t groups_ = 0;  // row groups read completely
  size_t file_ = 0;
  int64_t group_ = -1, row_ = 0, taken_ = 0;
  std::vector<int32_t> lengths_;  // of the current batch
  std::string texts_;             // texts of its rows, concatenated
  size_t next_ = 0, at_ = 0;      // next row, and its start
};

}  // namespace bamtrain
