#include "inspect/page_section.h"

#include <fmt/format.h>

#include "report/markup.h"

namespace bamtrain {

std::string paragraph(const std::string& text) { return "<p>" + text + "</p>\n"; }

std::string folded(const LayerView& view, bool first, const std::string& note,
                   const std::string& contents) {
  return fmt::format("<details{}><summary>layer {} <span>{}</span></summary>\n{}</details>\n",
                     first ? " open" : "", view.layer, escaped(note), contents);
}

Chart head_chart(const std::string& title, const std::string& x_title) {
  Chart chart;
  chart.title = title;
  chart.x_title = x_title;
  return chart;
}

std::string layer_legend(const Inspection& found) {
  std::string out = "<p class=\"legend\">";
  for (const LayerView& view : found.layers) {
    out += fmt::format("<span><span class=\"key {}\"></span>layer {}</span>\n",
                       style_class(static_cast<int>(view.layer)), view.layer);
  }
  return out + "</p>\n";
}

std::string head_legend(int64_t H) {
  std::string out = "<p class=\"legend\">";
  for (int64_t h = 0; h < H; ++h) {
    out += fmt::format("<span><span class=\"key {}\"></span>head {}</span>\n",
                       style_class(static_cast<int>(h)), h);
  }
  return out + "</p>\n";
}

}  // namespace bamtrain
