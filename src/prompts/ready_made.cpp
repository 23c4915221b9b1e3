// Prompts that are already formatted: {"query", "choices", "gold"}, and HellaSwag's {"ctx",
// "endings", "label"}.

#include "prompts/choice_format.h"
#include "prompts/record_file.h"

namespace bamtrain {

namespace {

ChoiceExample ready(const JsonObject& record, const char* context, const char* choices,
                    const char* gold) {
  const std::vector<std::string> texts = texts_of(record, choices);
  return asked(record.text(context), texts, index_of(record, gold, texts.size()));
}

}  // namespace

ChoiceFormat query_format() {
  return {"query",
          "ready-made questions",
          {"query", "choices", "gold"},
          "",
          true,
          [](const JsonObject& record) { return ready(record, "query", "choices", "gold"); }};
}

ChoiceFormat endings_format() {
  return {"endings",
          "ready-made endings",
          {"ctx", "endings", "label"},
          "",
          true,
          [](const JsonObject& record) { return ready(record, "ctx", "endings", "label"); }};
}

}  // namespace bamtrain
