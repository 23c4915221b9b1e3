#pragma once
// --task-set of bamtrain eval.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bamtrain {

/// KEY=VALUE, of each key the last. Error (ExitCode::usage): no value, no key, or no UTF-8.
std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings);
/// The same of a task that takes these keys, which `page` of bamtrain help explains. Error
/// (ExitCode::usage) for others too.
std::map<std::string, std::string> task_settings(const std::vector<std::string>& settings,
                                                 const std::string& task,
                                                 const std::vector<std::string>& keys,
                                                 const std::string& page);

/// The integer `text` of a key. Error (ExitCode::usage) for anything but one from `least` to
/// `most`.
int64_t integer_setting(const std::string& key, const std::string& text, int64_t least,
                        int64_t most);
/// True for `yes`, false for `no`. Error (ExitCode::usage) for any other text.
bool word_setting(const std::string& key, const std::string& text, const std::string& yes,
                  const std::string& no);

}  // namespace bamtrain
