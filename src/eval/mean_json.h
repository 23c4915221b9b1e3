#pragma once
// Numbers of a row of results, each with its standard error.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/clustered_mean.h"

namespace bamtrain {

/// Sets NAME, and NAME_error, which is null if unknown.
inline void put_number(nlohmann::ordered_json* row, const std::string& name, double value,
                       const std::optional<double>& error) {
  (*row)[name] = value;
  (*row)[name + "_error"] = nullptr;
  if (error) (*row)[name + "_error"] = *error;
}

inline void put_mean(nlohmann::ordered_json* row, const std::string& name,
                     const ClusteredMean& mean) {
  put_number(row, name, mean.mean, mean.error);
}

}  // namespace bamtrain
