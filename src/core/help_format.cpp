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

/// Whether the option's value is one of some words, "a|b|c".
bool has_choices(const CLI::Option& option) {
  return option.get_type_size() != 0 && option.get_type_name().find('|') != std::string::npos;
}

/// Lists of more words than a label holds stand in the text.
bool lists_choices_in_text(const CLI::Option& option) {
  constexpr size_t kMostLetters = 40;
  return has_choices(option) && option.get_type_name().size() > kMostLetters;
}

std::string value_name(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  return lists_choices_in_text(option) ? "NAME" : option.get_type_name();
}

bool is_many(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

/// "-o, --output FILE".
std::string label_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const std::string value = value_name(option);
  return join(names) + (value.empty() ? "" : " " + value);
}

/// "RUN...".
std::string positional_of(const CLI::Option& option) {
  return option.get_name(true, false) + (is_many(option) ? "..." : "");
}

/// The text beside the option, for which `named` says that its argument has the text already.
std::string text_of(const CLI::Option& option, bool named = false) {
  if (named && option.get_positional()) return "the same as " + option.get_name(true, false);
  std::string text = option.get_description();
  if (lists_choices_in_text(option)) {
    std::string names = option.get_type_name();
    for (size_t at = 0; (at = names.find('|', at)) != std::string::npos; ++at) {
      names.replace(at, 1, ", ");
    }
    text += " (one of " + names + ")";
  }
  if (!option.get_default_str().empty()) text += " (default: " + option.get_default_str() + ")";
  return text;
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string out = wrapped("", app->get_description(), 0) + "\n" + usage(*app, name);
    const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
    if (!commands.empty()) {
      out += "\nCommands:\n";
      for (const CLI::App* command : commands) {
        out += help_entry(command->get_name(), command->get_description());
      }
    }
    const auto positionals =
        app->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (!positionals.empty()) out += "\nArguments:\n";
    for (const CLI::Option* option : positionals) {
      out += help_entry(positional_of(*option), text_of(*option));
    }
    std::vector<std::string> groups = app->get_groups();
    std::stable_partition(groups.begin(), groups.end(),
                          [](const std::string& group) { return group != kUngrouped; });
    for (const std::string& group : groups) {
      const auto options = app->get_options([&group](const CLI::Option* option) {
        return option->nonpositional() && option->get_group() == group;
      });
      if (group.empty() || options.empty()) continue;
      out += "\n" + (group == kUngrouped && groups.size() > 1 ? "Other options" : group) + ":\n";
      for (const CLI::Option* option : options)
        out += help_entry(label_of(*option), text_of(*option, true));
    }
    const std::string footer = app->get_footer();
    return footer.empty() ? out : out + "\n" + footer;
  }

 private:
  /// What a call needs at the least, and that there is more.
  static std::string usage(const CLI::App& app, const std::string& name) {
    const bool of_commands = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
    const std::string command = name + " COMMAND [OPTIONS]\n";
    if (of_commands && app.get_require_subcommand_min() > 0) return "Usage: " + command;
    std::string words;
    if (of_commands && app.get_option_no_throw("--config") != nullptr) words = " --config FILE";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_positional() || !option->get_required()) continue;
      words += " --" + option->get_lnames().front() + " " + value_name(*option);
    }
    words += " [OPTIONS]";
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_positional()) continue;
      const std::string word = positional_of(*option);
      words += option->get_required() ? " " + word : " [" + word + "]";
    }
    const std::string lead = "Usage: " + name;
    return wrapped(lead + " ", words, lead.size() + 1) + (of_commands ? "       " + command : "");
  }
};

}  // namespace

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
