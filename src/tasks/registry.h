#pragma once
// Every task by name.

#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

const std::vector<TaskInfo>& all_tasks();
std::vector<std::string> task_names();

/// The task of that name, or null.
const TaskInfo* find_task(const std::string& name);

}  // namespace bamtrain
