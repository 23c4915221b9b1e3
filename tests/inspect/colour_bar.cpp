#include "inspect/colour_bar.h"

#include "catch.h"
#include "report/xml.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

std::vector<std::string> numbers(const std::string& bar, const std::string& of) {
  const Xml parsed = parse_xml(bar.substr(0, bar.size() - 1));
  std::vector<std::string> out;
  for (const Xml* row : parsed.of_class("span", of)) {
    for (const Xml* n : row->all("span")) out.push_back(n->text);
  }
  return out;
}

}  // namespace

TEST_CASE("a bar has the values at its quarters") {
  // Weights go by the square root: a quarter of the bar is a sixteenth of the weight.
  CHECK(numbers(colour_bar(MapColours::weights, 0.8, 0.8), "numbers") ==
        std::vector<std::string>{"0", "0.05", "0.2", "0.45", "0.8"});
  CHECK(numbers(colour_bar(MapColours::signs, 20, 20), "numbers") ==
        std::vector<std::string>{"-20", "-10", "0", "10", "20"});
}

TEST_CASE("a bar with two scales has the numbers of both") {
  const std::string bar = colour_bar(MapColours::signs, 5, 20);
  CHECK(numbers(bar, "shared") == std::vector<std::string>{"-20", "-10", "0", "10", "20"});
  CHECK(numbers(bar, "own") == std::vector<std::string>{"-5", "-2.5", "0", "2.5", "5"});
}

TEST_CASE("a factor of opacity changes from a layer's scale to the shared one") {
  // A weight of 0.09 is sqrt(0.09 / 0.36) = 0.5 of full colour, and sqrt(0.09 / 1) = 0.3.
  CHECK(0.5 * shared_opacity(MapColours::weights, 0.36, 1) == Approx(0.3));
  CHECK(0.5 * shared_opacity(MapColours::signs, 5, 20) == Approx(0.125));
  CHECK(shared_opacity(MapColours::signs, 0, 0) == 1);
}
