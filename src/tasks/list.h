#pragma once
// Every task, each in a file of its name: ASEntmax's, then the Chomsky benchmark's. The registry
// has the same list.

#include "tasks/task.h"

namespace bamtrain {

TaskInfo mqmtar_task();
TaskInfo copy_task();
TaskInfo reverse_task();
TaskInfo sort_task();
TaskInfo two_back_task();
TaskInfo local_count_task();
TaskInfo flip_flop_task();
TaskInfo max_retrieval_task();
TaskInfo even_pairs_task();
TaskInfo modular_arithmetic_simple_task();
TaskInfo parity_check_task();
TaskInfo cycle_navigation_task();
TaskInfo stack_manipulation_task();
TaskInfo reverse_string_task();
TaskInfo modular_arithmetic_task();
TaskInfo solve_equation_task();
TaskInfo duplicate_string_task();
TaskInfo missing_duplicate_task();
TaskInfo odds_first_task();
TaskInfo binary_addition_task();
TaskInfo binary_multiplication_task();
TaskInfo compute_sqrt_task();
TaskInfo bucket_sort_task();

}  // namespace bamtrain
