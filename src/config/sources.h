#pragma once
// data.train between JSON and DataSources: the path of shards, a task, or a list of
// {"path": ..., "weight": ...} and {"task": ..., "weight": ...}; and data.val, one of the former.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/origin.h"
#include "config/value_schema.h"
#include "data/data_config.h"

namespace bamtrain {

/// The value at key `path`. A list of one is that source alone, whatever its weight. Error
/// (ExitCode::config) names the entry that is no source.
DataSources read_sources(const nlohmann::json& value, const std::string& path, const Origin& origin,
                         int64_t version);

/// Its inverse; "" where there are none.
nlohmann::ordered_json sources_json(const DataSources& sources);

ValueSchema sources_schema();

/// The same of DataConfig::val and val_task.
void read_validation(const nlohmann::json& value, const std::string& path, const Origin& origin,
                     int64_t version, DataConfig* config);
nlohmann::ordered_json validation_json(const DataConfig& config);
ValueSchema validation_schema();

}  // namespace bamtrain
