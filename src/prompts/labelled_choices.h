#pragma once
// {"choices": {"text": [...], "label": ["A", ...]}, "answerKey": "A"}: choices with the labels that
// the answer is told by, letters or numbers.

#include <string>
#include <string_view>
#include <vector>

#include "core/json_object.h"

namespace bamtrain {

struct LabelledChoices {
  std::vector<std::string> texts, labels;

  /// Error (ExitCode::data): no such choices, or not a label for each.
  explicit LabelledChoices(const JsonObject& record);

  /// The first choice with that label, which the record has under "answerKey". Error
  /// (ExitCode::data): none has it.
  size_t labelled(std::string_view label) const;

 private:
  JsonPlace where_;
};

}  // namespace bamtrain
