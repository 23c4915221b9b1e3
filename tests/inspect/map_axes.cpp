#include "inspect/map_axes.h"

#include "catch.h"
#include "report/xml.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("a name on an axis is a word of eight columns at most") {
  CHECK(axis_name(" the") == "the");
  CHECK(axis_name("Kirchberger") == "Kirchber\u2026");
  CHECK(axis_name("Kirchber") == "Kirchber");
  CHECK(axis_name("\u6771\u4EAC\u90FD\u5E81\u820E\u524D") == "\u6771\u4EAC\u90FD\u5E81\u2026");
  CHECK(axis_name("  ") == "\u00B7");
  CHECK(axis_name(" \n") == "\u21B5");
}

TEST_CASE("up to 64 tokens are named once for all maps, in the middle of their fields") {
  std::vector<std::string> tokens(kMostAxisNames, "x");
  tokens[0] = " <a>";
  const Xml shared = parse_xml("<div>" + token_axes(tokens) + "</div>");
  const auto texts = shared.all("text");
  REQUIRE(texts.size() == 2 * tokens.size());
  CHECK(texts[0]->text == "<a>");
  const auto groups = shared.all("g");
  REQUIRE(groups.size() == 2);
  // Fields are 10 units, the letters' middle is 0.35 of their 9 units above the baseline.
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double middle = 10 * static_cast<double>(i) + 5;
    CHECK(groups[0]->all("text")[i]->number("y") == Approx(middle + 0.35 * 9));
    const std::string& moved = groups[1]->all("text")[i]->at("transform");
    CHECK(std::stod(moved.substr(std::string("translate(").size())) == Approx(middle + 0.35 * 9));
  }
  const Xml map = parse_xml(with_token_axes("<img/>", std::ssize(tokens)));
  REQUIRE(map.all("use").size() == 2);
  CHECK(map.all("use")[0]->at("href") == "#token-columns");
  CHECK(map.all("use")[1]->at("href") == "#token-rows");
  CHECK(map.all("svg")[0]->at("viewBox") == "0 0 640 50.4");
  CHECK(map.all("svg")[1]->at("viewBox") == "0 0 50.4 640");
  tokens.emplace_back("y");
  CHECK(token_axes(tokens).empty());
}

TEST_CASE("rows and columns of another map have names of their own") {
  const Xml map = parse_xml(with_axes("<img/>", {"layer 0", "layer 5"}, {"a", "b", "c"}));
  std::vector<std::string> names;
  for (const Xml* text : map.all("text")) names.push_back(text->text);
  CHECK(names == std::vector<std::string>{"a", "b", "c", "layer 0", "layer 5"});
}
