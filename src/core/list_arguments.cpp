#include "core/list_arguments.h"

#include <algorithm>
#include <cctype>

namespace bamtrain {

namespace {

bool is_of(const ListOption& option, const std::string& argument) {
  return argument == option.name || argument.starts_with(option.name + "=");
}

}  // namespace

bool is_setting(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0 || argument[0] == '-') return false;
  return std::all_of(argument.begin(), argument.begin() + static_cast<int64_t>(equals), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '$';
  });
}

bool is_number_list(const std::string& argument) {
  return !argument.empty() && argument.find_first_not_of("0123456789,_") == std::string::npos;
}

std::vector<std::string> repeat_list_options(int argc, const char* const* argv,
                                             const std::vector<ListOption>& options) {
  std::vector<std::string> out;
  const ListOption* open = nullptr;  // the option that an argument may be one more value of
  bool first = false;                // whether the argument is the option's own, whatever it is
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") {
      out.insert(out.end(), argv + i, argv + argc);
      return out;
    }
    if (first) {
      first = false;
    } else if (open != nullptr && open->takes(argument)) {
      out.push_back(open->name);
    } else {
      const auto found = std::find_if(options.begin(), options.end(),
                                      [&](const ListOption& o) { return is_of(o, argument); });
      open = found == options.end() ? nullptr : &*found;
      first = open != nullptr && argument == open->name;
    }
    out.push_back(argument);
  }
  return out;
}

}  // namespace bamtrain
