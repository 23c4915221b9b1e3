#include "report/report.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/section.h"

namespace bamtrain {

namespace {

std::string summary(const Runs& runs) {
  bool errors = false;
  std::vector<std::vector<std::string>> rows;
  for (size_t n = 0; n < runs.size(); ++n) {
    std::vector<std::string> row = {key_of(runs, n)};
    const std::vector<MetricsLine>& lines = runs[n].record->metrics;
    std::string validation;
    for (const MetricsLine& m : lines) {
      if (!std::isfinite(m.validation_loss)) continue;
      validation =
          fmt::format("{:.4f}", m.validation_loss) + error_text(m.validation_loss_error, 4);
      errors |= m.validation_loss_error.has_value();
    }
    if (lines.empty()) {
      row.insert(row.end(), {"0", "0", "", "", ""});
    } else {
      const MetricsLine& last = lines.back();
      row.push_back(number_text(static_cast<double>(last.step), 15));
      row.push_back(number_text(last.tokens, 15));
      row.push_back(fmt::format("{:.4f}", last.loss));
      row.push_back(validation);
      row.push_back(number_text(last.tokens_per_second, 4));
    }
    row.push_back(escaped(runs[n].folder));
    rows.push_back(row);
  }
  return table({"run", "step", "tokens", "loss", "validation loss", "tokens/s", "folder"}, rows) +
         (errors ? errors_note("sequences") : "");
}

using Value = std::function<double(const MetricsLine&)>;

Chart training_chart(const Runs& runs, const char* title, const char* x_title, const Value& x,
                     const Value& y) {
  Chart chart;
  chart.title = title;
  chart.x_title = x_title;
  for (size_t n = 0; n < runs.size(); ++n) {
    Series s = {runs[n].name, static_cast<int>(n), true, false, 1, {}, {}};
    for (const MetricsLine& m : runs[n].record->metrics) {
      if (std::isfinite(x(m)) && std::isfinite(y(m))) s.points.push_back({x(m), y(m)});
    }
    if (!s.points.empty()) chart.series.push_back(std::move(s));
  }
  return chart;
}

std::string training_section(const Runs& runs) {
  const Value tokens = [](const MetricsLine& m) { return m.tokens; };
  const Value hours = [](const MetricsLine& m) { return m.seconds / 3600; };
  const Value minutes = [](const MetricsLine& m) { return m.seconds / 60; };
  const Value loss = [](const MetricsLine& m) { return m.loss; };
  double longest = 0;
  for (const ReportedRun& run : runs) {
    for (const MetricsLine& m : run.record->metrics) longest = std::fmax(longest, m.seconds);
  }
  const bool long_run = longest >= 2 * 3600;

  Chart against_tokens = training_chart(runs, "loss", "tokens", tokens, loss);
  Chart against_time = training_chart(runs, "loss against wall time",
                                      long_run ? "hours of training" : "minutes of training",
                                      long_run ? hours : minutes, loss);
  Chart validation = training_chart(runs, "validation loss", "tokens", tokens,
                                    [](const MetricsLine& m) { return m.validation_loss; });
  Chart norm = training_chart(runs, "gradient norm", "tokens", tokens,
                              [](const MetricsLine& m) { return m.grad_norm; });
  Chart lr = training_chart(runs, "learning rate", "tokens", tokens,
                            [](const MetricsLine& m) { return m.lr; });
  Chart rate = training_chart(runs, "tokens per second", "tokens", tokens,
                              [](const MetricsLine& m) { return m.tokens_per_second; });
  Chart share = training_chart(runs, "share of the machine's matrix rate, %", "tokens", tokens,
                               [](const MetricsLine& m) { return 100 * m.matrix_rate_share; });
  for (Chart* c : {&against_tokens, &against_time, &validation, &norm}) {
    c->y = Spacing::logarithmic;
  }
  for (Chart* c : {&lr, &rate, &share}) c->from_zero = true;
  for (Series& s : validation.series) s.markers = s.points.size() <= 40;
  validation.labels = validation.series.size() > 1;
  std::string figures;
  for (const Chart* c : {&against_tokens, &validation, &against_time, &norm, &lr, &rate, &share}) {
    figures += figure_of(*c);
  }
  return section("Training", figures.empty() ? "" : legend(runs) + grid_of(figures));
}

/// A path that may be broken after its dots.
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

std::string report_html(const std::vector<ReportedRun>& runs,
                        const std::vector<ConfigDifference>& differences) {
  std::string names;
  for (const ReportedRun& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  const std::string body = "<h1>" + escaped(names) + "</h1>\n" + summary(runs) +
                           perplexity_section(runs) + training_section(runs) +
                           attention_section(runs) + mechanism_sections(runs) +
                           differences_section(runs, differences) + samples_section(runs);
  return html_page(names + " - bamtrain report", body);
}

}  // namespace bamtrain
