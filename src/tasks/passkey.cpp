#include "tasks/passkey.h"

#include "core/error.h"

namespace bamtrain {

namespace {

TaskInfo make_passkey_task() {
  TaskInfo t;
  t.name = "passkey";
  t.description = "a number hidden in filler, which the end of the prompt asks for";
  t.options = {{"tokenizer", "file of a tokenizer that splits numbers into digits", ""},
               {.name = "digits",
                .description = "digits of the number, the first not 0",
                .default_value = 5.0,
                .minimum = 1,
                .maximum = static_cast<double>(kMostPasskeyDigits),
                .integer = true},
               {.name = "prefix_digits",
                .description = "how many of the digits the prompt gives; fewer than digits",
                .default_value = 0.0,
                .minimum = 0,
                .maximum = static_cast<double>(kMostPasskeyDigits - 1),
                .integer = true},
               {"question",
                "published: \"What is the pass key? The pass key is\"; paper: \"The passkey is:\"",
                "published",
                {"published", "paper"}},
               {"bos", "start the prompt with the tokenizer's BOS (published: no)", false}};
  t.lengths = {128, 512};
  t.of_tokenizer = true;
  // Plus a space and the answer without its last digit.
  t.most_inputs = [](int64_t length) { return length + kMostPasskeyDigits; };
  return t;
}

}  // namespace

const TaskInfo& passkey_task() {
  static const TaskInfo info = make_passkey_task();
  return info;
}

void check_passkey_digits(const Options& options) {
  const auto digits = static_cast<int64_t>(options.number("digits")),
             given = static_cast<int64_t>(options.number("prefix_digits"));
  if (given < digits) return;
  throw Error(ExitCode::config, "{prefix_digits}",
              "fewer than the " + std::to_string(digits) + " digits of a key",
              std::to_string(given), "lower it, or raise digits");
}

}  // namespace bamtrain
