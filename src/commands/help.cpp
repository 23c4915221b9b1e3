#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "commands/command.h"
#include "commands/documentation.h"
#include "config/reference.h"
#include "core/closest_match.h"
#include "core/error.h"

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

int run_help(const std::string& topic) {
  const std::vector<Page> pages = all_pages();
  if (topic.empty()) {
    fmt::print("bamtrain help TOPIC prints a page of the documentation:\n\n");
    for (const Page& page : pages) {
      fmt::print("  {:<16} {}\n", page.topic, page.text.substr(2, page.text.find('\n') - 2));
    }
    fmt::print("\nbamtrain --help and bamtrain COMMAND --help list options.\n");
    return 0;
  }
  std::vector<std::string> topics;
  std::string listed;
  for (const Page& page : pages) {
    if (page.topic == topic) {
      fmt::print("{}", page.text);
      return 0;
    }
    topics.push_back(page.topic);
    listed += (listed.empty() ? "" : ", ") + page.topic;
  }
  const std::string near = closest_match(topic, topics);
  throw Error(ExitCode::usage, "help", "one of " + listed, topic,
              near.empty() ? "bamtrain help lists them" : "did you mean " + near + "?");
}

}  // namespace

Command help_command(CLI::App& app) {
  const auto topic = std::make_shared<std::string>();
  CLI::App* options = app.add_subcommand("help", "a page of the documentation");
  options->add_option("topic", *topic, "its name; none: the list of pages");
  return {options, [topic] { return run_help(*topic); }};
}

}  // namespace bamtrain
