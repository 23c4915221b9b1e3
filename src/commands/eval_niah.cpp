// bamtrain eval --task niah: RULER's tasks, against length and depth; or prompts of a file.

#include <algorithm>

#include "commands/retrieval.h"
#include "commands/task_settings.h"
#include "core/join.h"
#include "core/nearest.h"
#include "prompts/ruler.h"

namespace bamtrain {

namespace {

constexpr int64_t kMostDepths = 1000, kMostTokens = 4096;

struct Settings {
  std::vector<std::string> names;
  std::string file, haystack, tokenizer;
  int64_t depths = 0;  // 0: RULER's own
  int64_t tokens = 0;  // of an answer; 0: RULER's
};

/// Those of "a,b"; all of "all".
std::vector<std::string> names_of(const std::string& text) {
  const std::vector<std::string> known = ruler_tasks();
  if (text == "all") return known;
  std::vector<std::string> names;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    at = end + 1;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ExitCode::usage, "--task-set name", "all, or of " + join(known), name,
                  did_you_mean(name, known, "use one of them"));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Settings settings_of(const EvalArguments& arguments) {
  Settings s;
  const std::vector<std::string> keys = {"name",   "file",   "haystack",
                                         "depths", "tokens", "tokenizer"};
  for (const auto& [key, value] :
       task_settings(arguments.task_settings, "niah", keys, "retrieval")) {
    if (key == "name") s.names = names_of(value);
    if (key == "file") s.file = value;
    if (key == "haystack") s.haystack = value;
    if (key == "depths") s.depths = integer_setting(key, value, 2, kMostDepths);
    if (key == "tokens") s.tokens = integer_setting(key, value, 1, kMostTokens);
    if (key == "tokenizer") s.tokenizer = value;
  }
  if (s.names.empty() == s.file.empty()) {
    throw Error(ExitCode::usage, "--task-set", "name=TASK, or file=FILE of RULER's prompts",
                s.file.empty() ? "neither" : "both", "give one of them");
  }
  if (s.file.empty()) return s;
  const char* const other = !arguments.lengths.empty() ? "--lengths"
                            : arguments.seed           ? "--seed"
                            : s.depths > 0             ? "--task-set depths"
                            : !s.haystack.empty()      ? "--task-set haystack"
                                                       : nullptr;
  if (other == nullptr) return s;
  throw Error(ExitCode::usage, other, "nothing: the prompts are those of the file", "a value",
              "remove it");
}

}  // namespace

int run_eval_niah(const EvalArguments& arguments) {
  const Settings s = settings_of(arguments);
  const TextTaskInfo& info = *find_text_task("niah");
  TextTaskRequest request = {&info, info.name, default_options(info.options)};
  request.options.set("tasks", s.names);
  request.options.set("file", s.file);
  request.options.set("haystack", s.haystack);
  request.options.set("depths", static_cast<double>(s.depths));
  request.options.set("tokens", static_cast<double>(s.tokens));
  if (s.file.empty()) request.lengths = sorted_lengths(arguments.lengths);
  request.samples = arguments.samples;
  request.seed = arguments.seed.value_or(0);
  RetrievalModel model(arguments, s.tokenizer, true);
  run_retrieval(arguments, request, model);
  return 0;
}

}  // namespace bamtrain
