#pragma once
// The pages of docs/, which bamtrain help prints.

#include <span>

#include "core/embedded_file.h"

namespace bamtrain {

/// All but config.md, which comes from the schema. Written by core/embed.py.
std::span<const EmbeddedFile> documentation();

}  // namespace bamtrain
