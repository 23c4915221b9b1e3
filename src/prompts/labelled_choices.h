#pragma once
// {"choices": {"text": [...], "label": ["A", ...]}, "answerKey": "A"}: choices with labels, letters
// or numbers, one of which is the answer.

#include <string>
#include <string_view>
#include <vector>

#include "core/json_object.h"

namespace bamtrain {

struct LabelledChoices {
  std::vector<std::string> texts, labels;

  /// Throws Error (ExitCode::data) if the choices are missing or not each has a label.
  explicit LabelledChoices(const JsonObject& record);

  /// The first choice with that label, the record's "answerKey". Throws Error (ExitCode::data) if
  /// no choice has it.
  size_t labelled(std::string_view label) const;

 private:
  JsonPlace where_;
};

}  // namespace bamtrain
