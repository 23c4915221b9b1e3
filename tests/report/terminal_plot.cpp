#include "report/terminal_plot.h"

#include <cmath>
#include <sstream>

#include "catch.h"

using namespace bamtrain;

TEST_CASE("a plot looks like this") {
  const std::string plot = terminal_plot(
      "perplexity", {{"bam", {{128, 100}, {256, 100}, {512, 101}, {1024, 102}, {2048, 103}}},
                     {"rope", {{128, 96}, {256, 120}, {512, 210}, {1024, 420}, {2048, 900}}}});
  INFO(plot);
  CHECK(plot == R"(perplexity
           |                                                            .b
           |                                                        ....
           |                                                     ...
       500 +                                                  ...
           |                                              b...
           |                                           ...
           |                                       ....
           |                                    ...
           |                                b...
       200 +                            ....
           |                       .....
           |                  .....
           |        .........b
       100 +  *..............a..............a.............a..............a
           +--+--------------+--------------+-------------+--------------+--
             128            256            512          1,024          2,048
           a bam
           b rope
)");
}

TEST_CASE("no line of a plot is wider than 80 columns or holds more than printable characters") {
  const std::string wild = std::string(200, 'x') + "\x1B[31m\n\xC3\xA9";
  const std::string plot = terminal_plot(
      wild, {{wild, {{1, 1e-300}, {1e300, 1e300}}}, {"\x1B[31m\n\xC3\xA9", {{3, 4}}}});
  REQUIRE_FALSE(plot.empty());
  std::istringstream lines(plot);
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    CHECK(line.size() <= 80);
    for (const char c : line) CHECK((c >= 0x20 && c <= 0x7E));
  }
  CHECK(last == "           b ?[31m??");
}

TEST_CASE("what cannot be drawn is left out, and a plot of nothing is nothing") {
  CHECK(terminal_plot("t", {}).empty());
  CHECK(terminal_plot("t", {{"a", {{1, 1}}}}).empty());
  CHECK(terminal_plot("t", {{"a", {{1, 1}, {2, 0}, {3, INFINITY}, {4, NAN}}}}).empty());
  CHECK_FALSE(terminal_plot("t", {{"a", {{1, 1}, {2, INFINITY}, {3, 2}}}}).empty());
}
