#pragma once
// Every task by name.

#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

const std::vector<TaskInfo>& all_tasks();
std::vector<std::string> task_names();

/// Those that read files of a user's, and are opened where what is in these is known: "file"
/// (data/file_task.h) and "passkey" (prompts/passkey_task.h). They are none of all_tasks().
const std::vector<const TaskInfo*>& tasks_of_files();

/// The task of that name among all_tasks(), or null.
const TaskInfo* find_task(const std::string& name);

}  // namespace bamtrain
