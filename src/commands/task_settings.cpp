#include "commands/task_settings.h"

#include "core/error.h"
#include "core/utf8.h"

namespace bamtrain {

std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings) {
  std::map<std::string, std::string> values;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::usage, "--task-set", "KEY=VALUE", setting, "give a value after =");
    }
    if (first_invalid_utf8(setting) != std::string::npos) {  // results name it in JSON
      throw Error(ExitCode::usage, "--task-set", "KEY=VALUE in UTF-8", setting,
                  "rename the file, or link to it by another name");
    }
    const std::string key = setting.substr(0, equals);
    if (!values.emplace(key, setting.substr(equals + 1)).second) {
      throw Error::fault(ExitCode::usage, "--task-set", key + " is given twice", "remove one");
    }
  }
  return values;
}

}  // namespace bamtrain
