#include "core/manual_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <vector>

#include "core/help_format.h"
#include "core/join.h"
#include "core/roff.h"
#include "core/wrap.h"

namespace bamtrain {

namespace {

std::string manual_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string section(const std::string& title) {
  return ".SH \"" + roff_text(manual_capitals(title)) + "\"\n";
}

/// A label, and the text below it.
std::string entry(const std::string& label, const std::string& text) {
  return ".TP\n" + label + "\n" + (text.empty() ? "\\&" : roff_text(text)) + "\n";
}

std::string option_entry(const CLI::Option& option) {
  const std::string names = join(option_names(option));
  const std::string value = option_label(option).substr(names.size());
  return entry(roff_bold(names) + (value.empty() ? "" : roff_italic(value)), option_text(option));
}

std::string usage_lines(const CLI::App& app, const std::string& name) {
  std::string out;
  for (const std::string& call : usage_of(app, name)) {
    out +=
        (out.empty() ? "" : ".br\n") + roff_bold(name) + roff_text(call.substr(name.size())) + "\n";
  }
  return out;
}

/// Lines as they are, after a heading that is the first of them: "Examples:". Other footers are
/// prose.
std::string footer_of(const CLI::App& app, bool of_program) {
  const std::string footer = app.get_footer();
  const size_t end = footer.find(":\n");
  if (footer.empty() || end == footer.npos || end != footer.find('\n') - 1) {
    const std::string prose = ".PP\n" + roff_text(wrapped("", footer, 0, footer.size()));
    return footer.empty() ? "" : (of_program ? section("description") : "") + prose;
  }
  const std::string heading = footer.substr(0, end);
  return (of_program ? section(heading) : ".PP\n" + roff_bold(heading + ":") + "\n") +
         roff_verbatim(footer.substr(end + 2));
}

std::string options_of_program(const CLI::App& app) {
  std::string out = section("options");
  const auto groups = option_groups(app);
  for (const OptionGroup& group : groups) {
    if (groups.size() > 1) out += ".SS \"" + roff_text(group.title) + "\"\n";
    for (const CLI::Option* option : group.options) out += option_entry(*option);
  }
  return out;
}

std::string command_section(const CLI::App& command, const std::string& program) {
  const std::string name = program + " " + command.get_name();
  std::string out = ".SS \"" + roff_text(name) + "\"\n";
  out += roff_text(command.get_description()) + ".\n.PP\n" + usage_lines(command, name);
  for (const CLI::Option* argument : arguments_of(command)) {
    out += entry(roff_italic(argument_label(*argument)), argument_text(*argument));
  }
  const auto groups = option_groups(command);
  for (const OptionGroup& group : groups) {
    if (groups.size() > 1) out += ".PP\n" + roff_bold(group.title + ":") + "\n";
    for (const CLI::Option* option : group.options) out += option_entry(*option);
  }
  return out + footer_of(command, false);
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& version,
                        std::string_view sections) {
  const std::string name = app.get_name();
  // No hyphenation, no justified lines: they hold names of options and files.
  std::string out = fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n{}", manual_capitals(name),
                                roff_text(name + " " + version), kRoffLeft);
  out += section("name") + roff_text(name) + " \\- " + roff_text(app.get_description()) + "\n";
  out += section("synopsis") + usage_lines(app, name);
  out += options_of_program(app);
  const auto commands = subcommands_of(app);
  if (!commands.empty()) out += section("commands");
  for (const CLI::App* command : commands) out += command_section(*command, name);
  return out + footer_of(app, true) + roff_page(sections);
}

bool print_manual(const CLI::App& app, int argc, char** argv, const std::string& version,
                  std::string_view sections) {
  if (argc != 2 || std::string_view(argv[1]) != "--manual") return false;
  fmt::print("{}", manual_page(app, version, sections));
  return true;
}

}  // namespace bamtrain
