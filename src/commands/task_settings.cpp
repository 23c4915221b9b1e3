#include "commands/task_settings.h"

#include "core/error.h"

namespace bamtrain {

std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings) {
  std::map<std::string, std::string> values;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::usage, "--task-set", "KEY=VALUE", setting, "give a value behind =");
    }
    values[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return values;
}

}  // namespace bamtrain
