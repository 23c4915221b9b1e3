#include "report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "catch.h"
#include "report/palette.h"
#include "report/xml.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Perplexities 16, 32, 64 and 20, 20, 80 at the lengths 64, 256, 1,024; trained at 64.
Chart two_perplexities() {
  Chart chart;
  chart.title = "perplexity of windows of each length";
  chart.x_title = "length";
  chart.y_title = "perplexity";
  chart.x = chart.y = Spacing::logarithmic;
  chart.x_ticks = {64, 256, 1024};
  chart.marks = {{64, "trained at 64"}};
  chart.series = {{"bam", 0, true, true, 1, {{64, 16}, {256, 32}, {1024, 64}}, {}},
                  {"rope", 1, true, true, 1, {{64, 20}, {256, 20}, {1024, 80}}, {}}};
  return chart;
}

const Xml* text_of(const Xml& svg, const std::string& text) {
  for (const Xml* t : svg.all("text")) {
    if (t->text == text) return t;
  }
  FAIL("no text " << text);
  return nullptr;
}

/// Parses the points "x,y x,y".
std::vector<Point> points_of(const Xml& element) {
  std::vector<Point> out;
  std::string text = element.at("points");
  for (char& c : text) c = c == ',' ? ' ' : c;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double x = std::strtod(at, &end);
    if (end == at) return out;
    at = end;
    out.push_back({x, std::strtod(at, &end)});
  }
}

std::vector<const Xml*> lines_with_values(const Xml& svg) {
  std::vector<const Xml*> out;
  for (const Xml* line : svg.all("polyline")) {
    if (line->attributes.count("data-values") != 0) out.push_back(line);
  }
  return out;
}

}  // namespace

TEST_CASE("points of a figure lie where its grid and its ticks say") {
  const Xml x = parse_xml(figure_svg(two_perplexities()));
  // Two labels determine an axis: 64 and 1,024, 20 and 40.
  const auto tick = [&](const char* text) { return text_of(x, text)->number("x"); };
  const auto grid = [&](const char* text) { return text_of(x, text)->number("y") - 2.5; };
  const double x64 = tick("64"), x1024 = tick("1,024");
  const auto at_x = [&](double v) {
    return x64 + std::log(v / 64) / std::log(16.0) * (x1024 - x64);
  };
  const auto at_y = [&](double v) {
    return grid("20") + std::log(v / 20) / std::log(2.0) * (grid("40") - grid("20"));
  };
  const auto lines = lines_with_values(x);
  REQUIRE(lines.size() == 2);
  const double ys[2][3] = {{16, 32, 64}, {20, 20, 80}};
  for (size_t n = 0; n < 2; ++n) {
    const std::vector<Point> points = points_of(*lines[n]);
    REQUIRE(points.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(points[i].x == Approx(at_x(64 * std::pow(4.0, i))).margin(0.03));
      CHECK(points[i].y == Approx(at_y(ys[n][i])).margin(0.03));
    }
  }
  CHECK(lines[0]->at("data-values") == "64,16 256,32 1024,64");
  // The training length: a vertical line under its name.
  const Xml* name = text_of(x, "trained at 64");
  for (const Xml* line : x.all("line")) {
    if (line->attributes.count("stroke-dasharray") == 0) continue;
    CHECK(line->number("x1") == Approx(x64).margin(0.01));
    CHECK(line->at("x1") == line->at("x2"));
    CHECK(name->number("y") < line->number("y1"));
    // Centred on the line as far as the plot's edge allows: half of 13 characters on either side.
    CHECK(name->number("x") == Approx(x64).margin(0.61 * 7 * 13 / 2));
  }
}

TEST_CASE("a figure has print's size: millimetres, and points within") {
  for (const double width : {84.0, 40.0, 174.5}) {
    const Xml x = parse_xml(figure_svg(two_perplexities(), width));
    CHECK(x.at("width") == fmt::format("{}mm", width));
    double box[4] = {};
    REQUIRE(std::sscanf(x.at("viewBox").c_str(), "%lf %lf %lf %lf", &box[0], &box[1], &box[2],
                        &box[3]) == 4);
    CHECK(box[2] == Approx(width * 72 / 25.4).margin(0.005));
    CHECK(x.number("height") == Approx(box[3] * 25.4 / 72).margin(0.005));
    for (const Xml* t : x.all("text")) {
      const double size = t->number("font-size");
      CHECK((size == 7 || size == 8));
      if (t->attributes.count("x") == 0) continue;
      CHECK(t->number("x") >= 0);
      CHECK(t->number("x") <= box[2]);
      CHECK(t->number("y") <= box[3]);
    }
    CHECK(text_of(x, "length"));
    CHECK(text_of(x, "perplexity")->at("transform").find("rotate(-90)") != std::string::npos);
  }
}

TEST_CASE("a figure needs nothing from outside, and the same chart gives the same bytes") {
  const std::string svg = figure_svg(two_perplexities());
  CHECK(references_in(svg).empty());
  CHECK(svg.find("var(") == std::string::npos);
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg == figure_svg(two_perplexities()));
  CHECK(is_figure_svg(svg));
  CHECK_FALSE(is_figure_svg("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\">"));
}

TEST_CASE("a figure is light, and every colour of it has another one for the dark") {
  const Xml x = parse_xml(figure_svg(two_perplexities()));
  REQUIRE(x.all("style").size() == 1);
  const std::string& rules = x.all("style")[0]->text;
  CHECK(rules.find("@media (prefers-color-scheme: dark) {") == 0);
  CHECK(x.all("rect")[0]->at("fill") == kLight.paper);
  CHECK(rules.find(fmt::format(".paper {{ fill: {} }}", kDark.paper)) != std::string::npos);
  int coloured = 0;
  for (const char* kind : {"rect", "text", "line", "polyline", "path"}) {
    for (const Xml* e : x.all(kind)) {
      for (const char* of : {"fill", "stroke"}) {
        const auto at = e->attributes.find(of);
        if (at == e->attributes.end() || at->second == "none") continue;
        INFO(kind << " " << at->second);
        CHECK(rules.find("." + e->at("class") + " { " + of + ": #") != std::string::npos);
        ++coloured;
      }
    }
  }
  CHECK(coloured > 20);
  CHECK(lines_with_values(x)[1]->at("stroke") == kLight.series[1]);
  CHECK(rules.find(fmt::format(".s1 {{ stroke: {} }}", kDark.series[1])) != std::string::npos);
}

TEST_CASE("series are told apart without colours: by shapes, and without these by dashes") {
  Chart chart;
  for (int n = 0; n < 28; ++n) {
    chart.series.push_back(
        {fmt::format("run {}", n), n, true, false, 1, {{0, 1}, {1, 2.0 + n}}, {}});
  }
  std::set<std::string> dashes, looks;
  const Xml plain = parse_xml(figure_svg(chart));
  for (const Xml* line : lines_with_values(plain)) {
    const auto at = line->attributes.find("stroke-dasharray");
    const std::string dash = at == line->attributes.end() ? "" : at->second;
    dashes.insert(dash);
    looks.insert(dash + " " + line->at("stroke"));
  }
  CHECK(dashes.size() == 4);
  CHECK(looks.size() == 28);

  for (Series& s : chart.series) s.markers = true;
  const Xml marked = parse_xml(figure_svg(chart));
  for (const Xml* line : lines_with_values(marked)) {
    CHECK(line->attributes.count("stroke-dasharray") == 0);
  }
  std::set<std::string> shapes;  // without their position
  for (const Xml* path : marked.all("path")) {
    std::string shape;
    double x0 = 0, y0 = 0, px = 0, py = 0;
    const std::string& d = path->at("d");
    const char* at = d.c_str() + 1;
    REQUIRE(std::sscanf(at, "%lf %lf", &x0, &y0) == 2);
    shape = d[d.find_first_of("aL")];
    for (size_t i = d.find('L'); i != std::string::npos; i = d.find('L', i + 1)) {
      REQUIRE(std::sscanf(d.c_str() + i + 1, "%lf %lf", &px, &py) == 2);
      shape += fmt::format(" {:.0f} {:.0f}", px - x0, py - y0);
    }
    shapes.insert(shape);
  }
  CHECK(shapes.size() >= 6);
}

TEST_CASE("faint lines are thin and whole, and the only run's lines are whole") {
  Chart chart;
  chart.series = {{"a, logged", 1, true, false, 0.3, {{0, 1}, {1, 2}}, {}},
                  {"a", 1, true, false, 1, {{0, 1}, {1, 2}}, {}}};
  const auto dashed = [&](size_t n) {
    const Xml x = parse_xml(figure_svg(chart));
    return lines_with_values(x).at(n)->attributes.count("stroke-dasharray") != 0;
  };
  CHECK_FALSE(dashed(1));
  chart.series.push_back({"b", 2, true, false, 1, {{0, 1}, {1, 3}}, {}});
  CHECK_FALSE(dashed(0));
  CHECK(dashed(1));
  const Xml x = parse_xml(figure_svg(chart));
  CHECK(lines_with_values(x)[0]->number("stroke-width") <
        lines_with_values(x)[1]->number("stroke-width"));
  std::vector<std::string> names;  // in the legend, where text is strong
  for (const Xml* t : x.of_class("text", "ink")) {
    if (t->at("text-anchor") == "start") names.push_back(t->text);
  }
  CHECK(names == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a spread is an area around its line, inside of the plot") {
  Chart chart;
  chart.series = {{"a (2 seeds)", 0, true, true, 1, {{0, 10}, {1, 20}}, {}}};
  chart.series[0].spread = {{6, 14}, {19, 21}};
  const Xml x = parse_xml(figure_svg(chart));
  REQUIRE(x.all("polygon").size() == 1);
  const Xml* band = x.all("polygon")[0];
  CHECK(band->at("data-spread") == "6,14 19,21");
  const std::vector<Point> area = points_of(*band), line = points_of(*lines_with_values(x)[0]);
  REQUIRE(area.size() == 4);  // the top from left to right, then the bottom back
  const double unit = (line[0].y - line[1].y) / 10;
  CHECK(area[0].x == line[0].x);
  CHECK(area[0].y == Approx(line[0].y - 4 * unit).margin(0.02));
  CHECK(area[1].y == Approx(line[1].y - unit).margin(0.02));
  CHECK(area[2].x == line[1].x);
  CHECK(area[2].y == Approx(line[1].y + unit).margin(0.02));
  CHECK(area[3].y == Approx(line[0].y + 4 * unit).margin(0.02));
  CHECK(x.of_class("text", "ink").size() == 3);  // the band is explained for a single series too
  chart.y = Spacing::logarithmic;                // clipped at the end of the axis
  chart.series[0].spread[0].low = -1;
  const Xml cut = parse_xml(figure_svg(chart));
  const Xml* axis = cut.of_class("line", "axis").back();
  CHECK(points_of(*cut.all("polygon")[0])[3].y == Approx(axis->number("y1")).margin(0.01));
}

TEST_CASE("a legend stands above the plot, in rows that end with the picture") {
  Chart chart;
  for (int n = 0; n < 9; ++n) {
    chart.series.push_back(
        {fmt::format("a run called {}", n), n, true, true, 1, {{0, 1}, {1, 2}}, {}});
  }
  chart.series[4].name = std::string(300, 'w') + "\u00e4";
  const Xml x = parse_xml(figure_svg(chart));
  double plot = 1e9, end = 0;  // its highest grid line
  for (const Xml* line : x.of_class("line", "rule")) plot = std::min(plot, line->number("y1"));
  std::vector<const Xml*> names;
  for (const Xml* t : x.of_class("text", "ink")) {
    if (t->at("text-anchor") == "start") names.push_back(t);
  }
  REQUIRE(names.size() == 9);
  REQUIRE(std::sscanf(x.at("viewBox").c_str(), "0 0 %lf", &end) == 1);
  for (size_t i = 0; i < 9; ++i) {
    CHECK(names[i]->number("y") < plot);
    if (i != 4) CHECK(names[i]->text == fmt::format("a run called {}", i));
    // A character is at least half as wide as it is high.
    CHECK(names[i]->number("x") + 4 * static_cast<double>(names[i]->text.size() - 2) <= end);
    for (size_t k = 0; k < i; ++k) {
      if (names[k]->at("y") != names[i]->at("y")) continue;
      CHECK(std::abs(names[k]->number("x") - names[i]->number("x")) > 4 * 14 + 18);
    }
  }
  CHECK(names[4]->text.ends_with("w\u2026"));
  chart.series.resize(1);
  CHECK(parse_xml(figure_svg(chart)).of_class("text", "ink").size() == 2);  // titles of axes
}

TEST_CASE("names in a figure are text, whatever they hold") {
  const std::string wild = "</svg><script>\"&'\x1b[31m\xff";
  const std::string shown = "</svg><script>\"&'\uFFFD[31m\uFFFD";
  Chart chart = two_perplexities();
  chart.title = chart.x_title = chart.y_title = wild;
  chart.marks[0].text = wild;
  chart.series[0].name = wild;
  const Xml x = parse_xml(figure_svg(chart));
  CHECK(x.at("aria-label") == shown);
  CHECK(lines_with_values(x)[0]->at("data-name") == shown);
  int texts = 0;
  for (const Xml* t : x.all("text")) texts += t->text == shown;
  CHECK(texts == 4);  // both axes, the mark and the legend
  CHECK(x.all("script").empty());
}

TEST_CASE("a figure becomes PDF and a picture of its size by rsvg-convert") {
  if (std::system("command -v rsvg-convert >/dev/null") != 0) {
    WARN("no rsvg-convert (librsvg2-bin): skipped");
    return;
  }
  const Workplace w;
  std::ofstream(w.path("f.svg")) << figure_svg(two_perplexities());
  for (const std::string format : {"pdf", "png"}) {
    const Outcome o = run({"rsvg-convert", "-f", format, "-o", w.path("f"), w.path("f.svg")});
    INFO(o.output);
    REQUIRE(o.code == 0);
    CHECK(o.output.empty());
    const std::string file = read_text(w.path("f"));
    REQUIRE(file.size() > 1000);
    if (format == "pdf") {
      CHECK(file.starts_with("%PDF-"));
      continue;
    }
    const auto byte = [&](size_t i) {
      return static_cast<double>(static_cast<unsigned char>(file[i]));
    };
    CHECK(byte(18) * 256 + byte(19) == Approx(84 / 25.4 * 96).margin(1));  // 96 per inch
  }
}
