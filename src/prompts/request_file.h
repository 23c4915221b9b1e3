#pragma once
// Requests: continuations whose log-probability given a context is wanted.

#include <cstdint>
#include <string>
#include <vector>

namespace bamtrain {

struct TextRequest {
  std::string context, continuation;
  int64_t line = 0;  // line in its file
};

struct RequestFile {
  std::vector<TextRequest> requests;
  std::string sha256;  // SHA-256 of the file
};

/// Reads the first `most` lines {"context", "continuation"} of the file verbatim; also the format
/// of OLMES and lm-evaluation-harness, {"request": {"context", "continuation"}}. Throws Error
/// (ExitCode::data) with file and line for an empty continuation; other errors as read_records.
RequestFile read_request_file(const std::string& path, int64_t most);

/// Reads LAMBADA's format, {"text"}. The continuation is the last space and the word after it; the
/// context is everything before. Throws Error (ExitCode::data) with file and line for a text that
/// ends with a space; other errors as read_records.
RequestFile read_cloze_file(const std::string& path, int64_t most);

}  // namespace bamtrain
