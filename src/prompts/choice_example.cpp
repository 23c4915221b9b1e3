#include "prompts/choice_example.h"

#include <utility>

#include "prompts/python_text.h"

namespace bamtrain {

ChoiceExample asked(std::string context, const std::vector<std::string>& choices, size_t gold) {
  ChoiceExample e;
  e.contexts.push_back(std::move(context));
  e.gold = gold;
  for (const std::string& choice : choices) {
    e.continuations.push_back(" " + choice);
    e.characters.push_back(characters_of(choice));
  }
  return e;
}

}  // namespace bamtrain
