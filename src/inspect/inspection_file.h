#pragma once
// An inspection as tensors: a safetensors file, whose names are in docs/inspect.md.

#include <map>
#include <string>

#include "inspect/inspection.h"

namespace bamtrain {

/// Metadata beside `facts`: "made_by", by which is_inspection_file() knows the file, and "block".
/// Error (ExitCode::io) as write_safetensors.
void write_inspection(const std::string& path, const InspectionRequest& request,
                      const Inspection& found, const std::map<std::string, std::string>& facts);

/// Whether the file at `path` is such a file.
bool is_inspection_file(const std::string& path);

}  // namespace bamtrain
