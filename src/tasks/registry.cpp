#include "tasks/registry.h"

#include "tasks/file.h"
#include "tasks/list.h"
#include "tasks/passkey.h"

namespace bamtrain {

const std::vector<TaskInfo>& all_tasks() {
#define BAMTRAIN_ENTRY(name) name##_task(),
  // clang-format off
  static const std::vector<TaskInfo> tasks = {
      BAMTRAIN_TASKS(BAMTRAIN_ENTRY)
  };
  // clang-format on
#undef BAMTRAIN_ENTRY
  return tasks;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskInfo& t : all_tasks()) names.push_back(t.name);
  return names;
}

const std::vector<const TaskInfo*>& tasks_of_files() {
  static const std::vector<const TaskInfo*> tasks = {&file_task(), &passkey_task()};
  return tasks;
}

const TaskInfo* find_task(const std::string& name) {
  for (const TaskInfo& t : all_tasks()) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

}  // namespace bamtrain
