// ARC, easy and challenge (allenai/ai2_arc).

#include "prompts/choice_format.h"
#include "prompts/labelled_choices.h"

namespace bamtrain {

namespace {

ChoiceExample read_arc(const JsonObject& record) {
  const LabelledChoices choices(record);
  return asked("Question: " + record.text("question") + "\nAnswer:", choices.texts,
               choices.labelled(record.text("answerKey")));
}

}  // namespace

ChoiceFormat arc_format() {
  return {"arc", "ARC", {"question", "choices", "answerKey"}, "", true, read_arc};
}

}  // namespace bamtrain
