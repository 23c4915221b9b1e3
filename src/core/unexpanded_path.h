#pragma once
// Paths that the program will create. A shell expands "~", "$NAME" and the like only in a word of
// its own. In a JSON file, in quotes and after --output= it does not, and a folder with that
// literal name would be created.

#include <string>

#include "core/error.h"

namespace bamtrain {

/// Throws Error (`code`) at `where` if the path begins with "~" or "scheme://", or contains
/// "$NAME", "${" or "$(". "./~" and the like still name such folders.
void require_expanded_path(const std::string& path, ExitCode code, const std::string& where);

}  // namespace bamtrain
