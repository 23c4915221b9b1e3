#include "report/constants.h"

#include "catch.h"
#include "report/xml.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

Chart chart_of_lines(const std::string& title, const std::vector<std::vector<double>>& runs) {
  Chart chart;
  chart.title = title;
  chart.x_title = "x";
  for (size_t n = 0; n < runs.size(); ++n) {
    Series s = {
        std::string(1, static_cast<char>('a' + n)), static_cast<int>(n), true, false, 1, {}, {}};
    for (size_t i = 0; i < runs[n].size(); ++i) {
      s.points.push_back({static_cast<double>(i), runs[n][i]});
    }
    chart.series.push_back(std::move(s));
  }
  return chart;
}

std::vector<std::string> captions(const std::string& figures) {
  std::vector<std::string> out;
  const Xml body = parse_xml("<div>" + figures + "</div>");
  for (const Xml* c : body.all("figcaption")) out.push_back(c->text);
  return out;
}

}  // namespace

TEST_CASE("a chart is constant if no run in it varies, and one has several points") {
  CHECK(is_constant(chart_of_lines("t", {{3, 3, 3}})));
  CHECK(is_constant(chart_of_lines("t", {{3, 3 + 1e-12}, {4, 4}})));
  CHECK(is_constant(chart_of_lines("t", {{0, 0}, {1}})));
  CHECK_FALSE(is_constant(chart_of_lines("t", {{3, 3}, {4, 5}})));
  CHECK_FALSE(is_constant(chart_of_lines("t", {{3}, {3}})));
  CHECK_FALSE(is_constant(chart_of_lines("t", {})));
  Chart both = chart_of_lines("t", {{3, 3}});
  both.x_measured = true;
  CHECK_FALSE(is_constant(both));
  both.series[0].points[1].x = both.series[0].points[0].x;
  CHECK(is_constant(both));
}

TEST_CASE("the lines of one run count together") {
  Chart chart = chart_of_lines("t", {{3, 3}, {5, 5}});
  chart.series[1].style = 0;
  CHECK_FALSE(is_constant(chart));
}

TEST_CASE("a constant's text names the runs where they differ") {
  CHECK(constant_text(chart_of_lines("rate", {{0.001, 0.001}, {0.001, 0.001}})) == "rate: 0.001");
  CHECK(constant_text(chart_of_lines("rate", {{0.001, 0.001}, {0.002, 0.002}})) ==
        "rate: 0.001 (a), 0.002 (b)");
  CHECK(constant_text(chart_of_lines("rate", {{1, 1}, {2, 2}, {1, 1}})) == "rate: 1 (a, c), 2 (b)");
}

TEST_CASE("a chart of single points is drawn") {
  Chart chart = chart_of_lines("loss", {{3}, {3}});
  chart.series[1].style = 0;  // logged and smoothed, of one run
  CHECK_FALSE(is_constant(chart));
}

TEST_CASE("constants are listed below the charts that vary") {
  const std::vector<NamedChart> charts = {{"", chart_of_lines("loss", {{3, 2}, {4, 3}})},
                                          {"", chart_of_lines("keys <", {{32.5, 32.5}, {5, 7}})},
                                          {"", chart_of_lines("rate", {{1, 1}, {1, 1}})}};
  const DrawnCharts whole = drawn_charts(charts);
  CHECK(captions(whole.figures) == std::vector<std::string>{"loss", "keys <"});
  CHECK(whole.constants == "<p>Constant, so not drawn: rate: 1.</p>\n");
  const DrawnCharts by_run = drawn_charts(charts, true);
  CHECK(captions(by_run.figures) == std::vector<std::string>{"loss", "keys <"});
  CHECK(parse_xml("<div>" + by_run.figures + "</div>").all("polyline").size() == 3);
  CHECK(by_run.constants == "<p>Constant, so not drawn: keys &lt;: 32.5 (a); rate: 1.</p>\n");
  CHECK(drawn_charts({charts[0]}).constants.empty());
}
