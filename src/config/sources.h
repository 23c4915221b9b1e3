#pragma once
// Converts data.train between JSON and DataSources: the path of shards, a task, or a list of
// {"path": ..., "weight": ...} and {"task": ..., "weight": ...}. data.val is a path or a task.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/origin.h"
#include "config/value_schema.h"
#include "data/data_config.h"

namespace bamtrain {

/// Reads the value at key `path`. A list with one entry is that source alone, whatever its weight.
/// Throws Error (ExitCode::config) naming an entry that is not a source.
DataSources read_sources(const nlohmann::json& value, const std::string& path, const Origin& origin,
                         int64_t version);

/// The inverse; "" if there are no sources.
nlohmann::ordered_json sources_json(const DataSources& sources);

ValueSchema sources_schema();

/// The same for DataConfig::val and val_task.
void read_validation(const nlohmann::json& value, const std::string& path, const Origin& origin,
                     int64_t version, DataConfig* config);
nlohmann::ordered_json validation_json(const DataConfig& config);
ValueSchema validation_schema();

}  // namespace bamtrain
