#pragma once
// The stack that this process and its threads have.

namespace bamtrain {

/// Raises a soft limit (ulimit -S -s) below what Linux gives by default, 8 MiB, as far as the hard
/// one allows, for this thread and for those that will be started. Where that leaves less than
/// 256 KiB, with which the process would end without a word sooner or later, it ends here with one
/// and ExitCode::device: an Error on its way to main takes stack too. Call first in main.
void require_stack();

}  // namespace bamtrain
