#pragma once
// Completion of command lines by shells. The scripts of scripts/completion call
// `PROGRAM --complete WORD...` with the words after the program's name, up to the cursor. The
// answer comes from CLI11's tree, so that it is that of the installed program.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bamtrain {

struct Candidate {
  std::string word;       // replaces the word at the cursor
  std::string text = "";  // what a shell shows next to it

  bool operator==(const Candidate&) const = default;
};

/// A candidate that stands for names of files. They complete what follows `text`, which is in front
/// of the name: "--output=".
inline constexpr const char* kAnyFile = ":files";

/// The values of an option or argument for which the tree has no words, after these words of the
/// command; nullopt for an unknown one.
using Values = std::function<std::optional<std::vector<Candidate>>(
    const CLI::Option& option, const std::vector<std::string>& before, const std::string& word)>;

/// What the last of the words may become. Only candidates that begin with it; files are not looked
/// up.
std::vector<Candidate> completions(const CLI::App& app, const std::vector<std::string>& words,
                                   const Values& values = nullptr);

/// Whether the command line is `PROGRAM --complete WORD...`: then prints the candidates, one a
/// line, "WORD<tab>TEXT".
bool print_completions(const CLI::App& app, int argc, char** argv, const Values& values = nullptr);

}  // namespace bamtrain
