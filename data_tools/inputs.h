#pragma once
// All inputs of a command as one stream of documents.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data_tools/document_text.h"
#include "data_tools/documents.h"
#include "data_tools/parquet_reader.h"

namespace bamtrain {

/// Input options of `tokenize` and `train-tokenizer`.
struct InputOptions {
  std::vector<std::string> paths;    // read in this order; "-" is standard input
  std::string format;                // "txt", "jsonl" or empty: by the name (except parquet)
  std::optional<DocumentKind> kind;  // empty: not set
  std::string field = "text";        // field of JSON lines; column of parquet
  InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
  int64_t max_document_bytes = int64_t{1} << 30;
  int parquet_processes = 1;  // processes that decode parquet ahead
};

class Inputs {
 public:
  /// Checks every input before reading the first. Throws Error (usage) if an input's kind is
  /// unclear or an input is named twice, Error (data) for an input that is not text
  /// (refuse_binary), and Error (io) for a missing file.
  explicit Inputs(InputOptions options);

  /// A position between two documents: all inputs before `input`, and its first `documents`
  /// documents, were returned.
  struct Position {
    size_t input = 0;
    int64_t documents = 0;
  };
  Position position() const { return {current_, documents_}; }
  /// Seeks to a position; documents of that input are read and dropped. Errors: as next; Error
  /// (data) if there is no such input or it has fewer documents; Interrupted. REQUIRES: no document
  /// was read.
  void skip_to(const Position& position);

  /// Reads the next document of any input; returns false at the end of the last. Errors: as
  /// DocumentReader::next.
  bool next(RawDocument* document);

  /// Warnings about the inputs that were read to their end (DocumentReader::warning).
  const std::vector<std::string>& warnings() const { return warnings_; }

  const InputOptions& options() const { return options_; }
  /// Input of the last returned document.
  const std::string& path() const { return options_.paths[current_]; }
  DocumentKind kind() const { return kinds_[current_]; }

  int64_t taken() const;  // bytes read from the files so far, compressed
  std::optional<int64_t> total_bytes() const { return total_bytes_; }  // nullopt with pipes

 private:
  InputOptions options_;
  std::vector<DocumentKind> kinds_;
  std::optional<int64_t> total_bytes_ = 0;
  size_t current_ = 0;
  int64_t documents_ = 0;  // returned from the current input
  /// The next document of the current input or, for parquet, of the current run of inputs; false at
  /// the end.
  bool next_at_hand(RawDocument* document);

  std::vector<int64_t> before_ = {0};  // bytes of all inputs before each; unknown ones count 0
  std::optional<DocumentReader> reader_;
  std::unique_ptr<ParquetReader> parquet_;  // for inputs from parquet_begin_ on
  size_t parquet_begin_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace bamtrain
