#pragma once
// The Python files of src/export/huggingface, included with every model that transformers' own
// classes cannot express.

#include <span>

#include "core/embedded_file.h"

namespace bamtrain {

/// Defined by core/embed.py.
std::span<const EmbeddedFile> python_files();

}  // namespace bamtrain
