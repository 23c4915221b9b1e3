#pragma once
// An inspection as a safetensors file; docs/inspect.md lists the tensor names.

#include <map>
#include <string>

#include "inspect/inspection.h"

namespace bamtrain {

/// Writes metadata: `facts`, "made_by", by which is_inspection_file() recognizes the file, and
/// "block". Throws Error (ExitCode::io) as write_safetensors.
void write_inspection(const std::string& path, const InspectionRequest& request,
                      const Inspection& found, const std::map<std::string, std::string>& facts);

/// Whether the file at `path` is such a file.
bool is_inspection_file(const std::string& path);

}  // namespace bamtrain
