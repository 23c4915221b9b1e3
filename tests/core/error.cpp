#include "core/error.h"

#include <string>

#include "catch.h"

namespace bamtrain {
namespace {

TEST_CASE("what was found cannot reach a terminal as a control, nor cut the message") {
  const std::string replacement = "\xEF\xBF\xBD";
  const std::string found("a\0b\x1B]0;t\x07\x7F\xC2\x9B\xFF\t\n", 15);
  const Error e(ExitCode::io, "f\x1B", "text\x08", found, "r\x1B");
  CHECK(std::string(e.what()) == "f" + replacement + ": expected text" + replacement + ", found a" +
                                     replacement + "b" + replacement + "]0;t" + replacement +
                                     replacement + replacement + replacement + "\t\n; remedy: r" +
                                     replacement);
  CHECK(e.where() == "f" + replacement);
  CHECK(std::string(e.at("g\x1B").what()).starts_with("g" + replacement + ": expected"));
  CHECK(
      std::string(Error(ExitCode::io, "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\x99", "").what()) ==
      "\xC3\xA9: expected \xE2\x82\xAC, found \xF0\x9F\x90\x99");
}

}  // namespace
}  // namespace bamtrain
