// Winogrande (allenai/winogrande), by partial evaluation (Trinh and Le, A Simple Method for
// Commonsense Reasoning, 2018): scores the text after the blank given each option filled in.

#include "prompts/choice_format.h"
#include "prompts/python_text.h"

namespace bamtrain {

namespace {

ChoiceExample read_winogrande(const JsonObject& record) {
  const std::string sentence = record.text("sentence"), answer = record.text("answer");
  const size_t blank = sentence.find('_');
  if (blank == std::string::npos) {
    (record.where() / "sentence").refuse("a blank, \"_\"", "\"" + sentence + "\"");
  }
  if (answer != "1" && answer != "2") {
    (record.where() / "answer").refuse("\"1\" or \"2\"", "\"" + answer + "\"");
  }
  ChoiceExample e;
  for (const char* option : {"option1", "option2"}) {
    const std::string text = record.text(option);
    e.contexts.push_back(sentence.substr(0, blank) + text);
    e.characters.push_back(characters_of(text));
  }
  const std::string_view rest = std::string_view(sentence).substr(blank + 1);
  e.continuations = {" " + std::string(without_space_around(rest))};
  e.gold = answer == "2";
  return e;
}

}  // namespace

ChoiceFormat winogrande_format() {
  return {"winogrande", "Winogrande", {"sentence", "option1", "option2", "answer"},
          "",           false,        read_winogrande};
}

}  // namespace bamtrain
