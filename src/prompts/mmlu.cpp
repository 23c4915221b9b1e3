// MMLU (cais/mmlu): the letter of the answer, in 57 subjects.

#include <nlohmann/json.hpp>

#include "prompts/choice_format.h"
#include "prompts/python_text.h"
#include "prompts/record_file.h"

namespace bamtrain {

namespace {

ChoiceExample read_mmlu(const JsonObject& record) {
  const std::vector<std::string> choices = texts_of(record, "choices");
  if (choices.size() != 4) {
    (record.where() / "choices").refuse("four texts", record.list("choices").dump());
  }
  const std::string question = record.text("question"), subject = record.text("subject");
  ChoiceExample e =
      asked(std::string(without_space_around(question)) + "\nA. " + choices[0] + "\nB. " +
                choices[1] + "\nC. " + choices[2] + "\nD. " + choices[3] + "\nAnswer:",
            {"A", "B", "C", "D"}, index_of(record, "answer", choices.size()));
  e.group = subject;
  e.lead = "The following are multiple choice questions (with answers) about " +
           replaced(subject, "_", " ") + ".\n\n";
  return e;
}

}  // namespace

ChoiceFormat mmlu_format() {
  return {"mmlu",    "MMLU", {"question", "subject", "choices", "answer"},
          "subject", false,  read_mmlu};
}

}  // namespace bamtrain
