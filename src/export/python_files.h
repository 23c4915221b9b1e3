#pragma once
// The Python files of src/export/huggingface, which go with every model that transformers' own
// classes cannot express.

#include <span>

#include "core/embedded_file.h"

namespace bamtrain {

/// Written by core/embed.py.
std::span<const EmbeddedFile> python_files();

}  // namespace bamtrain
