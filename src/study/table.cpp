#include "study/table.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/holm.h"
#include "core/metric.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

struct MetricParts {
  std::string group, number;
  int64_t length = 0;  // 0: no length
};

/// "copy@64/exact_match" belongs to the group "copy/exact_match", at length 64.
MetricParts parts_of(const std::string& metric) {
  const size_t slash = metric.rfind('/');
  const std::string result = metric.substr(0, slash), number = metric.substr(slash + 1);
  const size_t at = result.rfind('@');
  const std::string digits = at == std::string::npos ? "" : result.substr(at + 1);
  const bool length = !digits.empty() && digits.size() < 19 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  if (!length) return {metric, number, 0};
  return {result.substr(0, at) + "/" + number, number, std::stoll(digits)};
}

/// The metrics that match the study's patterns, in the patterns' order, by ascending length.
std::vector<TableGroup> groups_of(const Study& study, const std::vector<DoneRun>& done) {
  std::vector<TableGroup> groups;
  // By group, then length. A metric without a length is its own group, whatever its name.
  using Group = std::pair<std::string, bool>;
  std::map<Group, std::map<int64_t, std::string>> metrics;
  std::vector<Group> order;
  for (const std::string& pattern : study.measures) {
    for (const DoneRun& d : done) {
      for (const std::string& metric : metrics_at_end(d.run->config)) {
        if (fnmatch(pattern.c_str(), metric.c_str(), 0) != 0) continue;
        if (!d.results.metric(metric)) continue;
        const MetricParts parts = parts_of(metric);
        const Group group = {parts.group, parts.length > 0};
        if (metrics.count(group) == 0) {
          groups.push_back({parts.group, parts.number, {}, {}});
          order.push_back(group);
        }
        metrics[group].emplace(parts.length, metric);
      }
    }
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const auto& [length, metric] : metrics[order[g]]) {
      groups[g].metrics.push_back(metric);
      if (length > 0) groups[g].lengths.push_back(length);
    }
  }
  return groups;
}

std::vector<double> values_of(const std::vector<const DoneRun*>& runs, const std::string& metric) {
  std::vector<double> values;
  for (const DoneRun* const d : runs) {
    if (const auto m = d->results.metric(metric)) values.push_back(m->value);
  }
  return values;
}

/// The best values of the "choose" axes, among those with the most successful runs; the first one
/// on a tie.
std::vector<std::string> choose(const Study& study, const std::vector<const DoneRun*>& runs) {
  std::vector<std::vector<std::string>> order;
  std::map<std::vector<std::string>, std::vector<const DoneRun*>> by_choice;
  for (const DoneRun* const d : runs) {
    if (by_choice.count(d->run->chosen) == 0) order.push_back(d->run->chosen);
    by_choice[d->run->chosen].push_back(d);
  }
  std::vector<std::string> best;
  size_t most = 0;
  double best_mean = 0;
  for (const std::vector<std::string>& choice : order) {
    const std::vector<double> values = values_of(by_choice[choice], study.choose_metric);
    if (values.empty() || values.size() < most) continue;
    const double mean = sample_of(values).mean;
    const bool better = study.choose_highest ? mean > best_mean : mean < best_mean;
    if (best.empty() || values.size() > most || better) {
      best = choice;
      best_mean = mean;
    }
    most = values.size();
  }
  return best;
}

/// The number that the value sets, if it sets exactly one key to a number.
std::optional<double> number_of(const StudyAxis::Value& value) {
  if (value.settings.size() != 1 || !value.settings[0].second.is_number()) return std::nullopt;
  return value.settings[0].second.get<double>();
}

/// "lr 0.001" for each numeric axis whose chosen value is its smallest or largest. `chosen` has a
/// value for each "choose" axis.
std::vector<std::string> at_ends(const Study& study, const std::vector<std::string>& chosen) {
  std::vector<std::string> ends;
  auto value = chosen.begin();
  for (const StudyAxis& axis : study.axes) {
    if (axis.use != AxisUse::choose || value == chosen.end()) continue;
    const auto own_value = std::find_if(axis.values.begin(), axis.values.end(),
                                        [&](const auto& v) { return v.label == *value; });
    require(own_value != axis.values.end(), "a value of the axis");
    const std::optional<double> own = number_of(*own_value);
    bool numbers = own.has_value(), least = true, most = true;
    for (const StudyAxis::Value& other : axis.values) {
      const std::optional<double> x = number_of(other);
      numbers = numbers && x;
      if (!numbers) break;
      least = least && *own <= *x;
      most = most && *own >= *x;
    }
    if (numbers && least != most) ends.push_back(axis.name + " " + *value);
    ++value;
  }
  return ends;
}

/// Sets the paired differences of the other rows from the reference, and corrects their p by
/// column. `own`: the runs of each row.
void add_paired(const std::vector<std::vector<const DoneRun*>>& own, size_t reference,
                StudyTable* table) {
  PairedCells pairs;
  for (size_t g = 0; g < table->groups.size(); ++g) {
    const std::vector<std::string>& metrics = table->groups[g].metrics;
    for (size_t c = 0; c < metrics.size(); ++c) {
      std::vector<TableCell*> column;
      std::vector<std::optional<double>> p;
      for (size_t r = 0; r < table->rows.size(); ++r) {
        TableRow& row = table->rows[r];
        if (r == reference || row.not_compared > 0 || !row.cells[g][c]) continue;
        row.cells[g][c]->paired = pairs.cell(own[r], own[reference], metrics[c]);
        if (!row.cells[g][c]->paired) continue;
        column.push_back(&*row.cells[g][c]);
        p.push_back(column.back()->paired->difference.p);
      }
      const std::vector<std::optional<double>> corrected = holm(p);
      for (size_t i = 0; i < column.size(); ++i) column[i]->paired->p_holm = corrected[i];
    }
  }
  table->unpaired = pairs.notes();
}

}  // namespace

StudyTable table_of(const Study& study, const std::vector<StudyRun>& runs) {
  StudyTable table;
  table.name = study.name;
  table.reference = study.reference;
  for (const StudyAxis& a : study.axes) {
    if (a.use == AxisUse::choose) table.choices.push_back(a.name);
    if (a.use != AxisUse::rows) continue;
    table.row_name += (table.row_name.empty() ? "" : ", ") + a.name;
  }
  if (table.row_name.empty()) table.row_name = "study";
  std::vector<DoneRun> done;
  std::vector<std::string> labels;  // of rows, in order
  std::vector<RunState::Kind> kinds;
  for (const StudyRun& run : runs) {
    const RunState state = state_of(study, run);
    kinds.push_back(state.kind);
    if (std::find(labels.begin(), labels.end(), run.row) == labels.end()) {
      labels.push_back(run.row);
    }
    if (state.kind == RunState::Kind::done) {
      done.push_back({&run, Results(run.folder + "/" + kResultsFile)});
    }
    if (state.kind == RunState::Kind::diverged) table.diverged.push_back(run.label);
  }
  table.kinds = kinds;
  table.groups = groups_of(study, done);
  std::vector<std::vector<const DoneRun*>> runs_of_rows;
  for (const std::string& label : labels) {
    TableRow row;
    row.label = label;
    std::vector<const DoneRun*>& own = runs_of_rows.emplace_back();
    for (const DoneRun& d : done) {
      if (d.run->row == label) own.push_back(&d);
    }
    if (!table.choices.empty()) {
      row.chosen = choose(study, own);
      std::erase_if(own, [&](const DoneRun* d) { return d->run->chosen != row.chosen; });
      for (const std::string& end : at_ends(study, row.chosen)) {
        table.at_ends.push_back(label + ": " + end);
      }
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].row != label) continue;
      const bool open = kinds[i] != RunState::Kind::diverged && kinds[i] != RunState::Kind::done;
      if (!row.chosen.empty() && runs[i].chosen != row.chosen) {
        row.not_compared += open;
        continue;
      }
      row.diverged += kinds[i] == RunState::Kind::diverged;
      row.open += open;
    }
    row.done = static_cast<int>(own.size());
    for (const TableGroup& g : table.groups) {
      std::vector<std::optional<TableCell>>& cells = row.cells.emplace_back();
      for (const std::string& metric : g.metrics) {
        std::optional<TableCell>& cell = cells.emplace_back();
        const std::vector<double> values = values_of(own, metric);
        if (values.empty()) continue;
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        cell = {sample_of(values), higher_is_better(g.number) ? *most : *least, std::nullopt};
      }
    }
    table.rows.push_back(std::move(row));
  }
  const auto reference = std::find_if(table.rows.begin(), table.rows.end(), [&](const TableRow& r) {
    return r.label == table.reference;
  });
  // A row with untried values is not comparable to one with its best value.
  if (reference != table.rows.end() && reference->not_compared == 0) {
    for (TableRow& row : table.rows) {
      if (&row == &*reference || row.not_compared > 0) continue;
      for (size_t g = 0; g < row.cells.size(); ++g) {
        for (size_t c = 0; c < row.cells[g].size(); ++c) {
          const auto& other = reference->cells[g][c];
          if (row.cells[g][c] && other) {
            row.cells[g][c]->p = welch_p(row.cells[g][c]->sample, other->sample);
          }
        }
      }
    }
    add_paired(runs_of_rows, static_cast<size_t>(reference - table.rows.begin()), &table);
  }
  for (const DoneRun& d : done) {
    TableRun& run = table.runs.emplace_back(TableRun{d.run->row, d.run->label, {}});
    for (const TableGroup& g : table.groups) {
      for (const std::string& metric : g.metrics) {
        if (const auto m = d.results.metric(metric)) run.metrics.emplace_back(metric, *m);
      }
    }
  }
  return table;
}

}  // namespace bamtrain
