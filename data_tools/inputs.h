#pragma once
// All inputs of a command, as one stream of documents.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data_tools/document_text.h"
#include "data_tools/documents.h"
#include "data_tools/parquet_reader.h"

namespace bamtrain {

/// What `tokenize` and `train-tokenizer` are told about their text.
struct InputOptions {
  std::vector<std::string> paths;    // read in this order; "-" is standard input
  std::string format;                // "txt", "jsonl", or empty: by the name (not of parquet)
  std::optional<DocumentKind> kind;  // empty: none given
  std::string field = "text";        // of JSON lines; a column of parquet
  InvalidUtf8 invalid_utf8 = InvalidUtf8::error;
  int64_t max_document_bytes = int64_t{1} << 30;
  int parquet_processes = 1;  // that decode parquet ahead
};

class Inputs {
 public:
  /// Looks at every input before the first is read. Error (usage) where an input's kind is not
  /// clear or one is named twice, Error (data) where one is no text (refuse_binary), Error (io)
  /// where a file is not there.
  explicit Inputs(InputOptions options);

  /// Between two documents: so many of an input were returned, and all of those before it.
  struct Position {
    size_t input = 0;
    int64_t documents = 0;
  };
  Position position() const { return {current_, documents_}; }
  /// Goes there; of the input itself documents are read and dropped. Errors: as next; (data) where
  /// there is no such input, or it has fewer; Interrupted. REQUIRES: no document was read.
  void skip_to(const Position& position);

  /// The next document of any input; false at the end of the last. Errors: as DocumentReader::next.
  bool next(RawDocument* document);

  /// What the user should know of the inputs read so far to their ends (DocumentReader::warning).
  const std::vector<std::string>& warnings() const { return warnings_; }

  const InputOptions& options() const { return options_; }
  /// Of the document last returned.
  const std::string& path() const { return options_.paths[current_]; }
  DocumentKind kind() const { return kinds_[current_]; }

  int64_t taken() const;  // bytes of the files read so far, compressed as they are
  std::optional<int64_t> total_bytes() const { return total_bytes_; }  // unknown with pipes

 private:
  InputOptions options_;
  std::vector<DocumentKind> kinds_;
  std::optional<int64_t> total_bytes_ = 0;
  size_t current_ = 0;
  int64_t documents_ = 0;  // of the current one, returned so far
  /// The next document of the input or, of parquet, of the inputs at hand; false at their end.
  bool next_at_hand(RawDocument* document);

  std::vector<int64_t> before_ = {0};  // bytes of the inputs before each; unknown ones count 0
  std::optional<DocumentReader> reader_;
  std::unique_ptr<ParquetReader> parquet_;  // of inputs from parquet_begin_ on
  size_t parquet_begin_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace bamtrain
