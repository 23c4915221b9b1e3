#pragma once
// Every task by name.

#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

const std::vector<TaskInfo>& all_tasks();
std::vector<std::string> task_names();

/// Tasks of a user's files, which are opened where the files' content is known: "file"
/// (data/file_task.h) and "passkey" (prompts/passkey_task.h). Not in all_tasks().
const std::vector<const TaskInfo*>& tasks_of_files();

/// The task of that name among all_tasks(), or null.
const TaskInfo* find_task(const std::string& name);

}  // namespace bamtrain
