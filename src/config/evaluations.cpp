#include "config/evaluations.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/option.h"
#include "config/task.h"
#include "core/error.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostSamples = int64_t{1} << 31;

/// The schema of members other than the task's own.
ValueSchema members_schema() {
  ValueSchema schema = {{"lengths", set_of(integer_value(1, std::numeric_limits<int32_t>::max()))},
                        {"samples", integer_value(1, kMostSamples)},
                        {"seed", integer_value(0, std::numeric_limits<int64_t>::max())},
                        {"every", integer_value(0, kMaxSteps)},
                        {"bleu", boolean_value()},
                        {"name", nonempty_text()}};
  schema["lengths"]["description"] =
      "source lengths in tokens; default: the longest of the task's own; passkey: 0 and 128 to "
      "32768, doubling; niah: no default";
  schema["samples"]["description"] =
      "sequences at each length, default 1000; passkey: prompts at each depth, default 1; niah: "
      "default 500, or 25 at each depth; with a file: default all";
  schema["seed"]["description"] = "seed of the samples; default 0";
  schema["every"]["description"] =
      "steps between passes during training, on other sequences than at the end, unless they come "
      "from a file; default 0: only at the end";
  schema["bleu"]["description"] =
      "also measure corpus BLEU of greedy decoding at the end, token by token on the CPU; default "
      "false";
  schema["name"]["description"] =
      "name in the results (NAME@LENGTH/accuracy and so on); default: the task's";
  return schema;
}

/// One entry of the list.
struct Entry {
  const json& value;
  const std::string& path;
  const Origin& origin;
  int64_t version;

  std::string at(const std::string& member) const { return origin.at(path + "." + member); }
  template <class T>
  void take(const char* name, T* into) const {
    if (!value.contains(name)) return;
    check_value(value[name], members_schema()[name], at(name));
    *into = value[name].get<T>();
  }
};

std::vector<std::string> member_names() {
  const ValueSchema members = members_schema();
  std::vector<std::string> names;
  for (const auto& [name, unused] : members.items()) names.push_back(name);
  return names;
}

TaskRequest read_trained_task(const Entry& e) {
  TaskRequest r;
  r.task = read_task(e.value, e.path, e.origin, e.version, member_names(), text_task_names());
  if (r.task.info->of_file) {
    throw Error::fault(ExitCode::config, e.at("task"),
                       "\"" + r.task.info->name + "\" reads its examples from a file",
                       "name it in data.val: validation measures it");
  }
  r.name = r.task.info->name;
  r.lengths = {r.task.lengths.longest};
  e.take("lengths", &r.lengths);
  e.take("samples", &r.samples);
  e.take("seed", &r.seed);
  e.take("bleu", &r.bleu);
  e.take("name", &r.name);
  if (r.bleu && r.task.info->end == kIgnoreIndex) {
    throw Error::fault(ExitCode::config, e.at("bleu"),
                       "\"" + r.task.info->name + "\" has no answers to generate", "remove it");
  }
  if (r.lengths.empty()) {
    throw Error::fault(ExitCode::config, e.at("lengths"), "empty list",
                       "give a length, or leave lengths out");
  }
  std::sort(r.lengths.begin(), r.lengths.end());
  for (const int64_t length : {r.lengths.front(), r.lengths.back()}) {
    check_lengths(*r.task.info, {length, length}, e.at("lengths"));
  }
  return r;
}

TextTaskRequest read_text_task(const Entry& e, const TextTaskInfo& info) {
  std::vector<std::string> known = {"task", "samples", "seed", "every", "name"};
  if (info.of_lengths) known.emplace_back("lengths");
  for (const OptionSpec& o : info.options) known.push_back(o.name);
  require_known_keys(e.value, known, info.name, e.path, e.origin);
  TextTaskRequest r = {&info, info.name,
                       read_options(e.value, info.options, e.path, e.origin, e.version)};
  for (const OptionSpec& o : info.options) {
    if (e.value.contains(o.name)) r.given.push_back(o.name);
  }
  if (e.value.contains("lengths")) {
    const ValueSchema schema = set_of(integer_value(0, std::numeric_limits<int32_t>::max()));
    check_value(e.value["lengths"], schema, e.at("lengths"));
    r.lengths = e.value["lengths"].get<std::vector<int64_t>>();
    std::sort(r.lengths.begin(), r.lengths.end());
  } else {
    r.lengths = info.lengths;
  }
  int64_t samples = 0;
  e.take("samples", &samples);
  if (samples > 0) r.samples = samples;
  e.take("seed", &r.seed);
  e.take("name", &r.name);
  try {
    check_text_options(r);
  } catch (const Error& error) {
    throw error.at(e.at(key_in_braces(error.where())));
  }
  return r;
}

ordered_json entry_json(const TaskRequest& r) {
  ordered_json entry = task_json(r.task);
  entry.erase("length");
  entry.update({{"lengths", r.lengths},
                {"samples", r.samples},
                {"seed", r.seed},
                {"bleu", r.bleu},
                {"name", r.name}});
  return entry;
}

ordered_json entry_json(const TextTaskRequest& r) {
  ordered_json entry = {{"task", r.info->name}};
  entry.update(options_json(r.info->options, r.options));
  if (!r.lengths.empty()) entry["lengths"] = r.lengths;
  if (r.samples) entry["samples"] = *r.samples;
  entry.update({{"seed", r.seed}, {"name", r.name}});
  return entry;
}

}  // namespace

ValueSchema evaluations_schema() {
  ValueSchema entry = task_schema(members_schema());
  entry["properties"].erase("length");
  entry["properties"]["lengths"]["items"]["minimum"] = 0;  // for passkey: no filler
  ValueSchema& names = entry["properties"]["task"]["enum"];
  for (const std::string& name : text_task_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const TextTaskInfo& t : text_tasks()) add_options(t.name, t.options, &entry);
  return list_of(entry);
}

std::vector<TaskEvaluation> read_evaluations(const json& v, const std::string& path,
                                             const Origin& origin, int64_t version) {
  if (!v.is_array()) {
    throw Error(ExitCode::config, origin.at(path), "an array of tasks", describe_value(v),
                "write [{\"task\": NAME, \"lengths\": [...]}]");
  }
  std::vector<TaskEvaluation> out;
  for (size_t i = 0; i < v.size(); ++i) {
    const std::string entry = path + "[" + std::to_string(i) + "]";
    if (!is_task(v[i])) {
      throw Error(ExitCode::config, origin.at(entry),
                  "a task, {\"task\": NAME, \"lengths\": [...]}", describe_value(v[i]),
                  "name the task to measure");
    }
    if (v[i].contains("length")) {
      throw Error::fault(ExitCode::config, origin.at(entry + ".length"),
                         "length is a training range; an evaluation has lengths",
                         "write \"lengths\": [...]");
    }
    const Entry of = {v[i], entry, origin, version};
    const json& name = v[i]["task"];
    const TextTaskInfo* texts = name.is_string() ? find_text_task(name) : nullptr;
    TaskEvaluation e;
    if (texts != nullptr) {
      e.request = read_text_task(of, *texts);
    } else {
      e.request = read_trained_task(of);
    }
    of.take("every", &e.every);
    out.push_back(std::move(e));
  }
  return out;
}

Options measured_options(const TextTaskInfo& info, const std::vector<DataSource>& train) {
  Options options = default_options(info.options);
  if (info.name != passkey_task().name) return options;
  for (const DataSource& s : train) {
    if (!s.task || s.task->info != &passkey_task()) continue;
    for (const auto& [name, value] : s.task->options.values()) {
      if (name != "tokenizer") options.set(name, value);
    }
  }
  return options;
}

void derive_evaluations(const std::vector<DataSource>& train,
                        std::vector<TaskEvaluation>* evaluations) {
  for (size_t i = 0; i < evaluations->size(); ++i) {
    auto* const r = std::get_if<TextTaskRequest>(&(*evaluations)[i].request);
    if (r == nullptr) continue;
    const Options open = measured_options(*r->info, train);
    for (const auto& [name, value] : open.values()) {
      const bool given = std::find(r->given.begin(), r->given.end(), name) != r->given.end();
      if (!given) r->options.set(name, value);
    }
    try {
      check_text_options(*r);
    } catch (const Error& e) {
      throw e.at("eval.tasks[" + std::to_string(i) + "]." + key_in_braces(e.where()));
    }
  }
}

ordered_json evaluations_json(const std::vector<TaskEvaluation>& evaluations) {
  ordered_json out = ordered_json::array();
  for (const TaskEvaluation& e : evaluations) {
    ordered_json entry = std::visit([](const auto& r) { return entry_json(r); }, e.request);
    entry["every"] = e.every;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace bamtrain
