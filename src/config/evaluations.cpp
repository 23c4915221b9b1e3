#include "config/evaluations.h"

#include <algorithm>
#include <limits>

#include "config/task.h"
#include "core/error.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostSamples = int64_t{1} << 31;

/// Of the members beside those of a task.
ValueSchema members_schema() {
  ValueSchema schema = {{"lengths", set_of(integer_value(1, std::numeric_limits<int32_t>::max()))},
                        {"samples", integer_value(1, kMostSamples)},
                        {"seed", integer_value(0, std::numeric_limits<int64_t>::max())},
                        {"every", integer_value(0, kMaxSteps)},
                        {"bleu", boolean_value()},
                        {"name", nonempty_text()}};
  schema["lengths"]["description"] =
      "of sources, in tokens; default: the longest of the task's own";
  schema["samples"]["description"] = "sequences at each length; default 1000";
  schema["seed"]["description"] = "of these; default 0";
  schema["every"]["description"] =
      "steps between passes while the run trains, on other sequences than those at the end; "
      "default 0: at the end alone";
  schema["bleu"]["description"] =
      "whether corpus BLEU of what greedy decoding writes is measured at the end too, token by "
      "token on the CPU; default false";
  schema["name"]["description"] =
      "of its results, NAME@LENGTH/accuracy and so on; default: the task's";
  return schema;
}

}  // namespace

ValueSchema evaluations_schema() {
  ValueSchema entry = task_schema(members_schema());
  entry["properties"].erase("length");
  return list_of(entry);
}

std::vector<TaskEvaluation> read_evaluations(const json& v, const std::string& path,
                                             const Origin& origin, int64_t version) {
  if (!v.is_array()) {
    throw Error(ExitCode::config, origin.at(path), "an array of tasks", describe_value(v),
                "write [{\"task\": NAME, \"lengths\": [...]}]");
  }
  const ValueSchema members = members_schema();
  std::vector<std::string> beside;
  for (const auto& [name, unused] : members.items()) beside.push_back(name);
  std::vector<TaskEvaluation> out;
  for (size_t i = 0; i < v.size(); ++i) {
    const std::string entry = path + "[" + std::to_string(i) + "]";
    if (!is_task(v[i])) {
      throw Error(ExitCode::config, origin.at(entry),
                  "a task, {\"task\": NAME, \"lengths\": [...]}", describe_value(v[i]),
                  "name the task that is measured");
    }
    if (v[i].contains("length")) {
      throw Error(ExitCode::config, origin.at(entry + ".length"),
                  "lengths, each of which is measured", "length, a range that is drawn from",
                  "write \"lengths\": [...]");
    }
    TaskEvaluation e;
    TaskRequest& r = e.request;
    r.task = read_task(v[i], entry, origin, version, beside);
    if (r.task.info->of_file || r.task.info->of_tokenizer) {
      throw Error(ExitCode::config, origin.at(entry + ".task"), "a task that reads no file",
                  "\"" + r.task.info->name + "\"",
                  "name it in data.val, whose results are those of validation");
    }
    r.name = r.task.info->name;
    r.lengths = {r.task.lengths.longest};
    const auto take = [&](const char* name, auto* into) {
      if (!v[i].contains(name)) return;
      check_value(v[i][name], members[name], origin.at(entry + "." + name));
      *into = v[i][name].get<std::decay_t<decltype(*into)>>();
    };
    take("lengths", &r.lengths);
    take("samples", &r.samples);
    take("seed", &r.seed);
    take("every", &e.every);
    take("bleu", &r.bleu);
    take("name", &r.name);
    if (r.bleu && r.task.info->end == kNoTarget) {
      throw Error(ExitCode::config, origin.at(entry + ".bleu"),
                  "false where answers are no text that a decoder continues",
                  "true with \"" + r.task.info->name + "\"", "remove it");
    }
    if (r.lengths.empty()) {
      throw Error(ExitCode::config, origin.at(entry + ".lengths"), "at least one length", "none",
                  "give one, or leave lengths out");
    }
    std::sort(r.lengths.begin(), r.lengths.end());
    for (const int64_t length : {r.lengths.front(), r.lengths.back()}) {
      check_lengths(*r.task.info, {length, length}, origin.at(entry + ".lengths"));
    }
    out.push_back(std::move(e));
  }
  return out;
}

ordered_json evaluations_json(const std::vector<TaskEvaluation>& evaluations) {
  ordered_json out = ordered_json::array();
  for (const TaskEvaluation& e : evaluations) {
    const TaskRequest& r = e.request;
    ordered_json entry = task_json(r.task);
    entry.erase("length");
    entry.update({{"lengths", r.lengths},
                  {"samples", r.samples},
                  {"seed", r.seed},
                  {"every", e.every},
                  {"bleu", r.bleu},
                  {"name", r.name}});
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace bamtrain
