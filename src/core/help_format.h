#pragma once
// --help of programs whose command line is CLI11's: options in groups, within 80 columns. The
// manual page and the shells' completions take their words from here.

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bamtrain {

/// For the program and every command that is added to it afterwards. Groups are those of
/// CLI::Option::group, in the order of their first options; options without one come last.
void set_help_format(CLI::App& app);

/// "  LABEL    TEXT": the text in a column of its own, below a label that is too wide for that.
std::string help_entry(const std::string& label, const std::string& text);

/// What --help says of a program or command, in its order.
struct OptionGroup {
  std::string title;  // "Input"
  std::vector<const CLI::Option*> options;
};
std::vector<OptionGroup> option_groups(const CLI::App& app);
std::vector<const CLI::Option*> arguments_of(const CLI::App& app);
std::vector<const CLI::App*> subcommands_of(const CLI::App& app);
/// What calls of it need at the least: "bamtrain COMMAND [OPTIONS]". `name` is its own.
std::vector<std::string> usage_of(const CLI::App& app, const std::string& name);

/// {"-o", "--output"}.
std::vector<std::string> option_names(const CLI::Option& option);
/// "-o, --output FILE".
std::string option_label(const CLI::Option& option);
/// "RUN...".
std::string argument_label(const CLI::Option& option);
/// Its description, the choices that the label leaves out, and its default.
std::string argument_text(const CLI::Option& option);
/// The same; of an option that is also an argument, that it is "the same as RUN".
std::string option_text(const CLI::Option& option);
/// The words of which its value is one; empty for other values.
std::vector<std::string> option_choices(const CLI::Option& option);
/// Whether it takes any number of values.
bool takes_many(const CLI::Option& option);

}  // namespace bamtrain
