// OpenBookQA (allenai/openbookqa, main): only the question stem, without the book's facts.

#include "prompts/choice_format.h"
#include "prompts/labelled_choices.h"
#include "prompts/python_text.h"

namespace bamtrain {

namespace {

ChoiceExample read_openbookqa(const JsonObject& record) {
  const LabelledChoices choices(record);
  const std::string answer = record.text("answerKey");
  return asked(record.text("question_stem"), choices.texts,
               choices.labelled(without_space_around(answer)));
}

}  // namespace

ChoiceFormat openbookqa_format() {
  return {"openbookqa", "OpenBookQA", {"question_stem", "choices", "answerKey"},
          "",           true,         read_openbookqa};
}

}  // namespace bamtrain
