#include "prompts/choice_format.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/faults.h"
#include "core/join.h"

namespace bamtrain {

namespace {

bool has_all(const JsonObject& record, const ChoiceFormat& format) {
  return std::all_of(format.fields.begin(), format.fields.end(),
                     [&](const std::string& field) { return record.has(field.c_str()); });
}

/// Whether the fields of a are a proper subset of those of b.
bool lies_in(const ChoiceFormat& a, const ChoiceFormat& b) {
  return a.fields.size() < b.fields.size() &&
         std::all_of(a.fields.begin(), a.fields.end(), [&](const std::string& field) {
           return std::find(b.fields.begin(), b.fields.end(), field) != b.fields.end();
         });
}

/// "arc {question, choices, answerKey}".
std::string described(const ChoiceFormat& format) {
  return format.name + " {" + join(format.fields) + "}";
}

}  // namespace

const std::vector<ChoiceFormat>& choice_formats() {
  static const std::vector<ChoiceFormat> formats = {
      arc_format(),          endings_format(), hellaswag_format(),
      longbench_v2_format(), mmlu_format(),    openbookqa_format(),
      piqa_format(),         query_format(),   winogrande_format()};
  return formats;
}

std::vector<std::string> choice_format_names() {
  std::vector<std::string> names;
  for (const ChoiceFormat& format : choice_formats()) names.push_back(format.name);
  return names;
}

const ChoiceFormat& choice_format(const std::string& name, const std::string& where) {
  for (const ChoiceFormat& format : choice_formats()) {
    if (format.name == name) return format;
  }
  const std::vector<std::string> names = choice_format_names();
  throw unknown_name(ExitCode::usage, where, "format", name, names,
                     "choose one of " + join(names) + "; see bamtrain help downstream");
}

const ChoiceFormat& recognised_format(const JsonObject& record) {
  std::vector<const ChoiceFormat*> found;
  for (const ChoiceFormat& format : choice_formats()) {
    if (has_all(record, format)) found.push_back(&format);
  }
  const std::vector<const ChoiceFormat*> all = found;
  std::erase_if(found, [&](const ChoiceFormat* format) {
    return std::any_of(all.begin(), all.end(),
                       [&](const ChoiceFormat* other) { return lies_in(*format, *other); });
  });
  if (found.size() == 1) return *found[0];
  std::vector<std::string> known, fields, ways;
  for (const ChoiceFormat& format : choice_formats()) {
    if (found.empty()) known.push_back(described(format));
  }
  for (const ChoiceFormat* format : found) {
    known.push_back(described(*format));
    ways.push_back("--task-set format=" + format->name);
  }
  for (const auto& [field, value] : record.value().items()) fields.push_back(field);
  const JsonPlace& where = record.where();
  throw Error(where.code, where.text,
              found.empty() ? "the fields of one of " + join(known)
                            : "the fields of one format, not of " + join(known, " and "),
              "{" + join(fields) + "}",
              found.empty() ? "convert the file; see bamtrain help downstream"
                            : "choose " + join(ways, " or ") + "; in eval.tasks, \"format\"");
}

}  // namespace bamtrain
