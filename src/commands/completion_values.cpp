#include "commands/completion_values.h"

#include <CLI/CLI.hpp>

#include "commands/help.h"
#include "config/key_words.h"
#include "core/help_format.h"

namespace bamtrain {

namespace {

/// KEY=VALUE.
std::vector<Candidate> settings(const std::string& word) {
  std::vector<Candidate> out;
  const size_t equals = word.find('=');
  const std::string path = word.substr(0, equals), lead = path + "=";
  for (const KeyWords& key : key_words()) {
    if (equals == word.npos) {
      out.push_back({key.path + "=", key.description});
    } else if (key.path == path) {
      for (const std::string& value : key.words) out.push_back({lead + value});
      if (key.any_text) out.push_back({kAnyFile, lead});
    }
  }
  return out;
}

std::vector<Candidate> topics(const CLI::App& app) {
  std::vector<Candidate> out = help_topics();
  for (const CLI::App* command : subcommands_of(app)) {
    out.push_back({command->get_name(), command->get_description()});
  }
  return out;
}

std::vector<Candidate> sections_and_keys() {
  std::vector<Candidate> out;
  for (const auto& all : {section_words(), key_words()}) {
    for (const KeyWords& key : all) out.push_back({key.path, key.description});
  }
  return out;
}

}  // namespace

Values completion_values(const CLI::App& app) {
  return [&app](const CLI::Option& option, const std::vector<std::string>& before,
                const std::string& word) -> std::optional<std::vector<Candidate>> {
    const std::string name = option.get_name();
    if (name == "--set") return settings(word);
    if (name == "topic") return topics(app);
    if (name == "key") {
      return before == std::vector<std::string>{"config"} ? sections_and_keys()
                                                          : std::vector<Candidate>();
    }
    return std::nullopt;
  };
}

}  // namespace bamtrain
