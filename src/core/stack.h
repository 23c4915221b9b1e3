#pragma once
// The stack size of this process and its threads.

namespace bamtrain {

/// Raises a soft limit (ulimit -S -s) below Linux's default of 8 MiB as far as the hard limit
/// allows, for this thread and threads started later. Below 256 KiB the process would sooner or
/// later crash without a message. It then exits here with a message and ExitCode::device, because
/// throwing an Error to main takes stack too. Call first in main.
void require_stack();

}  // namespace bamtrain
