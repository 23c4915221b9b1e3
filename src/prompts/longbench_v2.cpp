// LongBench v2 (THUDM/LongBench-v2): the letter of the answer to a question about a long text.

#include "prompts/choice_format.h"
#include "prompts/python_text.h"

namespace bamtrain {

namespace {

ChoiceExample read_longbench_v2(const JsonObject& record) {
  const std::string question = record.text("question"), answer = record.text("answer");
  if (answer.size() != 1 || answer[0] < 'A' || answer[0] > 'D') {
    (record.where() / "answer").refuse("one of A, B, C, D", "\"" + answer + "\"");
  }
  ChoiceExample e = asked(
      "Please read the following text and answer the question below.\n\n<text>\n" +
          record.text("context") + "\n</text>\n\nWhat is the correct answer to this question: " +
          std::string(without_space_around(question)) + "\nChoices:\n(A) " +
          record.text("choice_A") + "\n(B) " + record.text("choice_B") + "\n(C) " +
          record.text("choice_C") + "\n(D) " + record.text("choice_D") + "\n\nAnswer:",
      {"A", "B", "C", "D"}, static_cast<size_t>(answer[0] - 'A'));
  e.group = record.text("domain");
  return e;
}

}  // namespace

ChoiceFormat longbench_v2_format() {
  return {
      "longbench_v2",
      "LongBench v2",
      {"domain", "context", "question", "choice_A", "choice_B", "choice_C", "choice_D", "answer"},
      "domain",
      false,
      read_longbench_v2};
}

}  // namespace bamtrain
