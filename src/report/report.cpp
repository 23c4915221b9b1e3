#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/chart.h"
#include "report/constants.h"
#include "report/headline.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/section.h"

namespace bamtrain {

namespace {

/// Table of the runs' facts: one row per fact that any run has, with one cell if it is the same in
/// all of them.
std::string facts_table(const Runs& runs) {
  std::vector<std::string> names, head = {""};
  for (size_t n = 0; n < runs.size(); ++n) {
    head.push_back(key_of(runs, n));
    for (const RunFact& fact : runs[n].facts) {
      if (std::find(names.begin(), names.end(), fact.name) == names.end()) {
        names.push_back(fact.name);
      }
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> row = {escaped(name)};
    for (const ReportedRun& run : runs) {
      const auto at = std::find_if(run.facts.begin(), run.facts.end(),
                                   [&](const RunFact& fact) { return fact.name == name; });
      row.push_back(at == run.facts.end() ? "" : escaped(at->value));
    }
    const bool shared = std::all_of(row.begin() + 1, row.end(),
                                    [&](const std::string& value) { return value == row[1]; });
    if (shared) row.resize(2);
    rows.push_back(row);
  }
  return rows.empty() ? "" : "<div class=\"facts\">\n" + table(head, rows) + "</div>\n";
}

std::string headline_section(const Runs& runs) {
  const std::string note = headline_note(runs);
  return "<p class=\"headline\">" + escaped(headline(runs)) + "</p>\n" +
         (note.empty() ? "" : "<p>" + escaped(note) + "</p>\n");
}

std::string summary(const Runs& runs) {
  bool errors = false;
  std::vector<std::vector<std::string>> rows;
  for (size_t n = 0; n < runs.size(); ++n) {
    std::vector<std::string> row = {key_of(runs, n)};
    const std::vector<HistoryLine>& lines = runs[n].record->metrics.lines();
    std::string validation;
    for (const HistoryLine& m : lines) {
      if (!std::isfinite(m.validation_loss)) continue;
      validation =
          fmt::format("{:.4f}", m.validation_loss) + error_text(m.validation_loss_error, 4);
      errors |= m.validation_loss_error.has_value();
    }
    if (lines.empty()) {
      row.insert(row.end(), {"0", "0", "", "", ""});
    } else {
      const HistoryLine& last = lines.back();
      row.push_back(number_text(static_cast<double>(last.step), 15));
      row.push_back(number_text(last.tokens, 15));
      row.push_back(fmt::format("{:.4f}", last.smoothed_loss));
      row.push_back(validation);
      row.push_back(number_text(last.tokens_per_second, 4));
    }
    row.push_back(escaped(runs[n].folder));
    rows.push_back(row);
  }
  return table({"run", "step", "tokens", "loss, smoothed", "validation loss", "tokens/s", "folder"},
               rows) +
         (errors ? errors_note("sequences") : "");
}

using Value = std::function<double(const HistoryLine&)>;

struct Curve {
  Value value;
  std::string name;     // appended to the run's name
  double strength = 1;  // see Series
};

Chart training_chart(const Runs& runs, const char* title, const char* x_title, const Value& x,
                     const std::vector<Curve>& curves) {
  Chart chart;
  chart.title = title;
  chart.x_title = x_title;
  for (const Curve& curve : curves) {
    for (size_t n = 0; n < runs.size(); ++n) {
      Series s = {
          runs[n].name + curve.name, static_cast<int>(n), true, false, curve.strength, {}, {}};
      for (const HistoryLine& m : runs[n].record->metrics.lines()) {
        if (!std::isfinite(x(m)) || !std::isfinite(curve.value(m))) continue;
        s.points.push_back({x(m), curve.value(m)});
      }
      if (!s.points.empty()) chart.series.push_back(std::move(s));
    }
  }
  return chart;
}

/// Validation losses, with error bars unless there are too many.
Chart validation_chart(const Runs& runs, const Value& tokens) {
  Chart chart = training_chart(runs, "validation loss", "tokens", tokens,
                               {{[](const HistoryLine& m) { return m.validation_loss; }, ""}});
  chart.labels = chart.series.size() > 1;
  for (Series& s : chart.series) {
    s.markers = s.points.size() <= kMostMarkers;
    if (!s.markers) continue;
    const std::vector<HistoryLine>& lines =
        runs[static_cast<size_t>(s.style)].record->metrics.lines();
    for (const HistoryLine& m : lines) {
      if (!std::isfinite(m.validation_loss)) continue;
      s.errors.push_back(m.validation_loss_error.value_or(NAN));
      s.notes.push_back(fmt::format("{}: {:.4f}{} at {}", s.name, m.validation_loss,
                                    error_text(m.validation_loss_error, 4),
                                    number_text(m.tokens, 15)));
    }
  }
  return chart;
}

constexpr const char* kSmoothed =
    "<p>The strong line of a loss is a running mean over about the last 2 % of the logged steps, "
    "at "
    "least ten. The faint line is the logged loss.</p>\n";

std::string training_section(const Runs& runs) {
  const auto [figures, constants] = drawn_charts(training_charts(runs));
  return section("Training", figures.empty()
                                 ? constants
                                 : kSmoothed + legend(runs) + grid_of(figures) + constants);
}

/// A path with line-break opportunities after its dots.
std::string path_text(const std::string& path) {
  std::string out;
  for (const char c : escaped(path)) out += c == '.' ? std::string(".<wbr/>") : std::string(1, c);
  return "<span class=\"path\">" + out + "</span>";
}

std::string differences_section(const Runs& runs,
                                const std::vector<ConfigDifference>& differences) {
  if (differences.empty()) return "";
  std::vector<std::string> head = {"key"};
  for (size_t n = 0; n < runs.size(); ++n) head.push_back(key_of(runs, n));
  std::vector<std::vector<std::string>> rows;
  for (const ConfigDifference& d : differences) {
    std::vector<std::string> row = {path_text(d.key)};
    for (const std::string& value : d.values) row.push_back(escaped(value));
    rows.push_back(row);
  }
  return section("What differs between the configs", table(head, rows));
}

std::string samples_section(const Runs& runs) {
  std::string out;
  for (size_t n = 0; n < runs.size(); ++n) {
    const std::vector<Sample>& samples = runs[n].record->samples;
    if (samples.empty()) continue;
    out += fmt::format("<p class=\"legend\"><span>{}</span>step {}</p>\n", key_of(runs, n),
                       number_text(static_cast<double>(samples[0].step), 15));
    for (const Sample& s : samples) {
      out +=
          fmt::format("<blockquote><b>{}</b>{}</blockquote>\n", escaped(s.prompt), escaped(s.text));
    }
  }
  return section("Samples", out);
}

}  // namespace

std::vector<NamedChart> training_charts(const Runs& runs) {
  const Value tokens = [](const HistoryLine& m) { return m.tokens; };
  const Value hours = [](const HistoryLine& m) { return m.seconds / 3600; };
  const Value minutes = [](const HistoryLine& m) { return m.seconds / 60; };
  const std::vector<Curve> loss = {{[](const HistoryLine& m) { return m.loss; }, ", logged", 0.3},
                                   {[](const HistoryLine& m) { return m.smoothed_loss; }, ""}};
  double longest = 0;
  for (const ReportedRun& run : runs) {
    for (const HistoryLine& m : run.record->metrics.lines()) {
      longest = std::fmax(longest, m.seconds);
    }
  }
  const bool long_run = longest >= 2 * 3600;

  Chart against_tokens = training_chart(runs, "loss, smoothed", "tokens", tokens, loss);
  Chart against_time = training_chart(runs, "loss, smoothed, against wall time",
                                      long_run ? "hours of training" : "minutes of training",
                                      long_run ? hours : minutes, loss);
  against_time.x_measured = true;
  against_time.y_title = against_tokens.title;
  Chart validation = validation_chart(runs, tokens);
  const auto of = [&](const char* title, const Value& value) {
    return training_chart(runs, title, "tokens", tokens, {{value, ""}});
  };
  Chart norm = of("gradient norm", [](const HistoryLine& m) { return m.grad_norm; });
  Chart lr = of("learning rate", [](const HistoryLine& m) { return m.lr; });
  Chart rate = of("tokens per second", [](const HistoryLine& m) { return m.tokens_per_second; });
  Chart share =
      of("MFU, % of the measured matmul peak", [](const HistoryLine& m) { return 100 * m.mfu; });
  share.y_title = "MFU, %";
  Chart accuracy = of("validation accuracy, %",
                      [](const HistoryLine& m) { return 100 * m.validation_accuracy; });
  Chart exact = of("validation exact match, %",
                   [](const HistoryLine& m) { return 100 * m.validation_exact_match; });
  Chart wait = of("wait for data, ms a step", [](const HistoryLine& m) { return m.data_wait; });
  for (Chart* c : {&against_tokens, &against_time, &validation, &norm}) {
    c->y = Spacing::logarithmic;
  }
  for (Chart* c : {&accuracy, &exact, &lr, &rate, &share, &wait}) c->from_zero = true;
  return {{"loss", std::move(against_tokens)},    {"validation-loss", std::move(validation)},
          {"accuracy", std::move(accuracy)},      {"exact-match", std::move(exact)},
          {"loss-time", std::move(against_time)}, {"gradient-norm", std::move(norm)},
          {"learning-rate", std::move(lr)},       {"tokens-per-second", std::move(rate)},
          {"matrix-rate", std::move(share)},      {"data-wait", std::move(wait)}};
}

std::string report_html(const std::vector<ReportedRun>& runs,
                        const std::vector<ConfigDifference>& differences) {
  std::string names;
  for (const ReportedRun& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  const std::string body = "<h1>" + escaped(names) + "</h1>\n" + headline_section(runs) +
                           facts_table(runs) + summary(runs) + perplexity_section(runs) +
                           task_section(runs) + training_section(runs) + attention_section(runs) +
                           mechanism_sections(runs) + differences_section(runs, differences) +
                           samples_section(runs);
  return html_page("report", names + " - bamtrain report", body);
}

}  // namespace bamtrain
