#pragma once
// The embedded parquet_rows.py.

#include <span>

#include "core/embedded_file.h"

namespace bamtrain {

std::span<const EmbeddedFile> parquet_script();

}  // namespace bamtrain
