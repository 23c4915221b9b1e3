#include "tasks/registry.h"

#include "tasks/file.h"
#include "tasks/list.h"
#include "tasks/passkey.h"

namespace bamtrain {

const std::vector<TaskInfo>& all_tasks() {
  static const std::vector<TaskInfo> tasks = {
      mqmtar_task(),
      copy_task(),
      reverse_task(),
      sort_task(),
      two_back_task(),
      local_count_task(),
      flip_flop_task(),
      max_retrieval_task(),
      even_pairs_task(),
      modular_arithmetic_simple_task(),
      parity_check_task(),
      cycle_navigation_task(),
      stack_manipulation_task(),
      reverse_string_task(),
      modular_arithmetic_task(),
      solve_equation_task(),
      duplicate_string_task(),
      missing_duplicate_task(),
      odds_first_task(),
      binary_addition_task(),
      binary_multiplication_task(),
      compute_sqrt_task(),
      bucket_sort_task(),
  };
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
