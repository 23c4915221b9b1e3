#include "report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "report/axis.h"
#include "report/figure.h"
#include "report/markup.h"
#include "report/palette.h"
#include "report/terminal_plot.h"

namespace bamtrain {

namespace {

constexpr size_t kDepthColumn = 8, kLeastColumn = 7;

/// "100", "5.3": a percentage with at most one decimal.
std::string percent(double share) {
  const double tenths = std::round(share * 1000);
  return number_text(tenths / 10, 4);
}

// Points of 1/72 inch.
constexpr double kLeft = 42, kRight = 6;        // margins of the fields
constexpr double kTitle = 14, kBelow = 28;      // height of the title, and below each map's fields
constexpr double kMostRow = 12, kLeastRow = 3;  // limits of a field's height
constexpr double kMostHeight = 240;             // height of a map's fields with many rows
constexpr double kTickGapX = 3;                 // gap between the lengths' texts
constexpr double kDigit = 0.58 * kSmallText;    // width of a digit
constexpr double kLightTextFrom = 0.75;         // score from which text on a field is light

std::string text(const char* name, const char* colour, double size, const char* anchor, double x,
                 double y, const std::string& what) {
  return fmt::format(
      "<text class=\"{}\" fill=\"{}\" font-size=\"{}\" text-anchor=\"{}\" x=\"{}\" y=\"{}\">{}"
      "</text>\n",
      name, colour, size, anchor, rounded(x), rounded(y), escaped(what));
}

/// The smallest n such that every n-th of `count` texts fits.
size_t every(size_t count, double apart, double room) {
  size_t n = 1;
  while (n < count && static_cast<double>(n) * apart < room) ++n;
  return n;
}

double row_height(const HeatMap& map) {
  const auto rows = static_cast<double>(map.depths.size());
  return std::clamp(kMostHeight / rows, kLeastRow, kMostRow);
}

double height_of(const HeatMap& map) {
  return row_height(map) * static_cast<double>(map.depths.size()) + kBelow;
}

/// The map's elements below `top`, without the title.
std::string elements(const HeatMap& map, double width, double top) {
  require(!map.depths.empty() && !map.lengths.empty() &&
              map.shares.size() == map.depths.size() * map.lengths.size(),
          "a share for each depth and length");
  const double wide = (width - kLeft - kRight) / static_cast<double>(map.lengths.size());
  const double high = row_height(map), first = top;
  std::string out;
  const bool numbers = wide >= 3 * kDigit + 2 && high >= kSmallText + 1;
  const size_t rows = every(map.depths.size(), high, kSmallText + 2);
  for (size_t d = 0; d < map.depths.size(); ++d) {
    const double y = first + high * static_cast<double>(d), middle = y + high / 2 + 2.5;
    if (d % rows == 0) {
      out +=
          text("soft", kLight.soft, kSmallText, "end", kLeft - 3, middle, percent(map.depths[d]));
    }
    for (size_t l = 0; l < map.lengths.size(); ++l) {
      const double x = kLeft + wide * static_cast<double>(l), share = map.at(d, l);
      out += fmt::format(
          "<rect class=\"f0\" fill=\"{}\" fill-opacity=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
          "height=\"{}\"><title>length {}, depth {}%: {}%</title></rect>\n",
          kLight.series[0], rounded(share), rounded(x), rounded(y), rounded(wide), rounded(high),
          number_text(static_cast<double>(map.lengths[l]), 9), percent(map.depths[d]),
          percent(share));
      if (!numbers) continue;
      const bool dark = share >= kLightTextFrom;
      out += text(dark ? "paper" : "ink", dark ? kLight.paper : kLight.ink, kSmallText, "middle",
                  x + wide / 2, middle, fmt::format("{:.0f}", 100 * share));
    }
  }
  const double bottom = first + high * static_cast<double>(map.depths.size());
  out += fmt::format(
      "<rect class=\"axis\" fill=\"none\" stroke=\"{}\" stroke-width=\"0.6\" x=\"{}\" y=\"{}\" "
      "width=\"{}\" height=\"{}\"/>\n",
      kLight.soft, kLeft, rounded(first), rounded(wide * static_cast<double>(map.lengths.size())),
      rounded(bottom - first));
  size_t characters = 0;
  for (const int64_t length : map.lengths) {
    characters = std::max(characters, number_text(static_cast<double>(length), 9).size());
  }
  const size_t columns =
      every(map.lengths.size(), wide, static_cast<double>(characters) * kDigit + kTickGapX);
  for (size_t l = 0; l < map.lengths.size(); l += columns) {
    out += text("soft", kLight.soft, kSmallText, "middle",
                kLeft + wide * (static_cast<double>(l) + 0.5), bottom + 9,
                number_text(static_cast<double>(map.lengths[l]), 9));
  }
  out += text("ink", kLight.ink, kText, "middle", (kLeft + width - kRight) / 2, bottom + 20,
              "length (tokens)");
  out += fmt::format(
      "<text class=\"ink\" fill=\"{}\" font-size=\"{}\" text-anchor=\"middle\" "
      "transform=\"translate({} {}) rotate(-90)\">depth (%)</text>\n",
      kLight.ink, kText, rounded(kEdge + kText * 0.8), rounded((first + bottom) / 2));
  return out;
}

std::string label_of(const HeatMap& map) {
  return map.title + ", " + map.value + " by length and depth";
}

}  // namespace

double HeatMap::mean(size_t depth) const {
  double sum = 0;
  for (size_t l = 0; l < lengths.size(); ++l) sum += at(depth, l);
  return sum / static_cast<double>(lengths.size());
}

std::string terminal_heat_map(const HeatMap& map) {
  size_t column = kLeastColumn;
  for (const int64_t length : map.lengths) {
    column = std::max(column, std::to_string(length).size() + 1);
  }
  const bool mean = map.lengths.size() > 1;
  const size_t columns = map.lengths.size() + (mean ? 1 : 0);
  const size_t of_block = (kMostLine - kDepthColumn) / column;
  std::string out;
  for (size_t begin = 0; begin < columns; begin += of_block) {
    const size_t end = std::min(begin + of_block, columns);
    out += fmt::format("  {} (%) by depth (%, down) and length\n{:>{}}", map.value, "depth",
                       kDepthColumn);
    for (size_t l = begin; l < end; ++l) {
      out += fmt::format("{:>{}}", l < map.lengths.size() ? std::to_string(map.lengths[l]) : "mean",
                         column);
    }
    out += "\n";
    for (size_t d = 0; d < map.depths.size(); ++d) {
      out += fmt::format("{:>{}.1f}", 100 * map.depths[d], kDepthColumn);
      for (size_t l = begin; l < end; ++l) {
        const double share = l < map.lengths.size() ? map.at(d, l) : map.mean(d);
        out += fmt::format("{:>{}}", percent(share), column);
      }
      out += "\n";
    }
  }
  return out;
}

std::string heat_map_element(const HeatMap& map) {
  constexpr double kWidth = 252;  // texts as large as in adjacent charts
  return fmt::format("<svg class=\"map\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                     kWidth, rounded(kEdge + height_of(map)), escaped(label_of(map))) +
         elements(map, kWidth, kEdge) + "</svg>\n";
}

std::string heat_map_svg(const std::vector<HeatMap>& maps, double millimetres) {
  require(!maps.empty() && millimetres >= kLeastFigureWidth && millimetres <= kMostFigureWidth,
          "maps, and a figure's width");
  const double width = rounded(millimetres / 25.4 * 72);
  std::string inside, label;
  double height = kEdge;
  for (const HeatMap& map : maps) {
    inside += text("ink", kLight.ink, kText, "start", kLeft, height + kText + 1,
                   map.title + ", " + map.value + " (%)");
    inside += elements(map, width, height + kTitle);
    height += kTitle + height_of(map);
    label += (label.empty() ? "" : "; ") + label_of(map);
  }
  return figure_file(label, millimetres, width, rounded(height), inside);
}

}  // namespace bamtrain
