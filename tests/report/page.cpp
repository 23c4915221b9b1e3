#include "report/page.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "report/chart.h"
#include "report/xml.h"
#include "train/support.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// As much of a browser as a page's script needs. Arguments: a page with one chart, then actions: a
/// pointer position ("150"), a finger ("touch 150"), a key ("key End") or a button ("press CSV").
/// Prints what the page then shows or saves.
constexpr const char* kBrowser = R"js(
const [file, ...actions] = process.argv.slice(2);
const html = require('fs').readFileSync(file, 'utf8');
const plain = text => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
class Element {
  constructor(tagName, attributes = {}) {
    Object.assign(this, {tagName, attributes, dataset: {}, style: {setProperty() {}}, children: [],
                         handlers: {}, textContent: ''});
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith('data-')) this.dataset[name.slice(5)] = value;
    }
  }
  getAttribute(name) { return this.attributes[name]; }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(...children) { for (const c of children) { c.parentNode = this; this.children.push(c); } }
  remove() {}
  addEventListener(name, handler) { this.handlers[name] = handler; }
  getScreenCTM() { return {inverse() {}}; }
  all() { return this.children.flatMap(c => [c, ...c.all()]); }
  querySelectorAll(what) {
    return this.all().filter(e => what === e.tagName || what === '.' + e.attributes.class ||
        (what.startsWith('[') && what.slice(1, -1) in e.attributes) ||
        (what === 'svg[data-plot]' && e.tagName === 'svg'));
  }
  querySelector(what) { return this.querySelectorAll(what)[0]; }
  click() { if (this.tagName === 'a') console.log(this.download + '\n' + saved.trimEnd()); }
}
const root = new Element('body');
let at = root, saved = '';
const body = html.slice(html.indexOf('<body>') + 6, html.indexOf('<script>'));
for (const [, end, name, attributes, single, text] of
     body.matchAll(/<(\/?)(\w+)((?: [\w-]+="[^"]*")*)(\/?)>([^<]*)/g)) {
  if (end) { at = at.parentNode; continue; }
  const pairs = [...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map(m => [m[1], plain(m[2])]);
  const element = new Element(name, Object.fromEntries(pairs));
  element.textContent = single ? '' : plain(text);
  at.append(element);
  if (!single) at = element;
}
global.DOMPoint = class {
  constructor(x, y) { this.x = x; this.y = y; }
  matrixTransform() { return this; }
};
global.document = {querySelectorAll: what => root.querySelectorAll(what),
                   createElement: name => new Element(name),
                   createElementNS: (_, name) => new Element(name)};
global.Blob = class { constructor(parts) { saved = parts.join(''); } };
URL.createObjectURL = () => '';
URL.revokeObjectURL = () => {};
global.setTimeout = () => {};
eval(html.match(/<script>([^]*)<\/script>/)[1]);
const svg = root.querySelector('svg'), output = root.querySelector('output');
for (const action of actions) {
  const [verb, what] = action.split(' ');
  if (verb === 'press') {
    root.querySelectorAll('button').find(b => b.textContent === what).handlers.click();
    continue;
  }
  if (verb === 'key') {
    svg.handlers.keydown({key: what, preventDefault() {}});
  } else if (verb === 'touch') {
    svg.handlers.pointerdown({clientX: Number(what), clientY: 100, pointerType: 'touch'});
    svg.handlers.pointerleave({pointerType: 'touch'});
  } else {
    svg.handlers.pointermove({clientX: Number(verb), clientY: 100, pointerType: 'mouse'});
  }
  console.log(output.textContent.replaceAll('\n', '; '));
}
)js";

void add_classes(const Xml& x, std::set<std::string>* all) {
  const auto found = x.attributes.find("class");
  std::istringstream words(found == x.attributes.end() ? "" : found->second);
  for (std::string word; words >> word;) all->insert(word);
  for (const Xml& child : x.children) add_classes(child, all);
}

}  // namespace

TEST_CASE("each class of a chart's elements has a rule: what has none is filled with black") {
  Chart chart;
  chart.title = "t";
  chart.x_title = "x";
  chart.labels = true;
  chart.marks = {{0.5, "here"}};
  for (int style = 0; style < 21; ++style) {
    chart.series.push_back({"a", style, true, true, 1, {{0, 10}, {1, 20}}, {}, {1, 1}});
  }
  chart.series[0].spread = {{6, 14}, {19, 21}};
  Series long_line = {"long", 1, true, false, 0.3, {}, {}};
  for (int i = 0; i < 5000; ++i) long_line.points.push_back({i / 5000.0, i % 7 * 1.0});
  chart.series.push_back(long_line);
  chart.series.push_back({"loose", 2, false, true, 1, {{0, 3}}, {"note"}});
  std::set<std::string> classes;
  add_classes(parse_xml(svg(chart)), &classes);
  for (const char* const c : {"band", "error", "thin", "mark", "label", "c6", "d2"}) {
    CHECK(classes.count(c) == 1);
  }
  const std::string page = html_page("report", "t", "");
  const std::string style = page.substr(0, page.find("</style>"));
  for (const std::string& c : classes) {
    INFO(c);
    CHECK(std::regex_search(style, std::regex("\\." + c + "(?![-\\w])[^{}]*\\{")));
  }
}

TEST_CASE("a page knows its kind") {
  CHECK(is_html_page(html_page("report", "a", "<p>b</p>\n"), "report"));
  CHECK_FALSE(is_html_page(html_page("inspect", "a", ""), "report"));
  CHECK_FALSE(is_html_page("{\"step\": 1}\n", "report"));
  CHECK_FALSE(is_html_page("<!DOCTYPE html>\n<p>of another program", "report"));
  CHECK_FALSE(is_html_page("", "report"));
}

namespace {

bool have_node() {
  if (std::system("node --version > /dev/null 2>&1") == 0) return true;
  WARN("skipped: there is no node");
  return false;
}

/// The output for a page with this chart.
std::string browse(const Chart& chart, std::vector<std::string> actions) {
  const Workplace w;
  std::ofstream(w.path("page.html")) << html_page("report", "a", figure(chart.title, svg(chart)));
  std::ofstream(w.path("browser.js")) << kBrowser;
  actions.insert(actions.begin(), {"node", w.path("browser.js"), w.path("page.html")});
  return run(actions).output;
}

Chart two_losses() {
  Chart chart;
  chart.title = "loss & more";
  chart.x_title = "tokens";
  chart.series = {{"long", 0, true, true, 1, {{100, 10}, {150, 20}, {200, 35}}, {}, {1, NAN, 2}},
                  {"a \"short\", one", 1, true, false, 1, {{100, 12}, {150, 30}}, {}, {}}};
  return chart;
}

/// x from 96 to 204 over 50..388.
std::string place(double x) { return std::to_string(50 + (x - 96) / 108 * 338); }

}  // namespace

TEST_CASE("the pointer shows the values of the lines that have any there") {
  if (!have_node()) return;
  CHECK(browse(two_losses(), {place(100), place(148), place(199), "10"}) ==
        "at 100; long 10 \u00b1 1; a \"short\", one 12\n"
        "at 150; long 20; a \"short\", one 30\n"
        "at 200; long 35 \u00b1 2\n"
        "\n");
}

TEST_CASE("a finger leaves the values standing, and arrow keys step through them") {
  if (!have_node()) return;
  const std::string first = "at 100; long 10 \u00b1 1; a \"short\", one 12\n",
                    second = "at 150; long 20; a \"short\", one 30\n",
                    third = "at 200; long 35 \u00b1 2\n";
  CHECK(browse(two_losses(), {"touch " + place(148), "key ArrowRight", "key ArrowRight", "key Home",
                              "key ArrowRight", "key ArrowLeft", "key End", "key Escape",
                              "key ArrowLeft", "key PageUp", "key x"}) ==
        second + third + third + first + second + first + third + "\n" + third + second + second);
}

TEST_CASE("points without a line are shown one by one") {
  if (!have_node()) return;
  Chart chart;
  chart.series = {{"a", 0, false, true, 1, {{1, 5}, {1, 1}, {2, 3}}, {"one", "two", "three"}, {}}};
  CHECK(browse(chart, {"key ArrowRight", "key ArrowRight", "key End", "370"}) ==
        "one\ntwo\nthree\nthree\n");
}

TEST_CASE("a chart is saved as a table of what it shows") {
  if (!have_node()) return;
  CHECK(browse(two_losses(), {"press CSV"}) ==
        "loss-more.csv\n"
        "series,tokens,loss & more,standard error\n"
        "long,100,10,1\n"
        "long,150,20,\n"
        "long,200,35,2\n"
        "\"a \"\"short\"\", one\",100,12,\n"
        "\"a \"\"short\"\", one\",150,30,\n");
  Chart chart;
  chart.title = "s";
  chart.x_title = "layer";
  chart.series = {{"a", 0, false, true, 1, {{1, 5}}, {"head 0"}, {}}};
  CHECK(browse(chart, {"press CSV"}) == "s.csv\nseries,layer,s,point\na,1,5,head 0\n");
}

TEST_CASE("names stay text in a saved table, and numbers numbers") {
  if (!have_node()) return;
  const std::vector<std::string> names = {"=HYPERLINK(\"http://x\")",
                                          "+1+1",
                                          "-b",
                                          "@a",
                                          " =9",
                                          "\u3000@c",
                                          "\uFF1D1",
                                          "\uFF0B2",
                                          "\uFF0D3",
                                          "\uFF204"};
  Chart chart;
  chart.title = "t";
  chart.x_title = "=x";
  std::string rows = "t.csv\nseries,\"'=x\",t\n";
  for (const std::string& name : names) {
    chart.series.push_back({name, 0, true, false, 1, {{-1, -2.5}}, {}, {}});
    rows += "\"'" + (name == names[0] ? "=HYPERLINK(\"\"http://x\"\")" : name) + "\",-1,-2.5\n";
  }
  chart.series.push_back({"-0.5", 0, true, false, 1, {{-1, -2.5}}, {}, {}});
  CHECK(browse(chart, {"press CSV"}) == rows + "-0.5,-1,-2.5\n");
}
