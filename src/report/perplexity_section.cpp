#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/holm.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/paired_perplexities.h"
#include "report/section.h"
#include "report/terminal_plot.h"

namespace bamtrain {

namespace {

using Rows = std::vector<LengthPerplexity>;

struct Protocol {
  Rows PerplexityResult::*rows;
  const char *name, *x_title;
  bool ranges = false;       // rows are ranges of lengths or positions
  bool by_position = false;  // a single row would be the whole windows
};
constexpr Protocol kWindows = {&PerplexityResult::windows, "perplexity", "length"};
constexpr Protocol kLast = {&PerplexityResult::last, "perplexity-last", "length"};
constexpr Protocol kBins = {&PerplexityResult::bins, "perplexity-bins", "position", true, true};
constexpr Protocol kPositions = {&PerplexityResult::positions, "perplexity-positions", "position",
                                 true, true};
constexpr Protocol kShort = {&PerplexityResult::short_documents, "perplexity-short",
                             "tokens of a document", true};
constexpr Protocol kProtocols[] = {kWindows, kLast, kBins, kPositions, kShort};

/// The rows of a run; null if it has no rows.
const Rows* rows_of(const ReportedRun& run, const Protocol& protocol) {
  if (!run.record->perplexity) return nullptr;
  const Rows& rows = (*run.record->perplexity).*protocol.rows;
  return rows.empty() ? nullptr : &rows;
}

/// "256", or "256 (a), 16 (b)" if runs differ.
std::string last_tokens_text(const Runs& runs) {
  std::set<int64_t> different;
  std::string each;
  for (const ReportedRun& run : runs) {
    if (rows_of(run, kLast) == nullptr) continue;
    const int64_t tokens = run.record->perplexity->last_tokens;
    different.insert(tokens);
    each += fmt::format("{}{} ({})", each.empty() ? "" : ", ", tokens, run.name);
  }
  return different.size() == 1 ? std::to_string(*different.begin()) : each;
}

std::string perplexity_title(const Runs& runs, const Protocol& protocol) {
  if (protocol.rows == kWindows.rows) return "perplexity of windows of each length";
  if (protocol.rows == kBins.rows) return "perplexity by position in one long pass";
  if (protocol.rows == kPositions.rows) return "perplexity of each position";
  if (protocol.rows == kShort.rows) return "perplexity of whole documents";
  return "perplexity of each window's last " + last_tokens_text(runs) + " tokens";
}

/// Title of the y axis in a standalone figure, whose caption is elsewhere.
std::string y_title_of(const Runs& runs, const Protocol& protocol) {
  if (protocol.rows != kLast.rows) return "perplexity";
  return "perplexity, last " + last_tokens_text(runs) + " tokens";
}

/// Whether the protocol has a chart.
bool is_shown(const Runs& runs, const Protocol& protocol) {
  return std::any_of(runs.begin(), runs.end(), [&](const ReportedRun& run) {
    const Rows* rows = rows_of(run, protocol);
    return rows != nullptr && (!protocol.by_position || rows->size() > 1);
  });
}

/// Two decimals below 1000, else four significant digits.
std::string perplexity_text(double perplexity) {
  return perplexity < 1000 ? fmt::format("{:.2f}", perplexity) : number_text(perplexity, 4);
}

std::string perplexity_text(const LengthPerplexity& p) {
  return perplexity_text(p.perplexity) + error_text(p.error, p.perplexity < 1000 ? 2 : 0);
}

/// "1,024", or "1,024 to 2,048" for a range.
std::string length_text(const LengthPerplexity& p, const Protocol& protocol) {
  const std::string length = number_text(static_cast<double>(p.length), 15);
  if (!protocol.ranges) return length;
  return number_text(static_cast<double>(p.from), 15) + " to " + length;
}

/// The x value of a row: a range's middle.
double place_of(const LengthPerplexity& p, const Protocol& protocol) {
  const auto length = static_cast<double>(p.length);
  return protocol.ranges ? (static_cast<double>(p.from) + length) / 2 : length;
}

/// "+1.23 ± 0.08"; "" without a difference.
std::string paired_text(const PerplexityDifference* d) {
  if (d == nullptr || !std::isfinite(d->difference.value)) return "";
  return difference_text(d->difference.value, d->difference.error, "\u00a0\u00b1\u00a0");
}

Series series_of(const ReportedRun& run, int style, const Rows& rows, const Protocol& protocol,
                 const PairedPerplexities& paired) {
  Series s = {run.name, style, true, rows.size() <= kMostMarkers, 1, {}, {}};
  for (const LengthPerplexity& p : rows) {
    if (!std::isfinite(p.perplexity)) continue;
    s.points.push_back({place_of(p, protocol), p.perplexity});
    if (!s.markers) continue;
    s.notes.push_back(
        fmt::format("{}: {} at {}", s.name, perplexity_text(p), length_text(p, protocol)));
    s.errors.push_back(p.error.value_or(NAN));
    const PerplexityDifference* const d = paired.of(static_cast<size_t>(style), p);
    const std::string difference = paired_text(d);
    if (!difference.empty()) s.notes.back() += ", " + difference + " from " + paired.baseline();
    s.paired_errors.push_back(d == nullptr ? NAN : d->difference.error.value_or(NAN));
  }
  const auto known = [](double error) { return std::isfinite(error); };
  for (std::vector<double>* errors : {&s.errors, &s.paired_errors}) {
    if (std::none_of(errors->begin(), errors->end(), known)) errors->clear();
  }
  return s;
}

const char* clusters_of(bool packed) {
  return packed ? "documents, or stretches of packed text" : "documents";
}

/// Explains the differences in the table's cells and what is bold.
std::string differences_note(const Runs& runs, const PairedPerplexities& paired) {
  const bool packed = std::any_of(runs.begin(), runs.end(), [](const ReportedRun& run) {
    return run.record->perplexity && run.record->perplexity->packed;
  });
  return fmt::format(
      "<p>The second line of a cell is the difference from {} on the same targets, \u00b1 its "
      "standard error, paired by {}; bars in charts show it. Bold: p &lt; {} (two-sided "
      "t-test, corrected by Holm's method over the {}).</p>\n",
      escaped(paired.baseline()), packed ? "document, or stretch of packed text" : "document",
      kSignificance, runs.size() > 1 ? "column" : "lengths");
}

Chart perplexity_chart(const Runs& runs, const Protocol& protocol,
                       const PairedPerplexities& paired) {
  Chart chart;
  chart.title = perplexity_title(runs, protocol);
  chart.x_title = protocol.x_title;
  chart.y_title = y_title_of(runs, protocol);
  chart.of_losses = true;
  chart.y = Spacing::logarithmic;
  // Bins have equal widths.
  chart.x = protocol.by_position ? Spacing::linear : Spacing::logarithmic;
  chart.labels = runs.size() > 1;
  std::set<double> lengths, trained;
  for (size_t n = 0; n < runs.size(); ++n) {
    const Rows* rows = rows_of(runs[n], protocol);
    if (rows == nullptr) continue;
    Series s = series_of(runs[n], static_cast<int>(n), *rows, protocol, paired);
    if (s.points.empty()) continue;
    for (const Point& p : s.points) lengths.insert(p.x);
    const int64_t T = runs[n].record->perplexity->training_length;
    if (T > 0) trained.insert(static_cast<double>(T));
    chart.series.push_back(std::move(s));
  }
  if (!protocol.ranges && lengths.size() <= kMostLengthTicks) {
    chart.x_ticks.assign(lengths.begin(), lengths.end());
  }
  const auto any = [&](const std::vector<double> Series::*errors) {
    return std::any_of(chart.series.begin(), chart.series.end(),
                       [&](const Series& s) { return !(s.*errors).empty(); });
  };
  chart.paired = any(&Series::paired_errors);
  if (chart.paired) {
    chart.bars = "bars: \u00b1 standard error of the difference from " + paired.baseline();
  } else if (any(&Series::errors)) {
    chart.bars = kBarsOfValues;
  }
  for (const double T : trained) chart.marks.push_back({T, "trained at " + number_text(T)});
  return chart;
}

/// One column per length and one row per run; cells are `text` of a run and its result, "" if it is
/// missing.
template <class Text>
std::string perplexity_table(const Runs& runs, const Protocol& protocol, const std::string& title,
                             Text&& text) {
  std::map<int64_t, std::string> lengths;
  for (size_t n = 0; n < runs.size(); ++n) {
    const Rows* rows = rows_of(runs[n], protocol);
    if (rows == nullptr || rows->size() > kMostLengthTicks) continue;
    for (const LengthPerplexity& p : *rows) {
      if (!text(n, p).empty()) lengths[p.length] = length_text(p, protocol);
    }
  }
  if (lengths.empty() || lengths.size() > kMostLengthTicks) return "";
  std::vector<std::string> head = {protocol.x_title};
  for (const auto& [length, words] : lengths) head.push_back(words);
  std::vector<std::vector<std::string>> out;
  for (size_t n = 0; n < runs.size(); ++n) {
    const Rows* rows = rows_of(runs[n], protocol);
    if (rows == nullptr) continue;
    std::vector<std::string> row = {key_of(runs, n)};
    for (const auto& [length, words] : lengths) {
      const auto at = std::find_if(rows->begin(), rows->end(),
                                   [&, of = length](const auto& p) { return p.length == of; });
      row.push_back(at == rows->end() ? "" : text(n, *at));
    }
    out.push_back(row);
  }
  return fmt::format("<h3>{}</h3>\n", escaped(title)) + table(head, out);
}

std::string perplexity_tables(const Runs& runs, const Protocol& protocol,
                              const PairedPerplexities& paired) {
  const std::string title = perplexity_title(runs, protocol);
  const auto cell = [&](size_t n, const LengthPerplexity& p) {
    const PerplexityDifference* const d = paired.of(n, p);
    std::string text = perplexity_text(p);
    if (d != nullptr && d->is_significant()) text = "<b>" + text + "</b>";
    const std::string difference = paired_text(d);
    return difference.empty() ? text : text + "<br/>" + difference;
  };
  return perplexity_table(runs, protocol, title, cell) +
         perplexity_table(runs, protocol, "bits per byte of the same",
                          [](size_t /*run*/, const LengthPerplexity& p) {
                            return p.bits_per_byte ? fmt::format("{:.4f}", *p.bits_per_byte) : "";
                          });
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

std::vector<NamedChart> perplexity_charts(const Runs& runs) {
  std::vector<NamedChart> out;
  for (const Protocol& protocol : kProtocols) {
    if (!is_shown(runs, protocol)) continue;
    const PairedPerplexities paired(runs, protocol.rows);
    out.push_back({protocol.name, perplexity_chart(runs, protocol, paired)});
  }
  return out;
}

namespace {

int64_t longest_length(const PerplexityResult& result) {
  int64_t longest = 0;
  for (const auto* rows : {&result.windows, &result.last, &result.bins, &result.short_documents}) {
    if (!rows->empty()) longest = std::max(longest, rows->back().length);
  }
  return longest;
}

}  // namespace

std::string incomparable_perplexities(const Runs& runs) {
  std::set<std::string> data;
  std::set<bool> packed;
  std::set<std::pair<int64_t, int64_t>> documents;  // number of documents, longest length
  for (const ReportedRun& run : runs) {
    const auto& result = run.record->perplexity;
    if (!result) continue;
    data.insert(result->data_fingerprint);
    packed.insert(result->packed);
    if (!result->packed) documents.insert({result->documents, longest_length(*result)});
  }
  const char* const different = data.size() > 1     ? "data"
                                : packed.size() > 1 ? "texts of the same data, packed and not"
                                : documents.size() > 1
                                    ? "documents of the same data, which the longest length selects"
                                    : nullptr;
  if (different == nullptr) return "";
  return fmt::format(
      "these runs were evaluated on different {}: their perplexities are not comparable",
      different);
}

std::string perplexity_section(const Runs& runs) {
  std::string protocols, notes, differences;
  std::set<std::string> unpaired;
  bool errors = false, packed = false;
  for (const Protocol& protocol : kProtocols) {
    const auto rows = [&](const ReportedRun& run) { return rows_of(run, protocol); };
    if (!is_shown(runs, protocol)) continue;
    const PairedPerplexities paired(runs, protocol.rows);
    protocols += beside(figure_of(perplexity_chart(runs, protocol, paired)),
                        perplexity_tables(runs, protocol, paired));
    if (!paired.empty()) differences = differences_note(runs, paired);
    unpaired.insert(paired.notes().begin(), paired.notes().end());
    for (const ReportedRun& run : runs) {
      if (rows(run) == nullptr) continue;
      packed |= run.record->perplexity->packed;
      errors |= std::any_of(rows(run)->begin(), rows(run)->end(),
                            [](const LengthPerplexity& p) { return p.error.has_value(); });
    }
  }
  for (const ReportedRun& run : runs) {
    const auto& result = run.record->perplexity;
    if (!result) continue;
    const std::vector<HistoryLine>& lines = run.record->metrics.lines();
    if (lines.empty() || lines.back().step == result->step) continue;
    notes += fmt::format("<p>{} was evaluated at step {}.</p>\n", escaped(run.name),
                         number_text(static_cast<double>(result->step), 15));
  }
  std::string different = incomparable_perplexities(runs);
  if (!different.empty()) {
    different[0] = 'T';
    notes += "<p>" + different + ".</p>\n";
    unpaired.clear();
  }
  if (errors) protocols += errors_note(clusters_of(packed));
  protocols += differences;
  for (const std::string& note : unpaired) protocols += "<p>" + escaped(note) + "</p>\n";
  return section("Perplexity against length", notes + protocols);
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
  const std::string plot = terminal_plot(title, series), note = incomparable_perplexities(runs);
  return plot.empty() || note.empty() ? plot : plot + note + "\n";
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
