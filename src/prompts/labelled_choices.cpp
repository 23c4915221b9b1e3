#include "prompts/labelled_choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/join.h"
#include "prompts/record_file.h"

namespace bamtrain {

LabelledChoices::LabelledChoices(const JsonObject& record) : where_(record.where()) {
  const JsonObject choices = record.object("choices");
  texts = texts_of(choices, "text");
  labels = texts_of(choices, "label");
  if (texts.size() != labels.size()) {
    (choices.where() / "label")
        .refuse(fmt::format("a label for each of {} texts", texts.size()),
                fmt::format("{}", labels.size()));
  }
}

size_t LabelledChoices::labelled(std::string_view label) const {
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found == labels.end()) {
    (where_ / "answerKey").refuse("one of " + join(labels), fmt::format("\"{}\"", label));
  }
  return static_cast<size_t>(found - labels.begin());
}

}  // namespace bamtrain
