#pragma once
// The manual page of a program whose command line is CLI11's, for man: what --help says of the
// program and each of its commands. The build writes it by `PROGRAM --manual`.

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace bamtrain {

/// troff with the macros of man 7. `sections`: further ones, as Markdown (core/roff.h).
std::string manual_page(const CLI::App& app, const std::string& version,
                        std::string_view sections = "");

/// Whether the command line is `PROGRAM --manual`: then prints the page.
bool print_manual(const CLI::App& app, int argc, char** argv, const std::string& version,
                  std::string_view sections = "");

}  // namespace bamtrain
