#pragma once
// Requests: texts whose log-probability behind a context is asked for.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

struct TextRequest {
  std::string context, continuation;
  int64_t line = 0;  // of its file
};

struct RequestFile {
  std::vector<TextRequest> requests;
  std::string sha256;  // of the file's bytes
};

/// The first `most` lines {"context", "continuation"} of the file, as they are; as OLMES and
/// lm-evaluation-harness keep them, {"request": {"context", "continuation"}}, too. Error
/// (ExitCode::data) naming file and line for an empty continuation; else as read_records.
RequestFile read_request_file(const std::string& path, int64_t most);

/// LAMBADA's, {"text"}: the last word, what follows the last space, with that space, behind all
/// before it. Error (ExitCode::data) naming file and line for a text that ends with a space; else
/// as read_records.
RequestFile read_cloze_file(const std::string& path, int64_t most);

}  // namespace bamtrain
