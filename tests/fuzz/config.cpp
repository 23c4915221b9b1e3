// A run's config, followed by overrides, each after a NUL byte. An accepted config can be written
// and read back the same.

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "config/reader.h"
#include "target.h"

using namespace bamtrain;
using namespace bamtrain::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == 0) {
      parts.emplace_back();
    } else {
      parts.back() += static_cast<char>(data[i]);
    }
  }
  const std::vector<std::string> overrides(parts.begin() + 1, parts.end());
  for (const ConfigUse use : {ConfigUse::training, ConfigUse::evaluation}) {
    std::optional<RunConfig> config;
    if (!accepts([&] { config = read_run_config_text(parts[0], "config", overrides, use); })) {
      continue;
    }
    const std::string resolved = resolved_json(*config).dump();
    const RunConfig again = read_run_config_text(resolved, "resolved", {}, use);
    require(resolved_json(again).dump() == resolved, "a configuration that reads back the same");
  }
  return 0;
}
