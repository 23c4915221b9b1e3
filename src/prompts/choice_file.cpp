#include "prompts/choice_file.h"

#include <fmt/format.h>

#include <map>

#include "prompts/python_text.h"
#include "prompts/record_file.h"

namespace bamtrain {

namespace {

struct Shots {
  int64_t count = 0;
  std::string text;
};

/// The first `most` examples of each group, with their answers.
std::map<std::string, Shots> shots_of(const ChoiceFile& file, int64_t most) {
  std::map<std::string, Shots> groups;
  for (const ChoiceExample& e : file.examples) {
    Shots& shots = groups[e.group];
    if (shots.count == most) continue;
    ++shots.count;
    shots.text += e.context(e.gold) + e.continuation(e.gold) + "\n\n";
  }
  return groups;
}

}  // namespace

ChoiceFile read_choice_file(const std::string& path, const ChoiceFormat* format, int64_t most) {
  ChoiceFile file;
  file.format = format;
  file.sha256 = read_records(path, most, [&](const JsonObject& record, int64_t line) {
    if (file.format == nullptr) file.format = &recognised_format(record);
    ChoiceExample e = file.format->read(record);
    e.line = line;
    if (e.choices() < 2) record.where().refuse("two choices at least", "one");
    for (size_t i = 0; i < e.choices(); ++i) {
      if (e.characters[i] > 0 && !without_space_around(e.continuation(i)).empty()) continue;
      record.where().refuse("choices and continuations with more than white space",
                            fmt::format("\"{}\"", e.continuation(i)));
    }
    file.examples.push_back(std::move(e));
  });
  return file;
}

void prepend_few_shot(ChoiceFile* file, const std::string& shots_path, int64_t shots) {
  std::map<std::string, Shots> groups;
  if (shots > 0) groups = shots_of(read_choice_file(shots_path, file->format, INT64_MAX), shots);
  for (ChoiceExample& e : file->examples) {
    const Shots& solved = groups[e.group];
    if (solved.count < shots) {
      throw Error(ExitCode::data, shots_path,
                  fmt::format("{} examples{}", shots,
                              e.group.empty() ? "" : fmt::format(" of \"{}\"", e.group)),
                  fmt::format("{}", solved.count), "ask for fewer shots, or add examples");
    }
    for (std::string& context : e.contexts) context.insert(0, e.lead + solved.text);
  }
}

}  // namespace bamtrain
