#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/metric.h"
#include "report/constants.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/section.h"
#include "report/terminal_plot.h"

namespace bamtrain {

namespace {

/// "passkey: exact match, %".
std::string task_title(const TaskNumbers& n) {
  std::string words = n.number;
  std::replace(words.begin(), words.end(), '_', ' ');
  return n.task + ": " + words + (is_fraction(n.number) ? ", %" : "");
}

double drawn(const TaskNumbers& n, double value) {
  return is_fraction(n.number) ? 100 * value : value;
}

std::string value_text(const TaskNumbers& n, const TaskNumber& at) {
  if (!std::isfinite(at.value)) return "not finite";
  const int decimals = is_fraction(n.number) ? 1 : 3;
  const StandardError error = at.error ? std::optional(drawn(n, *at.error)) : std::nullopt;
  return fmt::format("{:.{}f}", drawn(n, at.value), decimals) + error_text(error, decimals);
}

/// The same number of the same task in the run; null if it is missing.
const TaskNumbers* same(const ReportedRun& run, const TaskNumbers& as) {
  const std::vector<TaskNumbers>& all = run.record->tasks.numbers;
  const auto at = std::find_if(all.begin(), all.end(), [&](const TaskNumbers& n) {
    return n.task == as.task && n.number == as.number;
  });
  return at == all.end() ? nullptr : &*at;
}

/// Each task number of any run, once.
std::vector<const TaskNumbers*> all_numbers(const Runs& runs) {
  std::vector<const TaskNumbers*> out;
  for (const ReportedRun& run : runs) {
    for (const TaskNumbers& n : run.record->tasks.numbers) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const TaskNumbers* other) {
        return other->task == n.task && other->number == n.number;
      });
      if (!known) out.push_back(&n);
    }
  }
  return out;
}

/// Against lengths above 0; without points if there are fewer than two lengths.
Chart task_chart(const Runs& runs, const TaskNumbers& number) {
  Chart chart;
  chart.title = task_title(number);
  chart.x_title = "length";
  chart.y_title = chart.title;
  chart.x = Spacing::logarithmic;
  chart.y = number.number == "perplexity" ? Spacing::logarithmic : Spacing::linear;
  chart.from_zero = is_fraction(number.number);
  chart.labels = runs.size() > 1;
  std::set<double> lengths, trained;
  for (size_t n = 0; n < runs.size(); ++n) {
    const TaskNumbers* const of_run = same(runs[n], number);
    if (of_run == nullptr) continue;
    Series s = {runs[n].name, static_cast<int>(n), true, true, 1, {}, {}};
    for (const TaskNumber& at : of_run->at) {
      if (at.length.value_or(0) == 0 || !std::isfinite(at.value)) continue;
      const auto length = static_cast<double>(*at.length);
      lengths.insert(length);
      s.points.push_back({length, drawn(number, at.value)});
      s.errors.push_back(drawn(number, at.error.value_or(NAN)));
      s.notes.push_back(
          fmt::format("{}: {} at {}", s.name, value_text(number, at), number_text(length, 15)));
    }
    if (s.points.empty()) continue;
    if (s.points.size() > kMostMarkers) {
      s.markers = false;
      s.errors.clear();
      s.notes.clear();
    }
    if (const int64_t T = runs[n].training_length; T > 0) trained.insert(static_cast<double>(T));
    chart.series.push_back(std::move(s));
  }
  if (lengths.size() < 2) chart.series.clear();
  if (lengths.size() <= kMostLengthTicks) chart.x_ticks.assign(lengths.begin(), lengths.end());
  for (const double T : trained) chart.marks.push_back({T, "trained at " + number_text(T)});
  return chart;
}

/// One column per length and one row per run; "" if there are too many lengths, or none.
std::string task_table(const Runs& runs, const TaskNumbers& number) {
  std::set<int64_t> lengths;
  for (const ReportedRun& run : runs) {
    const TaskNumbers* const of_run = same(run, number);
    if (of_run == nullptr) continue;
    for (const TaskNumber& at : of_run->at) {
      if (at.length) lengths.insert(*at.length);
    }
  }
  if (lengths.empty() || lengths.size() > kMostLengthTicks) return "";
  std::vector<std::string> head = {"length"};
  for (const int64_t length : lengths) head.push_back(number_text(static_cast<double>(length), 15));
  std::vector<std::vector<std::string>> rows;
  for (size_t n = 0; n < runs.size(); ++n) {
    const TaskNumbers* const of_run = same(runs[n], number);
    if (of_run == nullptr) continue;
    rows.push_back({key_of(runs, n)});
    for (const int64_t length : lengths) {
      const auto at = std::find_if(of_run->at.begin(), of_run->at.end(),
                                   [&](const TaskNumber& a) { return a.length == length; });
      rows.back().push_back(at == of_run->at.end() ? "" : value_text(number, *at));
    }
  }
  return "<h3>" + escaped(task_title(number)) + "</h3>\n" + table(head, rows);
}

/// Tables of tasks whose texts are from a file: one row per run, one column per number.
std::string file_tables(const Runs& runs, const std::vector<const TaskNumbers*>& numbers) {
  std::vector<std::string> head = {""};
  std::vector<const TaskNumbers*> columns;
  for (const TaskNumbers* n : numbers) {
    if (n->at.empty() || n->at[0].length) continue;
    columns.push_back(n);
    head.push_back(escaped(task_title(*n)));
  }
  if (columns.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (size_t n = 0; n < runs.size(); ++n) {
    rows.push_back({key_of(runs, n)});
    for (const TaskNumbers* column : columns) {
      const TaskNumbers* const of_run = same(runs[n], *column);
      const bool has = of_run != nullptr && !of_run->at[0].length;
      rows.back().push_back(has ? value_text(*column, of_run->at[0]) : "");
    }
  }
  return table(head, rows);
}

std::string maps(const Runs& runs) {
  std::string out;
  for (const ReportedRun& run : runs) {
    for (const HeatMap& map : run.record->tasks.maps) {
      const std::string of = runs.size() > 1 ? run.name + ", " : "";
      out += figure(of + map.title + ": " + map.value + ", %", heat_map_element(map));
    }
  }
  return out.empty() ? "" : "<h3>by depth and length</h3>\n" + grid_of(out);
}

}  // namespace

std::vector<NamedChart> task_charts(const Runs& runs) {
  std::vector<NamedChart> out;
  for (const TaskNumbers* n : all_numbers(runs)) {
    out.push_back({chart_name(n->task + " " + n->number), task_chart(runs, *n)});
  }
  return out;
}

std::string task_section(const Runs& runs) {
  const std::vector<const TaskNumbers*> numbers = all_numbers(runs);
  std::string out;
  for (const TaskNumbers* n : numbers) {
    const DrawnCharts drawn = drawn_charts({{"", task_chart(runs, *n)}});
    const std::string numbers_by_length = task_table(runs, *n);
    out += beside(drawn.figures, numbers_by_length.empty() ? drawn.constants : numbers_by_length);
  }
  out += file_tables(runs, numbers) + maps(runs);
  if (!out.empty()) {
    out +=
        "<p>\u00b1 is the standard error over the sequences, prompts or lines. It does not include "
        "seed variance.</p>\n";
  }
  return section("Tasks", out);
}

}  // namespace bamtrain
