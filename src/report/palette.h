#pragma once
// The colours of charts, on a page and in figures.

#include <array>

#include "report/chart.h"

namespace bamtrain {

struct Palette {
  const char *paper, *ink, *soft, *rule;  // background; text; secondary text, axes; grid
  std::array<const char*, kChartColours> series;
};

// Okabe and Ito's colours (2008), without black and yellow, each invisible on one background.
inline constexpr Palette kLight = {
    "#fff",
    "#1b1f24",
    "#5b636d",
    "#dfe3e8",
    {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7f87"}};
inline constexpr Palette kDark = {
    "#14171b",
    "#e3e6ea",
    "#9aa3ad",
    "#30363d",
    {"#4ba3dd", "#f07f2f", "#2fc297", "#dd93bc", "#f0b429", "#8fd0f5", "#a3a9b2"}};
inline constexpr Palette kPrint = {"#fff", "#000", "#444", "#ccc", kLight.series};

}  // namespace bamtrain
