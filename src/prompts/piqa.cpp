// PIQA (baber/piqa): two ways to reach a goal.

#include "prompts/choice_format.h"
#include "prompts/record_file.h"

namespace bamtrain {

namespace {

ChoiceExample read_piqa(const JsonObject& record) {
  return asked("Question: " + record.text("goal") + "\nAnswer:",
               {record.text("sol1"), record.text("sol2")}, index_of(record, "label", 2));
}

}  // namespace

ChoiceFormat piqa_format() {
  return {"piqa", "PIQA", {"goal", "sol1", "sol2", "label"}, "", true, read_piqa};
}

}  // namespace bamtrain
