#pragma once
// The values of tests/golden/statistics.json, by numpy and scipy (scripts/golden/statistics.py).

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace bamtrain::testing {

inline const nlohmann::json& statistics_golden() {
  static const nlohmann::json values = [] {
    const char* const source = std::getenv("BAMTRAIN_SOURCE");
    return nlohmann::json::parse(
        std::ifstream(std::string(source ? source : ".") + "/tests/golden/statistics.json"));
  }();
  return values;
}

}  // namespace bamtrain::testing
