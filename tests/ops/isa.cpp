// The program runs on processors older than the newest that it has code for.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "catch.h"

namespace {

struct Close {
  void operator()(std::FILE* f) const { pclose(f); }
};

/// Functions of a program that use instructions or registers of AVX and later, as objdump prints
/// them, names demangled.
std::set<std::string> functions_with_avx(const std::string& program) {
  const std::string command = "objdump -d -C --no-show-raw-insn " + program;
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  REQUIRE(pipe != nullptr);
  std::set<std::string> found;
  std::string function;
  char* line = nullptr;
  size_t capacity = 0;
  int64_t lines = 0;
  while (getline(&line, &capacity, pipe.get()) > 0) {
    ++lines;
    const std::string text(line);
    const size_t name = text.find('<'), tab = text.find('\t');
    if (text[0] != ' ' && name != std::string::npos) {
      function = text.substr(name + 1, text.rfind('>') - name - 1);
    } else if (tab != std::string::npos && tab + 1 < text.size()) {
      const bool avx = text.compare(tab + 1, 1, "v") == 0 && text.compare(tab + 1, 4, "verr") != 0;
      if (avx) found.insert(function);
    }
  }
  std::free(line);
  INFO("objdump is part of binutils, which the compiler needs");
  REQUIRE(lines > 10000);
  return found;
}

}  // namespace

TEST_CASE("newer instructions stay in the functions that are chosen at run time") {
#if defined(__AVX__)
  WARN("built with -Dnative=true, for this machine only: skipped");
#elif defined(__x86_64__)
  const char* build = std::getenv("BAMTRAIN_BUILD");
  const auto functions = functions_with_avx(std::string(build ? build : "build") + "/src/bamtrain");
  int chosen = 0;
  for (const std::string& name : functions) {
    // Copies for one caller are local to their file: nothing is merged with them.
    if (name.find("[clone .constprop") != std::string::npos) continue;
    const bool inside = name.find("bamtrain::v3::") != std::string::npos ||
                        name.find("bamtrain::v4::") != std::string::npos;
    INFO("compiled for new processors, merged with what all run: " << name);
    CHECK(inside);
    chosen += inside;
  }
  CHECK(chosen > 20);
#else
  WARN("one instruction set on this processor: skipped");
#endif
}
