#include "core/help_format.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "core/join.h"
#include "core/wrap.h"

namespace bamtrain {

namespace {

constexpr size_t kTextColumn = 25;
constexpr const char* kUngrouped = "Options";  // as CLI11 calls them

/// Lists of more words than a label holds stand in the text.
bool lists_choices_in_text(const CLI::Option& option) {
  constexpr size_t kMostLetters = 40;
  return !option_choices(option).empty() && option.get_type_name().size() > kMostLetters;
}

std::string value_name(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  return lists_choices_in_text(option) ? "NAME" : option.get_type_name();
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string out = wrapped("", app->get_description(), 0) + "\n";
    std::string lead = "Usage: ";
    for (const std::string& call : usage_of(*app, name)) {
      out += wrapped(lead + name + " ", call.substr(name.size()), lead.size() + name.size() + 1);
      lead = std::string(lead.size(), ' ');
    }
    const auto commands = subcommands_of(*app);
    if (!commands.empty()) out += "\nCommands:\n";
    for (const CLI::App* command : commands) {
      out += help_entry(command->get_name(), command->get_description());
    }
    const auto arguments = arguments_of(*app);
    if (!arguments.empty()) out += "\nArguments:\n";
    for (const CLI::Option* argument : arguments) {
      out += help_entry(argument_label(*argument), argument_text(*argument));
    }
    for (const OptionGroup& group : option_groups(*app)) {
      out += "\n" + group.title + ":\n";
      for (const CLI::Option* option : group.options) {
        out += help_entry(option_label(*option), option_text(*option));
      }
    }
    const std::string footer = app->get_footer();
    return footer.empty() ? out : out + "\n" + footer;
  }
};

}  // namespace

std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> option_choices(const CLI::Option& option) {
  const std::string words = option.get_type_size() == 0 ? "" : option.get_type_name();
  if (words.find('|') == std::string::npos) return {};
  return CLI::detail::split(words, '|');
}

bool takes_many(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

std::string option_label(const CLI::Option& option) {
  const std::string value = value_name(option);
  return join(option_names(option)) + (value.empty() ? "" : " " + value);
}

std::string argument_label(const CLI::Option& option) {
  return option.get_name(true, false) + (takes_many(option) ? "..." : "");
}

std::string option_text(const CLI::Option& option) {
  return option.get_positional() ? "the same as " + argument_label(option) : argument_text(option);
}

std::string argument_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (lists_choices_in_text(option)) text += " (one of " + join(option_choices(option)) + ")";
  if (!option.get_default_str().empty()) text += " (default: " + option.get_default_str() + ")";
  return text;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> arguments_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<OptionGroup> option_groups(const CLI::App& app) {
  std::vector<std::string> names = app.get_groups();
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kUngrouped; });
  std::vector<OptionGroup> out;
  for (const std::string& name : names) {
    const auto options = app.get_options([&name](const CLI::Option* option) {
      return option->nonpositional() && option->get_group() == name;
    });
    if (name.empty() || options.empty()) continue;
    out.push_back({name == kUngrouped && names.size() > 1 ? "Other options" : name, options});
  }
  return out;
}

std::vector<std::string> usage_of(const CLI::App& app, const std::string& name) {
  const bool of_commands = !subcommands_of(app).empty();
  const std::string command = name + " COMMAND [OPTIONS]";
  if (of_commands && app.get_require_subcommand_min() > 0) return {command};
  std::string call = name;
  if (of_commands && app.get_option_no_throw("--config") != nullptr) call += " train FILE";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || !option->get_required()) continue;
    call += " --" + option->get_lnames().front() + " " + value_name(*option);
  }
  call += " [OPTIONS]";
  for (const CLI::Option* argument : arguments_of(app)) {
    const std::string word = argument_label(*argument);
    call += argument->get_required() ? " " + word : " [" + word + "]";
  }
  if (of_commands) return {call, command};
  return {call};
}

void set_help_format(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "print this help");
}

std::string help_entry(const std::string& label, const std::string& text) {
  std::string lead = "  " + label;
  if (lead.size() + 2 <= kTextColumn) {
    lead.resize(kTextColumn, ' ');
    return wrapped(lead, text, kTextColumn);
  }
  return lead + "\n" + wrapped(std::string(kTextColumn, ' '), text, kTextColumn);
}

}  // namespace bamtrain
