#pragma once
// For programs whose command line is CLI11's.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/nearest.h"

namespace bamtrain {

/// "did you mean --config?" for the first word of a refused command line that is nearly an option
/// or a subcommand; empty where there is none. REQUIRES: app.parse has thrown a CLI::ParseError.
inline std::string suggestion(const CLI::App& app) {
  std::vector<const CLI::App*> used = {&app};
  for (const CLI::App* sub : app.get_subcommands()) used.push_back(sub);
  std::vector<std::string> options, subcommands;
  for (const CLI::App* a : used) {
    for (const CLI::Option* o : a->get_options()) {
      for (const std::string& name : o->get_lnames()) options.push_back("--" + name);
    }
  }
  if (used.size() == 1) {
    for (const CLI::App* sub : app.get_subcommands(nullptr)) subcommands.push_back(sub->get_name());
  }
  for (const std::string& argument : app.remaining(true)) {
    const std::string word = argument.substr(0, argument.find('='));
    const std::string near = nearest_name(word, word.starts_with("-") ? options : subcommands);
    if (!near.empty() && is_slip(word, near)) return "did you mean " + near + "?";
  }
  return "";
}

}  // namespace bamtrain
