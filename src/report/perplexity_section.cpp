#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/markup.h"
#include "report/page.h"
#include "report/section.h"
#include "report/terminal_plot.h"

namespace bamtrain {

namespace {

using Rows = std::vector<LengthPerplexity>;

struct Protocol {
  const char* title;
  Rows PerplexityResult::*rows;
  const char* x_title;
};
constexpr Protocol kProtocols[] = {
    {"perplexity of windows of each length", &PerplexityResult::windows, "length"},
    {"perplexity of each window's last tokens", &PerplexityResult::last, "length"},
    {"perplexity by position in one long pass", &PerplexityResult::bins, "position"}};

/// Two decimals, as far as anyone reads them.
std::string perplexity_text(double perplexity) {
  return perplexity < 1000 ? fmt::format("{:.2f}", perplexity) : number_text(perplexity, 4);
}

std::string perplexity_text(const LengthPerplexity& p) {
  return perplexity_text(p.perplexity) + error_text(p.error, p.perplexity < 1000 ? 2 : 0);
}

std::string length_note(const std::string& run, const LengthPerplexity& p) {
  return fmt::format("{}: {} at {}", run, perplexity_text(p),
                     number_text(static_cast<double>(p.length), 15));
}

std::string perplexity_figure(const Runs& runs, const Protocol& protocol) {
  Chart chart;
  chart.title = protocol.title;
  chart.x_title = protocol.x_title;
  chart.x = chart.y = Spacing::logarithmic;
  chart.labels = runs.size() > 1;
  std::set<double> lengths, trained;
  for (size_t n = 0; n < runs.size(); ++n) {
    const auto& result = runs[n].record->perplexity;
    if (!result) continue;
    Series s = {runs[n].name, static_cast<int>(n), true, true, 1, {}, {}};
    for (const LengthPerplexity& p : (*result).*protocol.rows) {
      if (!std::isfinite(p.perplexity)) continue;
      s.points.push_back({static_cast<double>(p.length), p.perplexity});
      s.notes.push_back(length_note(s.name, p));
      lengths.insert(static_cast<double>(p.length));
    }
    if (s.points.empty()) continue;
    if (result->training_length > 0) trained.insert(static_cast<double>(result->training_length));
    chart.series.push_back(std::move(s));
  }
  if (lengths.size() <= kMostLengthTicks) chart.x_ticks.assign(lengths.begin(), lengths.end());
  for (const double T : trained) chart.marks.push_back({T, "trained at " + number_text(T)});
  return figure_of(chart);
}

std::string perplexity_table(const Runs& runs, const Protocol& protocol) {
  std::set<int64_t> lengths;
  for (const ReportedRun& run : runs) {
    if (!run.record->perplexity) continue;
    for (const LengthPerplexity& p : (*run.record->perplexity).*protocol.rows) {
      lengths.insert(p.length);
    }
  }
  if (lengths.empty() || lengths.size() > kMostLengthTicks) return "";
  std::vector<std::string> head = {protocol.x_title};
  for (const int64_t length : lengths) {
    head.push_back(number_text(static_cast<double>(length), 15));
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t n = 0; n < runs.size(); ++n) {
    if (!runs[n].record->perplexity) continue;
    const Rows& of = (*runs[n].record->perplexity).*protocol.rows;
    std::vector<std::string> row = {key_of(runs, n)};
    for (const int64_t length : lengths) {
      const auto at = std::find_if(of.begin(), of.end(),
                                   [&](const LengthPerplexity& p) { return p.length == length; });
      row.push_back(at == of.end() ? "" : perplexity_text(*at));
    }
    rows.push_back(row);
  }
  return fmt::format("<h3>{}</h3>\n", protocol.title) + table(head, rows);
}

std::vector<Point> points_of(const Rows& rows) {
  std::vector<Point> out;
  for (const LengthPerplexity& p : rows) {
    out.push_back({static_cast<double>(p.length), p.perplexity});
  }
  return out;
}

std::string last_title(int64_t tokens) {
  return tokens > 0 ? fmt::format("perplexity of the last {} tokens against length", tokens)
                    : "perplexity of the last tokens against length";
}

}  // namespace

std::string perplexity_section(const Runs& runs) {
  std::string figures, tables, notes;
  for (const Protocol& protocol : kProtocols) {
    figures += perplexity_figure(runs, protocol);
    tables += perplexity_table(runs, protocol);
  }
  bool errors = false;
  std::set<std::string> data;
  for (const ReportedRun& run : runs) {
    const auto& result = run.record->perplexity;
    if (!result) continue;
    data.insert(result->data_fingerprint);
    for (const Protocol& protocol : kProtocols) {
      const Rows& rows = (*result).*protocol.rows;
      errors |= std::any_of(rows.begin(), rows.end(),
                            [](const LengthPerplexity& p) { return p.error.has_value(); });
    }
    if (run.record->metrics.empty() || run.record->metrics.back().step == result->step) continue;
    notes += fmt::format("<p>{} was evaluated at step {}.</p>\n", escaped(run.name),
                         number_text(static_cast<double>(result->step), 15));
  }
  if (data.size() > 1) {
    notes +=
        "<p>These runs were evaluated on different data: their perplexities do not compare.</p>\n";
  }
  if (errors && !tables.empty()) tables += errors_note("documents");
  return section("Perplexity against length", notes + grid_of(figures) + tables);
}

std::string report_plot(const std::vector<ReportedRun>& runs) {
  bool all_last = true;
  std::set<int64_t> tokens;
  for (const ReportedRun& run : runs) {
    if (!run.record->perplexity) continue;
    all_last &= !run.record->perplexity->last.empty();
    tokens.insert(run.record->perplexity->last_tokens);
  }
  std::vector<PlotSeries> series;
  for (const ReportedRun& run : runs) {
    const auto& result = run.record->perplexity;
    if (!result) continue;
    series.push_back({run.name, points_of(all_last ? result->last : result->windows)});
  }
  const std::string title =
      all_last ? last_title(tokens.size() == 1 ? *tokens.begin() : 0) : "perplexity against length";
  return terminal_plot(title, series);
}

std::string perplexity_plot(const PerplexityResult& result) {
  std::vector<PlotSeries> series;
  if (!result.windows.empty()) {
    series.push_back({"windows of each length, all positions", points_of(result.windows)});
  }
  if (!result.last.empty()) {
    series.push_back(
        {fmt::format("last {} tokens of each window", result.last_tokens), points_of(result.last)});
  }
  return terminal_plot("perplexity against length", series);
}

}  // namespace bamtrain
