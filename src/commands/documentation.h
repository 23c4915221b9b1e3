#pragma once
// The pages of docs/, which bamtrain help prints.

#include <span>

#include "core/embedded_file.h"

namespace bamtrain {

/// All pages except config.md, which is generated from the schema. Defined by core/embed.py.
std::span<const EmbeddedFile> documentation();

}  // namespace bamtrain
