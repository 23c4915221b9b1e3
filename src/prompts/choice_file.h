#pragma once
// A file of multiple-choice questions.

#include <cstdint>
#include <string>
#include <vector>

#include "prompts/choice_format.h"

namespace bamtrain {

struct ChoiceFile {
  const ChoiceFormat* format = nullptr;
  std::vector<ChoiceExample> examples;
  std::string sha256;  // SHA-256 of the file
};

/// Reads the first `most` questions of the file. If `format` is null, the first record's fields
/// determine it. Throws Error (ExitCode::data) with file and line: the format's errors, and a
/// choice of white space only. Other errors: as read_records.
ChoiceFile read_choice_file(const std::string& path, const ChoiceFormat* format, int64_t most);

/// Prepends to each question's contexts its lead and `shots` solved examples, the first of its
/// group in the file at `shots_path`. Throws Error (ExitCode::data) if that file has fewer; other
/// errors as read_choice_file. Reads no file if `shots` is 0.
void prepend_few_shot(ChoiceFile* file, const std::string& shots_path, int64_t shots);

}  // namespace bamtrain
