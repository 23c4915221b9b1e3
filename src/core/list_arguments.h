#pragma once
// Several values after one option, for programs that use CLI11, whose own lists take whatever
// follows: in `--set a=1 b=2 RUN` the last argument is no value.

#include <string>
#include <vector>

namespace bamtrain {

struct ListOption {
  std::string name;                            // "--set"
  bool (*takes)(const std::string& argument);  // whether an argument is one more value
};

/// Whether the argument is KEY=VALUE with a key's name, unlike the path "out/lr=3/run".
bool is_setting(const std::string& argument);
/// Whether the argument is "64" or "64,128".
bool is_number_list(const std::string& argument);

/// The arguments after the program's name, with the option's name before each of its values:
/// `--set a=1 --set b=2 RUN`. Nothing changes after "--".
std::vector<std::string> repeat_list_options(int argc, const char* const* argv,
                                             const std::vector<ListOption>& options);

}  // namespace bamtrain
