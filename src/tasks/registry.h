#pragma once
// Every task by name.

#include <string>
#include <vector>

#include "tasks/task.h"

namespace bamtrain {

const std::vector<TaskInfo>& all_tasks();

/// The task of that name, or null.
const TaskInfo* find_task(const std::string& name);

}  // namespace bamtrain
