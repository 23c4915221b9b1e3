#pragma once
// Texts of parquet files, read by pyarrow in processes of its own: parquet_rows.py, which the
// program carries in itself.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data_tools/documents.h"

namespace bamtrain {

/// The rows of one column of several files, in their order. As many processes as are asked for
/// decode row groups ahead, each the next one of its own; a pipe holds them back. They end with
/// their reader.
class ParquetReader {
 public:
  /// How a process is started: a program on PATH and its first arguments.
  using Command = std::vector<std::string>;
  /// Python with parquet_rows.py.
  static Command python();

  /// REQUIRES: files, processes >= 1. Error (device) where no process can be started.
  ParquetReader(std::vector<std::string> files, std::string column, int processes,
                int64_t max_document_bytes, const Command& command = python());
  ~ParquetReader();
  ParquetReader(const ParquetReader&) = delete;
  ParquetReader& operator=(const ParquetReader&) = delete;

  /// The text of the next row; a null is a text without characters. `line` is the row's number in
  /// its file, from 1. False at the end of the last file. Error (data) for damaged files, other
  /// columns, and a process that ended before the end, naming file and row group; Error (io) for
  /// what cannot be read; Error (device) where pyarrow is missing, with the command that installs
  /// it.
  bool next(RawDocument* document);

  /// Of the row last returned.
  size_t file() const { return file_; }
  /// Bytes of its file up to the end of its row group, as it lies on the disk.
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
  /// Exactly `n` bytes of the process whose turn it is.
  void read(void* out, size_t n);
  Header read_header();
  /// What comes next is read; false at the end.
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
  size_t turn_ = 0;      // the process whose row group is read
  uint64_t groups_ = 0;  // read to their ends
  size_t file_ = 0;
  int64_t group_ = -1, row_ = 0, taken_ = 0;
  std::vector<int32_t> lengths_;  // of the batch at hand
  std::string texts_;             // of its rows, one behind the other
  size_t next_ = 0, at_ = 0;      // the row to come, and where it begins
};

}  // namespace bamtrain
