#include "report/page.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "catch.h"
#include "report/chart.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// As much of a browser as a page's script needs: the arguments are a page with one chart and
/// places of the pointer, x; what the page then shows is printed.
constexpr const char* kBrowser = R"js(
const [file, ...places] = process.argv.slice(2);
const html = require('fs').readFileSync(file, 'utf8');
const all = pattern => [...html.matchAll(pattern)].map(m => m[1]);
const output = {textContent: ''}, handlers = {};
const lines = all(/<polyline ([^>]*)>/g).map(tag => {
  const value = name => tag.match(new RegExp(name + '="([^"]*)"'))[1];
  return {dataset: {name: value('data-name')}, getAttribute: value};
});
const svg = {
  dataset: {plot: all(/data-plot="([^"]*)"/g)[0]}, parentNode: {querySelector: () => output},
  querySelectorAll: () => lines, append() {}, getScreenCTM: () => ({inverse() {}}),
  addEventListener(name, handler) { handlers[name] = handler; }};
global.DOMPoint = class {
  constructor(x, y) { this.x = x; this.y = y; }
  matrixTransform() { return this; }
};
global.document = {
  querySelectorAll: () => [svg], createElementNS: () => ({setAttribute() {}, remove() {}})};
eval(all(/<script>([^]*)<\/script>/g)[0]);
for (const x of places) {
  handlers.pointermove({clientX: Number(x), clientY: 100});
  console.log(output.textContent.replaceAll('\n', '; '));
}
)js";

}  // namespace

TEST_CASE("a page knows its kind") {
  CHECK(is_html_page(html_page("a", "<p>b</p>\n")));
  CHECK_FALSE(is_html_page("{\"step\": 1}\n"));
  CHECK_FALSE(is_html_page("<!DOCTYPE html>\n<p>of another program"));
  CHECK_FALSE(is_html_page(""));
}

TEST_CASE("the pointer shows the values of the lines that have any there") {
  if (std::system("node --version > /dev/null 2>&1") != 0) {
    WARN("skipped: there is no node");
    return;
  }
  Chart chart;
  chart.series = {{"long", 0, true, false, 1, {{100, 10}, {150, 20}, {200, 35}}, {}},
                  {"short", 1, true, false, 1, {{100, 12}, {150, 30}}, {}}};
  const Workplace w;
  std::ofstream(w.path("page.html")) << html_page("a", figure("loss", svg(chart)));
  std::ofstream(w.path("browser.js")) << kBrowser;
  // x from 96 to 204 over 50..388.
  const auto place = [](double x) { return std::to_string(50 + (x - 96) / 108 * 338); };
  const Outcome o = run({"node", w.path("browser.js"), w.path("page.html"), place(100), place(148),
                         place(199), "10"});
  CHECK(o.output ==
        "at 100; long 10; short 12\n"
        "at 150; long 20; short 30\n"
        "at 200; long 35\n"
        "\n");
}
