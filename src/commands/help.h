#pragma once
// What other parts of the program take from bamtrain help.

#include <string>
#include <vector>

#include "core/completion.h"

namespace bamtrain {

/// The topics with what they are; a name of two kinds occurs twice. Commands are topics too.
std::vector<Candidate> help_topics();

/// The manual page's sections that are not about options: Markdown.
std::string manual_sections();

}  // namespace bamtrain
