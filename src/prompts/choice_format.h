#pragma once
// The data sets of multiple choice: how a record of each becomes a question. Prompts are those of
// lm-evaluation-harness 0.4.13, to the byte; that each of a record's choices is more than white
// space is seen to by who reads the file (choice_file.h).

#include <string>
#include <vector>

#include "core/json_object.h"
#include "prompts/choice_example.h"

namespace bamtrain {

struct ChoiceFormat {
  std::string name, benchmark;      // the second for people: "PIQA"
  std::vector<std::string> fields;  // that its records have, and by which it is known
  std::string group;                // what its scores are told by: "subject"; empty: nothing
  bool normalized;                  // scores are also taken by the choices' sizes
  /// Error (ExitCode::data) naming file and line for fields that are not there or of another type,
  /// and for an answer that is none of the choices.
  ChoiceExample (*read)(const JsonObject& record);
};

ChoiceFormat arc_format();
ChoiceFormat hellaswag_format();
ChoiceFormat longbench_v2_format();
ChoiceFormat mmlu_format();
ChoiceFormat openbookqa_format();
ChoiceFormat piqa_format();
ChoiceFormat winogrande_format();
/// Ready-made prompts, which stand as they are.
ChoiceFormat query_format();
ChoiceFormat endings_format();

const std::vector<ChoiceFormat>& choice_formats();
std::vector<std::string> choice_format_names();

/// The format of that name. Error (ExitCode::usage) at `where`: there is none.
const ChoiceFormat& choice_format(const std::string& name, const std::string& where);

/// The format whose fields the record has; one does not count whose fields are a part of those of
/// another that the record has too. Error (ExitCode::data): none, or several, with how to say
/// which.
const ChoiceFormat& recognised_format(const JsonObject& record);

}  // namespace bamtrain
