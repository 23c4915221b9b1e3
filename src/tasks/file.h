#pragma once
// "file": sequences of a user's own file in place of drawn ones. No entry of the registry: it draws
// nothing, and what it asks for only its reader knows (data/file_task.h).

#include "tasks/task.h"

namespace bamtrain {

const TaskInfo& file_task();

}  // namespace bamtrain
