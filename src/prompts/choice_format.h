#pragma once
// Multiple-choice data sets: how each one's record becomes a question. Prompts are byte for byte
// those of lm-evaluation-harness 0.4.13. The reader of the file checks that each choice is more
// than white space (choice_file.h).

#include <string>
#include <vector>

#include "core/json_object.h"
#include "prompts/choice_example.h"

namespace bamtrain {

struct ChoiceFormat {
  std::string name, benchmark;      // benchmark: display name, "PIQA"
  std::vector<std::string> fields;  // fields of its records; they identify the format
  std::string group;                // field that groups its scores: "subject"; empty: no groups
  bool normalized;                  // scores are also normalized by the choices' lengths
  /// Throws Error (ExitCode::data) with file and line for missing fields, fields of another type,
  /// and an answer that is not one of the choices.
  ChoiceExample (*read)(const JsonObject& record);
};

ChoiceFormat arc_format();
ChoiceFormat hellaswag_format();
ChoiceFormat longbench_v2_format();
ChoiceFormat mmlu_format();
ChoiceFormat openbookqa_format();
ChoiceFormat piqa_format();
ChoiceFormat winogrande_format();
/// Ready-made prompts, used verbatim.
ChoiceFormat query_format();
ChoiceFormat endings_format();

const std::vector<ChoiceFormat>& choice_formats();
std::vector<std::string> choice_format_names();

/// The format of that name. Throws Error (ExitCode::usage) at `where` if there is no such format.
const ChoiceFormat& choice_format(const std::string& name, const std::string& where);

/// The format whose fields the record has. Ignores a format whose fields are a subset of those of
/// another match. Throws Error (ExitCode::data) for no match or several, with a hint how to choose.
const ChoiceFormat& recognised_format(const JsonObject& record);

}  // namespace bamtrain
