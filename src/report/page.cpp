#include "report/page.h"

#include <fmt/format.h>

#include "report/markup.h"
#include "report/palette.h"

namespace bamtrain {

namespace {

constexpr const char* kPageBeginning =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

std::string beginning_of_page(const std::string& of) {
  return kPageBeginning + ("<meta name=\"generator\" content=\"bamtrain " + of) + "\">\n";
}

/// The style sheet's variables.
std::string variables(const Palette& p) {
  std::string out = fmt::format("--paper: {}; --ink: {}; --soft: {}; --rule: {};", p.paper, p.ink,
                                p.soft, p.rule);
  for (size_t i = 0; i < p.series.size(); ++i) out += fmt::format(" --k{}: {};", i, p.series[i]);
  return out;
}

std::string themes() {
  return "\n:root { color-scheme: light dark; --shade: #0004; " + variables(kLight) +
         " }\n@media (prefers-color-scheme: dark) {\n  :root { --shade: #fff4; " +
         variables(kDark) + " } }\n@media print {\n  :root { color-scheme: light; " +
         variables(kPrint) + " } }";
}

constexpr const char* kStyle = R"css(
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
svg { display: block; width: 100%; height: auto; overflow: hidden; touch-action: pan-y; }
svg:focus-visible, .scroll:focus-visible { outline: 2px solid var(--k0); }
svg text { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.tick.x, .title { text-anchor: middle; }
.tick.y, .note.end { text-anchor: end; }
line.grid { stroke: var(--rule); }
line.axis { stroke: var(--soft); }
line.mark { stroke: var(--soft); stroke-dasharray: 3 3; }
line.cursor { stroke: var(--soft); stroke-width: 0.7; }
line.error { stroke: var(--k); }
polygon.band { fill: var(--k); fill-opacity: 0.2; }
polyline { fill: none; stroke-width: 1.7; stroke-linejoin: round; stroke-linecap: round; }
.c0 { --k: var(--k0); } .c1 { --k: var(--k1); } .c2 { --k: var(--k2); } .c3 { --k: var(--k3); }
.c4 { --k: var(--k4); } .c5 { --k: var(--k5); } .c6 { --k: var(--k6); }
polyline.thin { stroke-width: 1; }
polyline { stroke: var(--k); } circle { fill: var(--k); }
svg text.label { fill: var(--k); font-weight: 600; }
.map text { font-size: 8px; } .map .ink { fill: var(--ink); } .map .paper { fill: var(--paper); }
.map .f0 { fill: var(--k0); } .map .axis { stroke: var(--soft); }
polyline.d1 { stroke-dasharray: 6 4; } polyline.d2 { stroke-dasharray: 1.5 4; }
output { position: absolute; right: 0; top: 1.6rem; padding: 0.15rem 0.4rem; font-size: 0.78rem;
  background: var(--paper); border: 1px solid var(--rule); pointer-events: none;
  white-space: pre-line; font-variant-numeric: tabular-nums; max-width: 80%; }
output:empty { display: none; }
.save { display: flex; gap: 0.4rem; justify-content: flex-end; }
.save button { padding: 0.05rem 0.5rem; font: inherit; font-size: 0.72rem; color: var(--soft);
  background: none; border: 1px solid var(--rule); border-radius: 0.2rem; cursor: pointer; }
.save button:hover { color: var(--ink); }
/* Shadows at the ends of what goes on beyond them: gradients that scroll along cover the others. */
.scroll { overflow-x: auto; background:
  linear-gradient(90deg, var(--paper) 50%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(-90deg, var(--paper) 50%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(90deg, var(--shade), transparent) left / 1rem 100% no-repeat scroll,
  linear-gradient(-90deg, var(--shade), transparent) right / 1rem 100% no-repeat scroll; }
.scroll::-webkit-scrollbar { height: 0.5rem; }
.scroll::-webkit-scrollbar-thumb { background: var(--soft); border-radius: 0.25rem; }
.beside { margin-bottom: 1.5rem; }
.beside h3:first-child { margin-top: 0; }
@media (min-width: 64rem) {
  .beside { display: grid; grid-template-columns: minmax(0, 34rem) minmax(0, 1fr); gap: 2rem; }
}
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.8rem 0.2rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--rule); vertical-align: top; }
th { font-weight: 600; } thead th { color: var(--soft); }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
.facts { margin-bottom: 1.2rem; }
.facts td, .facts th { text-align: left; }
.facts td { min-width: 9rem; max-width: 24rem; }
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
  body { padding: 0; font-size: 9pt; max-width: none; -webkit-print-color-adjust: exact;
    print-color-adjust: exact; }
  .grid { grid-template-columns: repeat(2, 1fr); }
  h2, h3, p, figcaption { break-after: avoid; }
  .scroll { overflow: visible; background: none; }
  th, td { white-space: normal; padding-right: 0.4rem; }
  output, .save { display: none; }
}
)css";

// The script shows the series' data attributes under the pointer and the finger, steps through them
// with the arrow keys, and saves them.
constexpr const char* kScript = R"js(
const near = 6;  // so far beside the ends of a line it still has a value
const space = 'http://www.w3.org/2000/svg';
const text = v => Number(v).toLocaleString('en-US', {maximumSignificantDigits: 6});
const numbers = (list, by) => list.split(by).map(Number);
for (const svg of document.querySelectorAll('svg[data-plot]')) {
  const [left, right, top, bottom] = numbers(svg.dataset.plot, ',');
  const output = svg.parentNode.querySelector('output');
  const series = [...svg.querySelectorAll('[data-values]')].map(element => {
    const line = element.tagName === 'polyline', circles = [...element.querySelectorAll('circle')];
    return {
      line, element, name: element.dataset.name,
      values: element.dataset.values.split(' ').map(v => v.split(',')),
      notes: circles.map(c => c.querySelector('title').textContent),
      places: line ? element.getAttribute('points').split(' ').map(p => numbers(p, ','))
                   : circles.map(c => [Number(c.getAttribute('cx')), Number(c.getAttribute('cy'))])};
  });
  const lines = series.filter(s => s.line), loose = series.filter(s => !s.line);
  const value = (line, x) => {
    let best = 0;
    line.places.forEach((p, i) => {
      if (Math.abs(p[0] - x) < Math.abs(line.places[best][0] - x)) best = i;
    });
    return line.values[best];
  };
  const row = (line, x) => {
    const [, y, error] = value(line, x);
    return line.name + ' ' + text(y) + (error ? ' \u00b1 ' + text(error) : '');
  };
  // Where the cursor can be: at each loose point, or at each x of a line.
  const stops = loose.flatMap(s => s.places.map((p, i) => ({place: p, say: () => s.notes[i]})));
  if (!stops.length) {
    const xs = new Set(lines.flatMap(line => line.places.map(p => p[0])));
    for (const x of [...xs].sort((a, b) => a - b)) {
      const here = lines.filter(
          line => line.places[0][0] - near <= x && x <= line.places.at(-1)[0] + near);
      const at = lines.find(line => line.places.some(p => p[0] === x));
      stops.push({place: [x], say: () =>
          ['at ' + text(value(at, x)[0]), ...here.map(line => row(line, x))].join('\n')});
    }
  }
  const cursor = document.createElementNS(space, 'line');
  cursor.setAttribute('class', 'cursor');
  cursor.setAttribute('y1', top);
  cursor.setAttribute('y2', bottom);
  let stop = -1;
  const leave = () => { stop = -1; output.textContent = ''; cursor.remove(); };
  const show = n => {
    stop = Math.max(0, Math.min(n, stops.length - 1));
    cursor.setAttribute('x1', stops[stop].place[0]);
    cursor.setAttribute('x2', stops[stop].place[0]);
    svg.append(cursor);
    output.textContent = stops[stop].say();
  };
  const point = event => {
    const p = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(svg.getScreenCTM().inverse());
    if (!stops.length || p.x < left || p.x > right) return leave();
    const away = s => Math.hypot(s.place[0] - p.x, (s.place[1] ?? p.y) - p.y);
    let best = 0;
    stops.forEach((s, i) => { if (away(s) < away(stops[best])) best = i; });
    show(best);
  };
  svg.addEventListener('pointermove', point);
  svg.addEventListener('pointerdown', point);
  svg.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') leave(); });
  svg.addEventListener('blur', leave);
  svg.addEventListener('keydown', event => {
    const far = Math.ceil(stops.length / 10), last = stops.length - 1;
    const to = {ArrowRight: stop + 1, ArrowLeft: stop < 0 ? last : stop - 1, Home: 0, End: last,
                PageDown: stop + far, PageUp: stop - far}[event.key];
    if (event.key === 'Escape') leave();
    if (to === undefined || !stops.length) return;
    event.preventDefault();
    show(to);
  });
  const title = svg.getAttribute('aria-label');
  const table = () => {
    const rows = [['series', svg.querySelector('.title').textContent, title, 'standard error',
                   'point']];
    for (const s of series) {
      s.values.forEach(([x, y, error], i) =>
          rows.push([s.name, x, y, error ?? '', s.line ? '' : s.notes[i]]));
    }
    // What a spreadsheet would compute begins with an apostrophe, as in the files of a study.
    const formula = c => isNaN(c) && /^(\t|\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/.test(c);
    const cell = c => {
      const mark = formula(c) ? "'" : '';
      return mark || /[",\n\r]/.test(c) ? '"' + mark + c.replaceAll('"', '""') + '"' : c;
    };
    const used = rows[0].map((_, i) => rows.slice(1).some(r => r[i] !== ''));
    return rows.map(r => r.filter((_, i) => used[i]).map(cell).join(',') + '\n').join('');
  };
  // A copy that needs no style sheet, with the title above it and the names of its series below.
  const picture = () => {
    leave();
    const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll('*')];
    const kept = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray',
                  'stroke-opacity', 'stroke-linejoin', 'text-anchor', 'font-family', 'font-size',
                  'font-weight'];
    [copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
      const style = getComputedStyle(from[i]);
      for (const name of kept) element.style.setProperty(name, style.getPropertyValue(name));
      element.removeAttribute('class');
      element.removeAttribute('data-values');
    });
    const add = (name, attributes, content) => {
      const element = document.createElementNS(space, name);
      for (const [key, v] of Object.entries(attributes)) element.setAttribute(key, v);
      element.textContent = content;
      copy.append(element);
      return element;
    };
    const [, , width, height] = numbers(svg.getAttribute('viewBox'), ' ');
    const ink = getComputedStyle(document.body), font = `11px ${ink.fontFamily}`;
    const named = new Map(series.map(s => [s.name, s])), line = 15;
    const tall = height + 20 + line * named.size;
    add('text', {x: left, y: -6, style: `fill: ${ink.color}; font: bold ${font}`}, title);
    [...named.values()].forEach((s, i) => {
      const mark = getComputedStyle(s.line ? s.element : s.element.querySelector('circle'));
      add('text', {x: left, y: height + 10 + line * i,
                   style: `fill: ${s.line ? mark.stroke : mark.fill}; font: ${font}`}, s.name);
    });
    const paper = {x: 0, y: -20, width, height: tall, fill: ink.backgroundColor};
    copy.prepend(add('rect', paper, ''));
    copy.setAttribute('viewBox', `0 -20 ${width} ${tall}`);
    copy.setAttribute('width', 2 * width);
    copy.setAttribute('height', 2 * tall);
    return new XMLSerializer().serializeToString(copy);
  };
  const bar = document.createElement('div');
  bar.className = 'save';
  for (const [kind, type, make] of [['SVG', 'image/svg+xml', picture], ['CSV', 'text/csv', table]]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = kind;
    button.title = `save "${title}" as ${kind}`;
    button.addEventListener('click', () => {
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([make()], {type}));
      link.download = title.replace(/[^\p{L}\p{N}]+/gu, '-') + '.' + kind.toLowerCase();
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
    bar.append(button);
  }
  svg.parentNode.append(bar);
}
)js";

}  // namespace

std::string html_page(const std::string& of, const std::string& title, const std::string& body) {
  return beginning_of_page(of) + "<title>" + escaped(title) + "</title>\n<style>" + themes() +
         kStyle + "</style>\n</head>\n<body>\n" + body + "<script>" + kScript +
         "</script>\n</body>\n</html>\n";
}

bool is_html_page(std::string_view text, const std::string& of) {
  return text.starts_with(beginning_of_page(of));
}

std::string figure(const std::string& title, const std::string& svg) {
  return "<figure>\n<figcaption>" + escaped(title) + "</figcaption>\n" + svg +
         "<output></output>\n</figure>\n";
}

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
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
