#pragma once
// What bamtrain eval asks of a task of texts: its options by --task-set, under the names and with
// the values that eval.tasks of a configuration has; lengths, samples and seed by options of their
// own.

#include "commands/eval.h"
#include "core/error.h"
#include "core/options.h"
#include "tasks/text_task.h"

namespace bamtrain {

/// Those that --task-set gives. Error (ExitCode::usage) for what is no option of the task, or no
/// value of one. REQUIRES: arguments.task is one of text_task_names().
Options text_settings(const EvalArguments& arguments);

/// With `settings` in place of `defaults`, which are all options. Error (ExitCode::usage), at the
/// option, for what must not be, or not together.
TextTaskRequest text_request(const EvalArguments& arguments, const Options& settings,
                             const Options& defaults);

/// What a task refuses at "{KEY}", said of the option that asked for it; other errors as they are.
Error at_option(const Error& e);

}  // namespace bamtrain
