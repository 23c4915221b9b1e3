#include "report/page.h"

#include "report/markup.h"

namespace bamtrain {

namespace {

constexpr const char* kBeginning =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

// Okabe and Ito's colours (2008), without black and yellow, which one of the backgrounds hides.
constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #5b636d; --rule: #dfe3e8;
  --k0: #0072b2; --k1: #d55e00; --k2: #009e73; --k3: #cc79a7; --k4: #e69f00; --k5: #56b4e9;
  --k6: #7a7f87; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --ink: #e3e6ea; --soft: #9aa3ad; --rule: #30363d;
    --k0: #4ba3dd; --k1: #f07f2f; --k2: #2fc297; --k3: #dd93bc; --k4: #f0b429; --k5: #8fd0f5;
    --k6: #a3a9b2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 100rem; background: var(--paper);
  color: var(--ink); font: 0.95rem/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 0.6rem; overflow-wrap: anywhere; }
h3 { font-size: 0.95rem; margin: 1.2rem 0 0.2rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; border-top: 1px solid var(--rule);
  padding-top: 1rem; }
p { margin: 0.4rem 0; max-width: 60rem; color: var(--soft); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr));
  gap: 1rem 1.5rem; }
figure { margin: 0; min-width: 0; position: relative; break-inside: avoid; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; overflow: hidden; }
svg text { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.tick.x, .title { text-anchor: middle; }
.tick.y, .note.end { text-anchor: end; }
line.grid { stroke: var(--rule); }
line.axis { stroke: var(--soft); }
line.mark { stroke: var(--soft); stroke-dasharray: 3 3; }
line.cursor { stroke: var(--soft); stroke-width: 0.7; }
polyline { fill: none; stroke-width: 1.7; stroke-linejoin: round; stroke-linecap: round; }
.c0 { --k: var(--k0); } .c1 { --k: var(--k1); } .c2 { --k: var(--k2); } .c3 { --k: var(--k3); }
.c4 { --k: var(--k4); } .c5 { --k: var(--k5); } .c6 { --k: var(--k6); }
polyline.thin { stroke-width: 1; }
polyline { stroke: var(--k); } circle { fill: var(--k); }
svg text.label { fill: var(--k); font-weight: 600; }
polyline.d1 { stroke-dasharray: 6 4; } polyline.d2 { stroke-dasharray: 1.5 4; }
output { position: absolute; right: 0; top: 1.6rem; padding: 0.15rem 0.4rem; font-size: 0.78rem;
  background: var(--paper); border: 1px solid var(--rule); pointer-events: none;
  white-space: pre-line; font-variant-numeric: tabular-nums; max-width: 80%; }
output:empty { display: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.8rem 0.2rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); vertical-align: top; }
th { font-weight: 600; } thead th { color: var(--soft); }
th:first-child { text-align: left; }
td { white-space: normal; overflow-wrap: break-word; max-width: 16rem; }
.path { white-space: normal; }
.key { display: inline-block; width: 1.4em; height: 0.75em; margin-right: 0.4em;
  background: var(--k); }
.key.d1 { background: repeating-linear-gradient(90deg, var(--k) 0 5px, transparent 5px 8px); }
.key.d2 { background: repeating-linear-gradient(90deg, var(--k) 0 2px, transparent 2px 5px); }
.legend > span { display: inline-block; margin-right: 1.2em; color: var(--ink); }
blockquote { margin: 0.5rem 0 1rem; padding-left: 0.8rem; border-left: 3px solid var(--rule);
  max-width: 60rem; white-space: pre-wrap; overflow-wrap: anywhere; }
blockquote b { color: var(--soft); font-weight: 400; }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --rule: #ccc;
    --k0: #0072b2; --k1: #d55e00; --k2: #009e73; --k3: #cc79a7; --k4: #e69f00; --k5: #56b4e9;
    --k6: #7a7f87; }
  body { padding: 0; font-size: 9pt; max-width: none; -webkit-print-color-adjust: exact;
    print-color-adjust: exact; }
  .grid { grid-template-columns: repeat(2, 1fr); }
  h2, h3, p, figcaption { break-after: avoid; }
  .scroll { overflow: visible; }
  th, td { white-space: normal; padding-right: 0.4rem; }
  output { display: none; }
}
)css";

// Values under the pointer are read back from the coordinates: to some hundredths of a percent of
// an axis.
constexpr const char* kScript = R"js(
const near = 6;  // so far beside the ends of a line it still has a value
for (const svg of document.querySelectorAll('svg[data-plot]')) {
  const [left, right, top, bottom, x0, x1, xlog, y0, y1, ylog] =
      svg.dataset.plot.split(',').map(Number);
  const output = svg.parentNode.querySelector('output');
  const at = (share, low, high, log) =>
      log ? low * Math.pow(high / low, share) : low + share * (high - low);
  const text = v => Number(v.toPrecision(4)).toLocaleString('en-US', {maximumSignificantDigits: 4});
  const lines = [...svg.querySelectorAll('polyline')].map(line => ({
    name: line.dataset.name,
    points: line.getAttribute('points').split(' ').map(p => p.split(',').map(Number))}));
  const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  cursor.setAttribute('class', 'cursor');
  cursor.setAttribute('y1', top);
  cursor.setAttribute('y2', bottom);
  const leave = () => { output.textContent = ''; cursor.remove(); };
  svg.addEventListener('pointerleave', leave);
  svg.addEventListener('pointermove', event => {
    const p = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(svg.getScreenCTM().inverse());
    if (!lines.length || p.x < left || p.x > right) return leave();
    const nearer = (a, b) => Math.abs(b[0] - p.x) < Math.abs(a[0] - p.x) ? b : a;
    const x = lines.map(line => line.points.reduce(nearer)).reduce(nearer)[0];
    cursor.setAttribute('x1', x);
    cursor.setAttribute('x2', x);
    svg.append(cursor);
    const rows = lines
        .filter(line => line.points[0][0] - near <= x && x <= line.points.at(-1)[0] + near)
        .map(line => line.name + ' ' + text(at(
            (bottom - line.points.reduce(nearer)[1]) / (bottom - top), y0, y1, ylog)));
    output.textContent =
        'at ' + text(at((x - left) / (right - left), x0, x1, xlog)) + '\n' + rows.join('\n');
  });
}
)js";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return kBeginning + ("<title>" + escaped(title)) + "</title>\n<style>" + kStyle +
         "</style>\n</head>\n<body>\n" + body + "<script>" + kScript +
         "</script>\n</body>\n</html>\n";
}

bool is_html_page(std::string_view text) { return text.starts_with(kBeginning); }

std::string figure(const std::string& title, const std::string& svg) {
  return "<figure>\n<figcaption>" + escaped(title) + "</figcaption>\n" + svg +
         "<output></output>\n</figure>\n";
}

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& cell : head) out += "<th>" + cell + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      out += i == 0 ? "<th>" + row[i] + "</th>" : "<td>" + row[i] + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace bamtrain
