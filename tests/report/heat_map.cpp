// Maps, compared with images worked out by hand.

#include "report/heat_map.h"

#include <algorithm>

#include "catch.h"
#include "report/figure.h"
#include "report/xml.h"

using namespace bamtrain;

namespace {

HeatMap small() {
  return {"passkey", "exact match", {0, 1024}, {0, 0.5, 1}, {1, 0.25, 0.5, 0, 0.0625, 1}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("a map on a terminal has a row for each depth, and the mean of several lengths") {
  CHECK(terminal_heat_map(small()) ==
        "  exact match (%) by depth (%, down) and length\n"
        "   depth      0   1024   mean\n"
        "     0.0    100     25   62.5\n"
        "    50.0     50      0     25\n"
        "   100.0    6.3    100   53.1\n");
  CHECK(terminal_heat_map({"t", "recall", {128}, {0, 1}, {1, 0}}) ==
        "  recall (%) by depth (%, down) and length\n"
        "   depth    128\n"
        "     0.0    100\n"
        "   100.0      0\n");
}

TEST_CASE("a map of many lengths stays within 80 columns, in blocks") {
  HeatMap map = {"t", "recall", {}, {0, 1}, {}};
  for (int64_t l = 1; l <= 23; ++l) map.lengths.push_back(l << 12);
  map.shares.assign(46, 0.999);
  const std::string text = terminal_heat_map(map);
  CHECK(count(text, "   depth") == 3);
  CHECK(count(text, "99.9") == 48);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    CHECK(end - at <= 80);
    at = end + 1;
  }
}

TEST_CASE("a figure of maps is a figure, with a field for each share") {
  HeatMap other = small();
  other.title = "niah <1>";
  const std::string svg = heat_map_svg({small(), other}, kFigureWidth);
  CHECK(is_figure_svg(svg));
  const testing::Xml x = testing::parse_xml(svg);
  CHECK(x.at("width") == "84mm");
  CHECK(x.all("rect").size() == 1 + 2 + 12);  // paper, frames, cells
  CHECK(count(svg, "<rect class=\"f0\"") == 12);
  CHECK(count(svg, "fill-opacity=\"0.06\"") == 2);
  CHECK(svg.find("<title>length 1,024, depth 0%: 25%</title>") != std::string::npos);
  CHECK(svg.find("niah &lt;1&gt;, exact match (%)") != std::string::npos);
  // Numbers are light on dark cells.
  CHECK(count(svg, "class=\"paper\" fill=\"#fff\" font-size=\"7\" text-anchor=\"middle\"") == 4);
  CHECK(svg == heat_map_svg({small(), other}, kFigureWidth));
}

TEST_CASE("fields that are too small for them have no numbers, and ticks only some") {
  HeatMap map = {"t", "recall", {}, {}, {}};
  for (int64_t i = 0; i < 100; ++i) {
    map.lengths.push_back(1000 + i);
    map.depths.push_back(static_cast<double>(i) / 99);
  }
  map.shares.assign(10000, 1);
  const std::string svg = heat_map_svg({map}, kFigureWidth);
  CHECK(count(svg, "<rect class=\"f0\"") == 10000);
  CHECK(count(svg, ">100</text>") == 1);  // a depth
  CHECK(count(svg, "class=\"soft\" fill") < 60);
  CHECK_FALSE(svg.find(">1,000</text>") == std::string::npos);
}
