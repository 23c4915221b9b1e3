// HellaSwag (Rowan/hellaswag): endings of descriptions from WikiHow or ActivityNet.

#include <string>
#include <string_view>
#include <vector>

#include "prompts/choice_format.h"
#include "prompts/python_text.h"
#include "prompts/record_file.h"

namespace bamtrain {

namespace {

/// Removes "[...]", shortest match within a line: re.sub(r"\[.*?\]", "").
std::string without_brackets(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t open = text.find('['), end = text.find_first_of("]\n", open);
    if (open == std::string_view::npos) break;
    const bool closed = end != std::string_view::npos && text[end] == ']';
    out.append(text.substr(0, closed ? open : open + 1));
    text.remove_prefix(closed ? end + 1 : open + 1);
  }
  return out.append(text);
}

/// Removes bracketed artifacts of WikiHow's pages.
std::string cleaned(std::string_view text) {
  const std::string titled = replaced(without_space_around(text), " [title]", ". ");
  return replaced(without_brackets(titled), "  ", " ");
}

ChoiceExample read_hellaswag(const JsonObject& record) {
  const std::string context = record.text("activity_label") + ": " + record.text("ctx_a") + " " +
                              capitalized(record.text("ctx_b"));
  std::vector<std::string> endings = texts_of(record, "endings");
  for (std::string& ending : endings) ending = cleaned(ending);
  return asked(cleaned(context), endings, index_of(record, "label", endings.size()));
}

}  // namespace

ChoiceFormat hellaswag_format() {
  return {"hellaswag", "HellaSwag", {"activity_label", "ctx", "ctx_a", "ctx_b", "endings", "label"},
          "",          true,        read_hellaswag};
}

}  // namespace bamtrain
