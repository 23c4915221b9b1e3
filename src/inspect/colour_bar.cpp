#include "inspect/colour_bar.h"

#include <fmt/format.h>

#include <cmath>

#include "report/axis.h"

namespace bamtrain {

namespace {

/// The values at equal distances along the bar.
std::string bar_numbers(MapColours colours, double most, const char* name) {
  std::string out = fmt::format("<span class=\"numbers {}\">", name);
  for (const double at : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double share = colours == MapColours::weights ? at * at : 2 * at - 1;
    out += "<span>" + number_text(share * most, 2) + "</span>";
  }
  return out + "</span>";
}

}  // namespace

double shared_opacity(MapColours colours, double most, double shared) {
  const double share = shared > 0 ? most / shared : 1;
  return colours == MapColours::weights ? std::sqrt(share) : share;
}

std::string colour_bar(MapColours colours, double most, double shared) {
  const char* const name = colours == MapColours::weights ? "weights" : "signs";
  const bool both = most != shared;
  return fmt::format("<div class=\"bar\"><span class=\"ramp {}\"></span>{}{}</div>\n", name,
                     bar_numbers(colours, shared, both ? "shared" : ""),
                     both ? bar_numbers(colours, most, "own") : "");
}

std::string colour_switch(const std::string& name) {
  return fmt::format(
      "<input type=\"checkbox\" class=\"own-scale\" id=\"{0}\"/> <label for=\"{0}\">a colour scale "
      "for each layer</label>\n",
      name);
}

std::string colour_bar_style() {
  return R"css(<style>
.bar { max-width: 24rem; margin: 0.4rem 0; font-size: 0.75rem; color: var(--soft);
  font-variant-numeric: tabular-nums; }
.ramp { display: block; height: 0.7rem; border: 1px solid var(--rule); }
.ramp.weights { background: linear-gradient(90deg, transparent, #2e97de); }
.ramp.signs { background: linear-gradient(90deg, #2e97de, transparent, #e07010); }
.numbers { display: flex; justify-content: space-between; }
.numbers.own, .own-scale:checked ~ details .numbers.shared { display: none; }
.own-scale:checked ~ details .numbers.own { display: flex; }
.picture img { opacity: var(--shared, 1); }
.own-scale:checked ~ details .picture img { opacity: 1; }
</style>
)css";
}

}  // namespace bamtrain
