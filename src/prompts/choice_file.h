#pragma once
// A file of questions with choices.

#include <cstdint>
#include <string>
#include <vector>

#include "prompts/choice_format.h"

namespace bamtrain {

struct ChoiceFile {
  const ChoiceFormat* format = nullptr;
  std::vector<ChoiceExample> examples;
  std::string sha256;  // of the file's bytes
};

/// The first `most` questions of the file, of that format, or, where it is null, of the one that
/// the first record's fields tell. Error (ExitCode::data) naming file and line: those of the
/// format, and for a choice without anything but white space; else as read_records.
ChoiceFile read_choice_file(const std::string& path, const ChoiceFormat* format, int64_t most);

/// Puts what stands before every question in front of its contexts: its lead and `shots` solved
/// ones, the first of the file at `shots_path` that are of its group. Error (ExitCode::data): that
/// file has fewer, or as read_choice_file. No shots, no file.
void prepend_few_shot(ChoiceFile* file, const std::string& shots_path, int64_t shots);

}  // namespace bamtrain
