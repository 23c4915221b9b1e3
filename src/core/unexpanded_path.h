#pragma once
// Paths of what is to be made. A shell replaces "~", "$NAME" and the like in a word of its own; in
// a file of JSON, in quotes and behind --output= it does not, and a folder of that name would be
// made.

#include <string>

#include "core/error.h"

namespace bamtrain {

/// Error (`code`) at `where` for a path that begins with "~", that has "$NAME", "${" or "$(", or
/// that begins with "scheme://". "./~" and the like name such folders all the same.
void require_expanded_path(const std::string& path, ExitCode code, const std::string& where);

}  // namespace bamtrain
