#pragma once
// The requests of bamtrain eval for a task of texts. --task-set sets its options, with the names
// and values of eval.tasks in a configuration; lengths, samples and seed have their own options.

#include "commands/eval.h"
#include "core/error.h"
#include "core/options.h"
#include "tasks/text_task.h"

namespace bamtrain {

/// The options set by --task-set. Throws Error (ExitCode::usage) for an unknown option or an
/// invalid value. REQUIRES: arguments.task is one of text_task_names().
Options text_settings(const EvalArguments& arguments);

/// The request with `settings` overriding `defaults`, which has all options. Throws Error
/// (ExitCode::usage), at the option, for an invalid value or combination.
TextTaskRequest text_request(const EvalArguments& arguments, const Options& settings,
                             const Options& defaults);

/// Turns an error at "{KEY}" into one at the option that set it; returns other errors unchanged.
Error at_option(const Error& e);

}  // namespace bamtrain
