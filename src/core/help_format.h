#pragma once
// --help of programs whose command line is CLI11's: options in groups, within 80 columns.

#include <string>

namespace CLI {
class App;
}

namespace bamtrain {

/// For the program and every command that is added to it afterwards. Groups are those of
/// CLI::Option::group, in the order of their first options; options without one come last.
void set_help_format(CLI::App& app);

/// "  LABEL    TEXT": the text in a column of its own, below a label that is too wide for that.
std::string help_entry(const std::string& label, const std::string& text);

}  // namespace bamtrain
