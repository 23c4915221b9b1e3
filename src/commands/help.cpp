#include "commands/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/command.h"
#include "commands/documentation.h"
#include "config/reference.h"
#include "core/closest_match.h"
#include "core/faults.h"
#include "core/help_format.h"
#include "core/join.h"
#include "core/pager.h"

namespace bamtrain {

namespace {

struct Page {
  std::string topic, text;  // "training"; its first line is a heading
};

/// Sorted by topic.
std::vector<Page> all_pages() {
  std::vector<Page> pages = {{"config", config_reference()}};
  for (const EmbeddedFile& file : documentation()) {
    pages.push_back(
        {std::string(file.name.substr(0, file.name.rfind('.'))), std::string(file.text)});
  }
  std::sort(pages.begin(), pages.end(),
            [](const Page& a, const Page& b) { return a.topic < b.topic; });
  return pages;
}

std::vector<std::string> names_of(const std::vector<Page>& pages) {
  std::vector<std::string> names;
  for (const Page& page : pages) names.push_back(page.topic);
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

constexpr const char* kOneOfKind = "\nbamtrain help NAME describes one of them.\n";

/// Mechanisms and tasks, by kind.
std::vector<std::pair<std::string, std::vector<std::string>>> kinds() {
  auto out = mechanisms_by_kind();
  out.emplace_back("task", every_task_name());
  return out;
}

/// The paths whose last names are `key`: "optimizer.lr" for "lr".
std::vector<std::string> ending_with(const std::string& key,
                                     const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    if (path.ends_with("." + key)) out.push_back(path);
  }
  return out;
}

std::string list_of_topics(const std::vector<Page>& pages) {
  std::string out = "bamtrain help TOPIC prints one of these topics.\n\nPages:\n";
  for (const Page& page : pages) {
    out += help_entry(page.topic, page.text.substr(2, page.text.find('\n') - 2));
  }
  out += "\nConfiguration:\n";
  out += help_entry("config KEY", "a key, or a section with its keys: config train.steps");
  out += "\nMechanisms and tasks, with their options:\n";
  for (const auto& [kind, names] : kinds()) out += help_entry(kind, join(names));
  return out + "\nbamtrain --help and bamtrain COMMAND --help list options.\n";
}

/// The entry of a key, for which its last name is enough; empty if there is no such key.
std::string entry_of(const std::string& key) {
  if (const std::string entry = config_entry(key); !entry.empty()) return entry;
  const std::string own = name_here(key);
  const std::vector<std::string> longer = ending_with(own.empty() ? key : own, config_paths());
  if (longer.size() < 2) return longer.empty() ? "" : config_entry(longer[0]);
  throw Error::fault(ExitCode::usage, "help config", "several keys end in " + key,
                     "choose one of " + join(longer));
}

/// What `topic`, and after "config" the `key`, is about.
std::string text_about(const std::string& topic, const std::string& key, const CLI::App& app) {
  const std::vector<Page> pages = all_pages();
  if (topic.empty()) return list_of_topics(pages);
  if (!key.empty()) {
    if (topic != "config") {
      throw Error::fault(ExitCode::usage, "help", "unexpected argument '" + key + "'",
                         "only config takes one: bamtrain help config KEY");
    }
    if (const std::string entry = entry_of(key); !entry.empty()) return entry;
    throw unknown_name(ExitCode::usage, "help config", "key", key, config_paths(),
                       "bamtrain help config lists the keys");
  }
  for (const Page& page : pages) {
    if (page.topic == topic) return page.text;
  }
  if (const std::string page = mechanism_page(topic); !page.empty()) return page;
  for (const auto& [kind, names] : kinds()) {
    if (kind == topic) return help_entry(kind, join(names)) + kOneOfKind;
  }
  const std::vector<std::string> commands = commands_of(app);
  if (std::find(commands.begin(), commands.end(), topic) != commands.end()) {
    return app.get_subcommand(topic)->help(app.get_name());
  }
  if (const std::string entry = entry_of(topic); !entry.empty()) return entry;
  std::vector<std::string> known = names_of(pages);
  for (const auto& more : {commands, mechanism_names(), every_task_name()}) {
    known.insert(known.end(), more.begin(), more.end());
  }
  throw unknown_name(ExitCode::usage, "help", "topic", topic, known,
                     "choose one of " + join(names_of(pages)) + ", or a name of bamtrain help");
}

struct HelpArguments {
  std::string topic, key;
};

}  // namespace

std::vector<Candidate> help_topics() {
  std::vector<Candidate> out;
  for (const Page& page : all_pages()) {
    out.push_back({page.topic, page.text.substr(2, page.text.find('\n') - 2)});
  }
  for (const auto& [kind, names] : kinds()) {
    out.push_back({kind, "list them"});
    for (const std::string& name : names) out.push_back({name, kind});
  }
  return out;
}

std::string manual_sections() {
  std::string out;
  for (const EmbeddedFile& file : documentation()) {
    if (file.name == "exit-codes.md") out = file.text;
  }
  return out +
         "\n# See also\n\n`bamdata`(1), which makes token shards; `bamtrain help`, the pages of "
         "the "
         "documentation.\n";
}

Command help_command(CLI::App& app) {
  const auto arguments = std::make_shared<HelpArguments>();
  CLI::App* options = app.add_subcommand("help", "print a page of the documentation");
  options->add_option("topic", arguments->topic,
                      "a page, a mechanism, a task or a command (default: list them)");
  options->add_option("key", arguments->key, "after config: the key or section to print");
  return {options, [arguments, &app] {
            print_paged(text_about(arguments->topic, arguments->key, app));
            return 0;
          }};
}

}  // namespace bamtrain
