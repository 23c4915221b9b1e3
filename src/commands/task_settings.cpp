#include "commands/task_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/join.h"
#include "core/nearest.h"
#include "core/utf8.h"

namespace bamtrain {

std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings) {
  std::map<std::string, std::string> values;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::usage, "--task-set", "KEY=VALUE", setting, "give a value behind =");
    }
    if (first_invalid_utf8(setting) != std::string::npos) {  // results in JSON name it
      throw Error(ExitCode::usage, "--task-set", "KEY=VALUE in UTF-8", setting,
                  "rename the file, or link to it by another name");
    }
    values[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return values;
}

std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings,
                                                 const std::string& task,
                                                 const std::vector<std::string>& keys,
                                                 const std::string& page) {
  const std::map<std::string, std::string> values = task_settings(settings);
  for (const auto& [key, value] : values) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    throw Error(ExitCode::usage, "--task-set", "one of " + join(keys) + ", of " + task, key,
                did_you_mean(key, keys, "see bamtrain help " + page));
  }
  return values;
}

int64_t integer_setting(const std::string& key, const std::string& text, int64_t least,
                        int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) {
    return value;
  }
  throw Error(ExitCode::usage, "--task-set " + key,
              fmt::format("an integer from {} to {}", least, most), text, "change it");
}

bool word_setting(const std::string& key, const std::string& text, const std::string& yes,
                  const std::string& no) {
  if (text == yes || text == no) return text == yes;
  throw Error(ExitCode::usage, "--task-set " + key, yes + " or " + no, text, "change it");
}

}  // namespace bamtrain
