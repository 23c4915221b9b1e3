#include "report/chart.h"

#include <fmt/format.h>

#include <cmath>

#include "catch.h"
#include "report/xml.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

std::string points_text(const Xml& svg, size_t n) {
  return svg.all("polyline").at(n)->at("points");
}

}  // namespace

TEST_CASE("points lie where the axes say") {
  Chart chart;
  chart.title = "t";
  chart.series = {{"a", 0, true, true, 1, {{0, 10}, {50, 20}, {100, 35}}, {}}};
  const Xml x = parse_xml(svg(chart));
  CHECK(x.name == "svg");
  CHECK(x.at("viewBox") == "0 0 400 240");
  // x from -4 to 104 over 50..388, y from 9 to 36 over 202..10.
  std::string expected;
  const double xs[] = {0, 50, 100}, ys[] = {10, 20, 35};
  for (int i = 0; i < 3; ++i) {
    const double px = 50 + (xs[i] + 4) / 108 * 338, py = 202 - (ys[i] - 9) / 27 * 192;
    expected += fmt::format("{}{},{}", i ? " " : "", std::round(px * 100) / 100,
                            std::round(py * 100) / 100);
    CHECK(x.all("circle")[static_cast<size_t>(i)]->number("cx") == Approx(px).margin(0.005));
    CHECK(x.all("circle")[static_cast<size_t>(i)]->number("cy") == Approx(py).margin(0.005));
  }
  CHECK(points_text(x, 0) == expected);
  CHECK(x.all("circle")[2]->all("title")[0]->text == "a: 35 at 100");
  CHECK(x.at("data-plot") == "50,388,10,202");
  CHECK(x.at("tabindex") == "0");
  CHECK(x.all("polyline")[0]->at("data-values") == "0,10 50,20 100,35");
}

TEST_CASE("errors are bars to both sides of their points, and the axis holds them") {
  Chart chart;
  chart.series = {{"a", 1, true, true, 1, {{0, 10}, {50, 20}, {100, 30}}, {}, {5, NAN, 2.5}}};
  const Xml x = parse_xml(svg(chart));
  // y from 5 to 32.5, with a margin of 1/25.
  const auto at = [](double y) { return 202 - ((y - 5) / 27.5 + 0.04) / 1.08 * 192; };
  const auto bars = x.of_class("line", "error");
  REQUIRE(bars.size() == 2);
  CHECK(bars[0]->at("class") == "error c1");
  CHECK(bars[0]->at("x1") == x.all("circle")[0]->at("cx"));
  CHECK(bars[0]->at("x2") == x.all("circle")[0]->at("cx"));
  CHECK(bars[0]->number("y1") == Approx(at(5)).margin(0.006));
  CHECK(bars[0]->number("y2") == Approx(at(15)).margin(0.006));
  CHECK(bars[1]->number("y1") == Approx(at(27.5)).margin(0.006));
  CHECK(bars[1]->number("y2") == Approx(at(32.5)).margin(0.006));
  CHECK(x.all("polyline")[0]->at("data-values") == "0,10,5 50,20 100,30,2.5");
}

TEST_CASE("a bar that leaves a logarithmic axis ends where that begins") {
  Chart chart;
  chart.y = Spacing::logarithmic;
  chart.series = {{"a", 0, true, true, 1, {{0, 10}, {1, 20}}, {}, {15, 1}}};
  const Xml x = parse_xml(svg(chart));
  CHECK(axes_of(chart).y.spacing == Spacing::logarithmic);
  CHECK(x.of_class("line", "error")[0]->number("y1") == kChartBottom);
}

TEST_CASE("charts that share their axes have the same coordinates") {
  Chart a, b;
  a.series = {{"a", 0, true, false, 1, {{1, 1}, {2, 3}}, {}, {}}};
  b.series = {{"b", 0, true, false, 1, {{1, -5}, {9, 2}}, {}, {}}};
  a.others = b.series[0].points;
  b.others = a.series[0].points;
  for (const Chart& c : {a, b}) {
    const ChartAxes axes = axes_of(c);
    CHECK(axes.x.low == Approx(1 - 8.0 / 25));
    CHECK(axes.x.high == Approx(9 + 8.0 / 25));
    CHECK(axes.y.low == Approx(-5 - 8.0 / 25));
    CHECK(axes.y.high == Approx(3 + 8.0 / 25));
  }
}

TEST_CASE("points without a line are a group that knows their values") {
  Chart chart;
  chart.series = {{"a", 2, false, true, 1, {{1, 0.5}, {2, 1234567}}, {"one", "two"}, {}}};
  const Xml x = parse_xml(svg(chart));
  CHECK(x.all("polyline").empty());
  REQUIRE(x.all("g").size() == 1);
  CHECK(x.all("g")[0]->at("data-name") == "a");
  CHECK(x.all("g")[0]->at("data-values") == "1,0.5 2,1.23457e+06");
  CHECK(x.all("g")[0]->all("circle").size() == 2);
}

TEST_CASE("ticks say the value that lies at their place") {
  Chart chart;
  chart.x = chart.y = Spacing::logarithmic;
  chart.series = {{"a", 0, true, false, 1, {{128, 50}, {2048, 1600}}, {}}};
  chart.x_ticks = {128, 256, 512, 1024, 2048};
  chart.marks = {{256, "here"}};
  const Xml x = parse_xml(svg(chart));
  const double spare = std::pow(16, 0.04), low = 128 / spare, high = 2048 * spare;
  const auto at = [&](double v) { return 50 + std::log(v / low) / std::log(high / low) * 338; };
  const auto ticks = x.of_class("text", "x");
  REQUIRE(ticks.size() == 5);
  const char* texts[] = {"128", "256", "512", "1,024", "2,048"};
  for (size_t i = 0; i < 5; ++i) {
    CHECK(ticks[i]->text == texts[i]);
    CHECK(ticks[i]->number("x") == Approx(at(chart.x_ticks[i])).margin(0.005));
  }
  const auto y = x.of_class("text", "y");
  REQUIRE(y.size() == 5);
  const char* values[] = {"50", "100", "200", "500", "1,000"};
  for (size_t i = 0; i < 5; ++i) CHECK(y[i]->text == values[i]);
  CHECK(x.of_class("line", "mark")[0]->number("x1") == Approx(at(256)).margin(0.005));
  CHECK(x.of_class("text", "note")[0]->text == "here");
}

TEST_CASE("texts of ticks do not touch") {
  Chart chart;
  chart.series = {{"a", 0, true, true, 1, {{0, 1}, {1e6, 2}}, {}}};
  for (int i = 0; i < 12; ++i) chart.x_ticks.push_back(1e5 + 1e4 * i);
  const Xml x = parse_xml(svg(chart));
  const auto ticks = x.of_class("text", "x");
  CHECK(ticks.size() < 12);
  for (size_t i = 1; i < ticks.size(); ++i) {
    CHECK(ticks[i]->number("x") - ticks[i - 1]->number("x") > 7.0 * 7);
  }
}

TEST_CASE("the text of a tick at the right edge is whole") {
  Chart chart;
  chart.series = {{"a", 0, true, true, 1, {{0, 1}, {242000, 2}}, {}}};
  const Xml x = parse_xml(svg(chart));
  const auto ticks = x.of_class("text", "x");
  REQUIRE(ticks.size() > 2);
  CHECK(ticks.back()->text == "250,000");
  CHECK(ticks.back()->number("x") + 7.0 * 7 / 2 <= kChartWidth);
}

TEST_CASE("labels at the ends of lines keep apart and inside") {
  Chart chart;
  chart.labels = true;
  for (int n = 0; n < 9; ++n) {
    const double y = n < 8 ? 1 + 1e-3 * n : 9;
    chart.series.push_back({fmt::format("run {}", n), n, true, true, 1, {{0, 5}, {1, y}}, {}});
  }
  const Xml x = parse_xml(svg(chart));
  const auto labels = x.of_class("text", "label");
  REQUIRE(labels.size() == 9);
  CHECK(labels[0]->text == "run 8");  // from the top: the largest value
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i > 0) CHECK(labels[i]->number("y") - labels[i - 1]->number("y") >= 13 - 1e-9);
    CHECK(labels[i]->number("y") <= kChartBottom + 4);
    CHECK(labels[i]->number("y") >= kChartTop);
    CHECK(labels[i]->number("x") + 7.7 * 5 <= kChartWidth);
  }
  CHECK(x.of_class("text", "c1").size() == 2);  // the 8th run has the colour of the 2nd, dashed
  CHECK(x.of_class("text", "d1").size() == 2);
}

TEST_CASE("names are text, whatever they hold") {
  Chart chart;
  const std::string name = "</svg><script>\"&'";
  chart.title = chart.x_title = name;
  chart.labels = true;
  chart.marks = {{1, name}};
  chart.series = {{name, 0, true, true, 1, {{1, 1}, {2, 2}}, {name, name}}};
  const Xml x = parse_xml(svg(chart));
  CHECK(x.at("aria-label") == name);
  CHECK(x.all("polyline")[0]->at("data-name") == name);
  CHECK(x.all("title")[0]->text == name);
  CHECK(x.of_class("text", "label")[0]->text == name);
  CHECK(x.all("script").empty());
}

TEST_CASE("what lies below the floor is cut off and does not stretch the axis") {
  Chart chart;
  chart.y_floor = -20;
  chart.series = {{"a", 0, true, false, 1, {{1, 0}, {2, -1e4}}, {}}};
  const Xml x = parse_xml(svg(chart));
  const auto inner = x.all("svg");
  REQUIRE(inner.size() == 1);
  CHECK(inner[0]->all("polyline").size() == 1);
  CHECK(inner[0]->number("height") == kChartBottom - kChartTop);
  CHECK(axes_of(chart).y.low == Approx(-20.8));
}

TEST_CASE("a chart of one point, or of none, is a chart") {
  Chart chart;
  CHECK(parse_xml(svg(chart)).all("polyline").empty());
  chart.from_zero = true;
  chart.series = {{"a", 0, true, false, 1, {{5, 0}}, {}}};
  const Xml x = parse_xml(svg(chart));
  CHECK(x.all("circle").size() == 1);
  CHECK(x.all("circle")[0]->number("cy") == kChartBottom);
}
