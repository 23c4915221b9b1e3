// The programs run on processors older than the newest one they have code for.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "catch.h"

namespace {

struct Close {
  void operator()(std::FILE* f) const { pclose(f); }
};

/// Functions of a program that use AVX or later instructions or registers, from objdump, with
/// demangled names.
std::set<std::string> functions_with_avx(const std::string& program) {
  const std::string command = "objdump -d -C --no-show-raw-insn '" + program + "'";
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
  INFO(program << ": objdump is part of binutils, which the compiler needs");
  REQUIRE(lines > 1000);
  return found;
}

}  // namespace

TEST_CASE("newer instructions stay in the functions that are chosen at run time") {
#if defined(__AVX__)
  WARN("built with -Dnative=true, for this machine only: skipped");
#elif defined(__x86_64__)
  const char* list = std::getenv("BAMTRAIN_PROGRAMS");
  if (!list) {
    WARN("BAMTRAIN_PROGRAMS names no programs: skipped; run by meson test");
    return;
  }
  std::istringstream programs(list);
  std::string program;
  int chosen_in_all = 0;
  while (std::getline(programs, program, ':')) {
    for (const std::string& name : functions_with_avx(program)) {
      // Clones for one caller are local to their file, so the linker does not merge them.
      if (name.find("[clone .constprop") != std::string::npos) continue;
      bool inside = false;
      for (const char* set : {"v3", "v4", "v4_amx"}) {
        inside |= name.find(std::string("bamtrain::") + set + "::") != std::string::npos;
      }
      INFO(program << ": compiled for new processors, merged with what all run: " << name);
      CHECK(inside);
      chosen_in_all += inside;
    }
  }
  CHECK(chosen_in_all > 20);
#else
  WARN("one instruction set on this processor: skipped");
#endif
}
