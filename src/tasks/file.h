#pragma once
// "file": sequences from a user's file instead of random ones. Not in the registry: it draws
// nothing, and only the file's reader knows its ids (data/file_task.h).

#include "tasks/task.h"

namespace bamtrain {

const TaskInfo& file_task();

}  // namespace bamtrain
