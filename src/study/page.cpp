#include "study/page.h"

#include <fmt/format.h>

#include <cmath>

#include "core/join.h"
#include "core/metric.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/section.h"

namespace bamtrain {

namespace {

/// The drawn value: fractions as percentages.
double drawn(const std::string& number, double value) {
  return is_fraction(number) ? 100 * value : value;
}

std::string key_of(const StudyTable& t, size_t row) {
  return fmt::format("<span class=\"key {}\"></span>{}", style_class(static_cast<int>(row)),
                     escaped(t.rows[row].label));
}

std::string group_table(const StudyTable& t, size_t g) {
  const TableGroup& group = t.groups[g];
  std::vector<std::string> head = {escaped(t.row_name)};
  for (const std::string& choice : t.choices) head.push_back(escaped(choice));
  head.emplace_back("n");
  for (const int64_t length : group.lengths) head.push_back(std::to_string(length));
  if (group.lengths.empty()) head.push_back(escaped(unit_text(group.number)));
  std::vector<std::vector<std::string>> rows;
  for (size_t r = 0; r < t.rows.size(); ++r) {
    const TableRow& row = t.rows[r];
    std::vector<std::string> cells = {key_of(t, r)};
    for (size_t c = 0; c < t.choices.size(); ++c) {
      cells.push_back(c < row.chosen.size() ? escaped(row.chosen[c]) : "-");
    }
    cells.push_back(escaped(runs_text(row)));
    for (const auto& cell : row.cells[g]) {
      std::string text = "-";
      if (cell) {
        text = value_text(group.number, cell->sample.mean);
        if (cell->paired && cell->paired->is_significant()) text = "<b>" + text + "</b>";
        if (cell->sample.standard_deviation) {
          text += " \u00b1 " + value_text(group.number, *cell->sample.standard_deviation) + " (" +
                  value_text(group.number, cell->best) + ")";
        }
        text += fewer_text(row, *cell);
        if (cell->paired) {
          const PairedCell& paired = *cell->paired;
          text += "<br>" + paired_text(group.number, paired.difference, " \u00b1 ");
          if (paired.p_holm) text += fmt::format(", p {:.2g}", *paired.p_holm);
        } else if (cell->p) {
          text += fmt::format("<br>Welch's p {:.2g}", *cell->p);
        }
      }
      cells.push_back(text);
    }
    rows.push_back(std::move(cells));
  }
  return table(head, rows);
}

}  // namespace

Chart study_chart(const StudyTable& t, size_t g, const std::vector<int64_t>& trained) {
  const TableGroup& group = t.groups[g];
  Chart chart;
  chart.title = group.name.substr(0, group.name.rfind('/')) + ", " + unit_text(group.number);
  chart.x_title = "length";
  chart.y_title = unit_text(group.number);
  chart.x = Spacing::logarithmic;
  chart.y = higher_is_better(group.number) || group.number == "loss" ? Spacing::linear
                                                                     : Spacing::logarithmic;
  chart.from_zero = higher_is_better(group.number);
  chart.labels = t.rows.size() > 1;
  for (size_t r = 0; r < t.rows.size(); ++r) {
    Series s = {t.rows[r].label, static_cast<int>(r), true, true, 1, {}, {}};
    bool spread = false;
    for (size_t c = 0; c < group.lengths.size(); ++c) {
      const auto& cell = t.rows[r].cells[g][c];
      if (!cell || !std::isfinite(cell->sample.mean)) continue;
      const double mean = drawn(group.number, cell->sample.mean);
      const double standard_deviation =
          drawn(group.number, cell->sample.standard_deviation.value_or(0));
      spread |= cell->sample.standard_deviation.has_value();
      s.points.push_back({static_cast<double>(group.lengths[c]), mean});
      s.spread.push_back({mean - standard_deviation, mean + standard_deviation});
      s.notes.push_back(fmt::format("{}: {} at {}", s.name,
                                    value_text(group.number, cell->sample.mean), group.lengths[c]));
    }
    if (!spread) s.spread.clear();
    if (!s.points.empty()) chart.series.push_back(std::move(s));
  }
  if (group.lengths.size() <= kMostLengthTicks) {
    for (const int64_t length : group.lengths) chart.x_ticks.push_back(static_cast<double>(length));
  }
  for (const int64_t T : trained) {
    chart.marks.push_back({static_cast<double>(T), fmt::format("trained at {}", T)});
  }
  return chart;
}

std::string study_page(const StudyTable& t, const std::vector<int64_t>& trained) {
  std::string body =
      "<h1>" + escaped(t.name) +
      "</h1>\n<p>Means over repeats; the band and \u00b1 are their standard deviation (n - 1), "
      "in parentheses the best of them.";
  if (!t.reference.empty()) {
    body += " Below: the difference from " + escaped(t.reference) +
            " and its p, paired by seed, or by document where there is one run; else Welch's p. " +
            escaped(paired_meaning(t.reference)) + ".";
  }
  body += "</p>\n";
  const auto list = [&body](const std::string& what, const std::vector<std::string>& labels) {
    if (!labels.empty()) body += "<p>" + what + ": " + escaped(join(labels, "; ")) + ".</p>\n";
  };
  list("Diverged", t.diverged);
  list(kAtEnds, t.at_ends);
  list(kUnpaired, t.unpaired);
  for (size_t g = 0; g < t.groups.size(); ++g) {
    const bool curve = t.groups[g].lengths.size() > 1;
    const std::string picture = curve ? figure_of(study_chart(t, g, trained)) : "";
    body += section(escaped(t.groups[g].name), beside(picture, group_table(t, g)));
  }
  return html_page("study", t.name, body);
}

}  // namespace bamtrain
