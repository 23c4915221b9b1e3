#include "prompts/ruler.h"

#include <algorithm>

#include "core/error.h"
#include "core/faults.h"
#include "prompts/common_words.h"
#include "prompts/frequent_words.h"
#include "prompts/variable_tracking.h"

namespace bamtrain {

namespace {

struct OtherTask {
  const char* name;
  PromptSet (*prompts)(int64_t length, uint64_t seed, const TokenCount& count);
};

constexpr OtherTask kOthers[] = {{"vt", variable_tracking_prompts},
                                 {"cwe", common_words_prompts},
                                 {"fwe", frequent_words_prompts}};

}  // namespace

std::vector<std::string> ruler_tasks() {
  std::vector<std::string> names;
  for (const NeedleTask& t : needle_tasks()) names.push_back(t.name);
  for (const OtherTask& t : kOthers) names.emplace_back(t.name);
  return names;
}

bool is_ruler_task(const std::string& name) {
  const std::vector<std::string> all = ruler_tasks();
  return std::find(all.begin(), all.end(), name) != all.end();
}

PromptSet ruler_prompts(const std::string& task, const NeedleOptions& needles, int64_t length,
                        uint64_t seed, const TokenCount& count) {
  if (const NeedleTask* t = find_needle_task(task)) {
    return needle_prompts(*t, needles, length, seed, count);
  }
  for (const OtherTask& t : kOthers) {
    if (task != t.name) continue;
    if (needles.depth) {
      throw Error(ExitCode::config, "{depth}", "a task of one needle", task,
                  "leave it out, or name another task");
    }
    return t.prompts(length, seed, count);
  }
  throw unknown_name(ExitCode::config, "{task}", "task", task, ruler_tasks());
}

}  // namespace bamtrain
