#include "tasks/text_task.h"

#include "core/error.h"
#include "core/faults.h"
#include "tasks/passkey.h"

namespace bamtrain {

namespace {

constexpr double kMostDepths = 1000, kMostTokens = 4096, kMostShots = 1000;

OptionSpec tokenizer_option() {
  return {"tokenizer", "tokenizer file, if it is not found near the shards", ""};
}

OptionSpec file_option(const std::string& what) { return {"file", what, ""}; }

OptionSpec bos_option() { return {"bos", "start texts with BOS if training documents did", true}; }

TextTaskInfo passkey_text_task() {
  TextTaskInfo t{"passkey", "BAM's passkey, a number hidden in filler, by length and depth"};
  for (OptionSpec o : passkey_task().options) {
    t.options.push_back(o.name == "tokenizer" ? tokenizer_option() : std::move(o));
  }
  t.options.push_back({.name = "depths",
                       .description = "depths of the number, equally spaced",
                       .default_value = 20.0,
                       .minimum = 2,
                       .maximum = kMostDepths,
                       .integer = true});
  t.options.push_back({"generate", "the model generates the digits", false});
  t.of_lengths = true;
  // Published: no filler, then from 128 to 32,768.
  t.lengths = {0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  t.numbers = {"exact_match", "accuracy"};
  return t;
}

TextTaskInfo niah() {
  TextTaskInfo t{"niah", "RULER's tasks by length, and by depth for those with one needle"};
  t.options = {
      {"tasks",
       "names of RULER tasks",
       StringList(),
       {"niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2",
        "niah_multikey_3", "niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe"}},
      file_option("instead of tasks: prompts written by RULER's own generator"),
      {"match",
       "with file: score the share of an answer's outputs found (all), or whether any is found "
       "(any), as RULER scores qa",
       "all",
       {"all", "any"}},
      {"haystack", "text to hide needles in, for tasks that need one", ""},
      {.name = "depths",
       .description = "depths of the needle, equally spaced, at least 2; 0: RULER's own",
       .default_value = 0.0,
       .minimum = 0,
       .maximum = kMostDepths,
       .integer = true},
      {.name = "tokens",
       .description = "tokens per answer; 0: RULER's own, with file 128",
       .default_value = 0.0,
       .minimum = 0,
       .maximum = kMostTokens,
       .integer = true},
      tokenizer_option()};
  t.of_lengths = true;
  t.numbers = {"recall"};
  return t;
}

TextTaskInfo choice() {
  TextTaskInfo t{"choice", "multiple choice: the most likely continuation"};
  t.options = {file_option("file of questions, the records of a data set"),
               {"format",
                "format of the records; auto: recognised by their fields",
                "auto",
                {"auto", "arc", "hellaswag", "longbench_v2", "mmlu", "openbookqa", "piqa",
                 "winogrande", "query", "endings"}},
               {.name = "shots",
                .description = "solved examples before each question, the first of shots_file",
                .default_value = 0.0,
                .minimum = 0,
                .maximum = kMostShots,
                .integer = true},
               {"shots_file", "file of solved examples, in the format of file", ""},
               bos_option(),
               tokenizer_option()};
  t.numbers = {"acc", "acc_norm", "acc_token"};
  return t;
}

TextTaskInfo cloze() {
  TextTaskInfo t{"cloze", "likelihood of the last words of texts"};
  t.options = {file_option("file of texts, one {\"text\"} per line"), bos_option(),
               tokenizer_option()};
  t.numbers = {"acc", "perplexity", "loss"};
  return t;
}

TextTaskInfo requests() {
  TextTaskInfo t{"requests", "likelihoods of continuations after their contexts"};
  t.options = {file_option("file with one {\"context\", \"continuation\"} per line"), bos_option(),
               tokenizer_option()};
  t.numbers = {"greedy", "loss"};
  return t;
}

std::vector<TextTaskInfo> make_text_tasks() {
  return {passkey_text_task(), niah(), choice(), cloze(), requests()};
}

[[noreturn]] void refuse(const std::string& option, const std::string& expected,
                         const std::string& found, const std::string& remedy) {
  throw Error(ExitCode::config, "{" + option + "}", expected, found, remedy);
}

void check_niah(const TextTaskRequest& r) {
  const bool of_file = !r.options.text("file").empty(), of_tasks = !r.options.list("tasks").empty();
  if (of_file == of_tasks) {
    refuse("tasks", "tasks of RULER, or a file of its prompts", of_file ? "both" : "neither",
           "give one of them");
  }
  if (r.options.number("depths") == 1) {
    refuse("depths", "0, or at least 2", "1", "raise it");
  }
  if (!of_file && r.options.text("match") != "all") {
    refuse("match", "no value: RULER's tasks ask for all of their needles",
           "\"" + r.options.text("match") + "\"", "remove it");
  }
  if (!of_file) return;
  const char* const other = !r.lengths.empty()                    ? "lengths"
                            : r.seed != 0                         ? "seed"
                            : r.options.number("depths") != 0     ? "depths"
                            : !r.options.text("haystack").empty() ? "haystack"
                                                                  : nullptr;
  if (other != nullptr) {
    refuse(other, "no value: the prompts come from the file", "a value", "remove it");
  }
}

void check_shots(const Options& o) {
  const bool shots = o.number("shots") > 0, file = !o.text("shots_file").empty();
  if (shots != file) {
    refuse("shots", "a number with shots_file, or neither",
           shots ? "shots alone" : "shots_file without shots", "give both");
  }
}

}  // namespace

const std::vector<TextTaskInfo>& text_tasks() {
  static const std::vector<TextTaskInfo> tasks = make_text_tasks();
  return tasks;
}

const TextTaskInfo* find_text_task(const std::string& name) {
  for (const TextTaskInfo& t : text_tasks()) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

std::vector<std::string> text_task_names() {
  std::vector<std::string> names;
  for (const TextTaskInfo& t : text_tasks()) names.push_back(t.name);
  return names;
}

std::vector<TextTaskPart> parts_of(const TextTaskRequest& r) {
  if (!r.info->of_lengths) return {{r.name, r.name, std::nullopt}};
  std::vector<std::string> tasks = {r.name};
  std::string before;
  if (r.info->name == "niah") {
    if (!r.options.text("file").empty()) return {{r.name, r.options.text("file"), std::nullopt}};
    tasks = r.options.list("tasks");
    if (r.name != r.info->name) before = r.name + ".";
  }
  std::vector<TextTaskPart> parts;
  for (const std::string& task : tasks) {
    for (const int64_t length : r.lengths) {
      parts.push_back({before + task + "@" + std::to_string(length), task, length});
    }
  }
  return parts;
}

void check_text_options(const TextTaskRequest& r) {
  if (r.info->name == "niah") check_niah(r);
  if (r.info->name == "choice") check_shots(r.options);
  if (r.info->name == "passkey") check_passkey_digits(r.options);
  const bool takes_lengths =
      r.info->of_lengths && (r.info->name != "niah" || r.options.text("file").empty());
  if (takes_lengths && r.lengths.empty()) {
    refuse("lengths", "at least one length", "an empty list", "");
  }
  if (r.info->of_lengths) return;
  if (r.options.text("file").empty()) {
    throw missing(ExitCode::config, "{file}", "the file of examples", "give it");
  }
  if (!r.lengths.empty() || r.seed != 0) {
    refuse(r.lengths.empty() ? "seed" : "lengths",
           "no value: the examples of " + r.info->name + " come from the file", "a value",
           "remove it");
  }
}

std::string key_in_braces(const std::string& where) {
  if (where.size() < 3 || where.front() != '{' || where.back() != '}') return "";
  const std::string key = where.substr(1, where.size() - 2);
  // These keys are of one prompt; a request has several prompts.
  return key == "length" || key == "depth" || key == "task" ? key + "s" : key;
}

}  // namespace bamtrain
