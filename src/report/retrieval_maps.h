#pragma once
// Results of bamtrain eval --task passkey or niah, as maps by length and depth.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/json_object.h"
#include "report/heat_map.h"

namespace bamtrain {

/// A map of each task whose rows have depths, in file order: of exact match, or of recall. Empty if
/// no row has depths. Throws Error at `place` for a malformed result.
std::vector<HeatMap> retrieval_maps(const nlohmann::json& result, const JsonPlace& place);

/// Reads the file at `path`. Throws Error (ExitCode::io) if it cannot be read, and Error
/// (ExitCode::data) as above and for a file without depths.
std::vector<HeatMap> read_retrieval_maps(const std::string& path);

}  // namespace bamtrain
