#include "study/page.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/join.h"
#include "core/metric.h"
#include "record/progress.h"
#include "report/constants.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/section.h"
#include "study/run_time.h"

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
          text += "\u00a0\u00b1\u00a0" +
                  value_text(group.number, *cell->sample.standard_deviation) + " (" +
                  value_text(group.number, cell->best) + ")";
        }
        text += fewer_text(row, *cell);
        if (cell->paired) {
          const PairedCell& paired = *cell->paired;
          text += "<br/>" + paired_text(group.number, paired.difference, "\u00a0\u00b1\u00a0");
          if (paired.p_holm) text += fmt::format(", p\u00a0{:.2g}", *paired.p_holm);
        } else if (cell->p) {
          text += fmt::format("<br/>Welch's p\u00a0{:.2g}", *cell->p);
        }
      }
      cells.push_back(text);
    }
    rows.push_back(std::move(cells));
  }
  return table(head, rows);
}

/// The address of a file or folder on a page in `folder`.
std::string address_from(const std::string& folder, const std::string& to) {
  namespace fs = std::filesystem;
  const fs::path from = fs::absolute(folder).lexically_normal();
  return url_path(fs::absolute(to).lexically_normal().lexically_relative(from).string());
}

const char* state_text(RunState::Kind kind) {
  switch (kind) {
    case RunState::Kind::done:
      return "";
    case RunState::Kind::diverged:
      return "diverged";
    case RunState::Kind::other:
    case RunState::Kind::damaged:
      return "failed";
    case RunState::Kind::to_do:
    case RunState::Kind::begun:
      return "open";
  }
  return "";
}

/// The number of runs in each state, and their time.
std::string runs_summary(const std::vector<PageRun>& runs) {
  double seconds = 0;
  int done = 0;
  for (const PageRun& run : runs) {
    seconds += run.seconds.value_or(0);
    done += run.kind == RunState::Kind::done;
  }
  return fmt::format("<p>{} of {} runs done, <span class=\"time\">{}</span> of training.</p>\n",
                     done, runs.size(), format_duration(seconds));
}

std::string runs_section(const std::vector<PageRun>& runs) {
  std::string items;
  for (const PageRun& run : runs) {
    const std::string label = escaped(run.label), state = state_text(run.kind);
    items += "<li>" +
             (run.address.empty() ? label : "<a href=\"" + run.address + "\">" + label + "</a>") +
             (state.empty() ? "" : " <em>" + state + "</em>");
    if (run.seconds) items += " <span class=\"time\">" + format_duration(*run.seconds) + "</span>";
    items += "</li>\n";
  }
  return section("Runs", items.empty() ? "" : "<ul class=\"runs\">\n" + items + "</ul>\n");
}

}  // namespace

std::vector<PageRun> page_runs(const Study& study, const std::vector<StudyRun>& runs,
                               const StudyTable& t) {
  require(t.kinds.size() == runs.size(), "the table of these runs");
  std::vector<PageRun> out;
  for (size_t i = 0; i < runs.size(); ++i) {
    PageRun run = {runs[i].label, "", seconds_of(runs[i]), t.kinds[i]};
    const std::string report = runs[i].folder + "/report.html";
    std::error_code ignored;
    for (const std::string& to : {report, runs[i].folder}) {
      if (!run.address.empty() || !std::filesystem::exists(to, ignored)) continue;
      run.address = address_from(study.out_dir, to);
    }
    out.push_back(std::move(run));
  }
  return out;
}

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

std::string study_page(const StudyTable& t, const std::vector<int64_t>& trained,
                       const std::vector<PageRun>& runs) {
  std::string body =
      "<h1>" + escaped(t.name) +
      "</h1>\n<p>Means over repeats; the band and \u00b1 are their standard deviation (n - 1), "
      "in parentheses the best of them.";
  if (!t.reference.empty()) {
    body += " Below: the difference from " + escaped(t.reference) +
            " and its p, paired by seed, or by document where there is one run; else Welch's p. " +
            escaped(paired_meaning(t.reference)) + ".";
  }
  body += "</p>\n" + runs_summary(runs);
  const auto list = [&body](const std::string& what, const std::vector<std::string>& labels) {
    if (!labels.empty()) body += "<p>" + what + ": " + escaped(join(labels, "; ")) + ".</p>\n";
  };
  list("Diverged", t.diverged);
  list(kAtEnds, t.at_ends);
  list(kUnpaired, t.unpaired);
  // Tables without a chart stand next to each other.
  std::string tables;
  const auto end_tables = [&] {
    if (!tables.empty()) body += "<div class=\"tables\">\n" + tables + "</div>\n";
    tables.clear();
  };
  for (size_t g = 0; g < t.groups.size(); ++g) {
    const Chart chart = study_chart(t, g, trained);
    const std::string title = escaped(t.groups[g].name);
    if (t.groups[g].lengths.size() > 1 && !is_constant(chart)) {
      end_tables();
      body += section(title, beside(figure_of(chart), group_table(t, g)));
    } else {
      tables += "<section>\n" + section(title, group_table(t, g)) + "</section>\n";
    }
  }
  end_tables();
  return html_page("study", t.name, body + runs_section(runs));
}

}  // namespace bamtrain
