#pragma once
// What bamtrain eval --task passkey or niah wrote, as maps by length and depth.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/json_object.h"
#include "report/heat_map.h"

namespace bamtrain {

/// A map of each task whose rows have depths, in the file's order: of exact matches, or of recall.
/// None where no row has. Error at `place` for what is no such result.
std::vector<HeatMap> retrieval_maps(const nlohmann::json& result, const JsonPlace& place);

/// Of the file at `path`. Error (ExitCode::io) where it cannot be read, (ExitCode::data) as above
/// and for one without depths.
std::vector<HeatMap> read_retrieval_maps(const std::string& path);

}  // namespace bamtrain
