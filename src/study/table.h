#pragma once
// The table of a study: rows of means over repeats, and the results of each run.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/results.h"
#include "study/paired_cells.h"
#include "study/plan.h"
#include "study/statistics.h"

namespace bamtrain {

struct TableCell {
  SeedSample sample;
  double best = 0;                                  // of the repeats
  std::optional<double> p;                          // Welch's t-test against the reference
  std::optional<PairedCell> paired = std::nullopt;  // against the reference
};

struct TableRow {
  std::string label;
  std::vector<std::string> chosen;       // values of the "choose" axes; empty if no run is done
  int done = 0, diverged = 0, open = 0;  // number of runs, of the chosen values if any
  std::vector<std::vector<std::optional<TableCell>>> cells;  // by group and column
  int not_compared = 0;  // runs of other values that are open or failed
};

/// Metrics that form one curve against length, or a single metric.
struct TableGroup {
  std::string name;    // "copy/exact_match"
  std::string number;  // "exact_match"
  std::vector<std::string> metrics;
  std::vector<int64_t> lengths;  // of the metrics; empty for a metric without a length
};

struct TableRun {
  std::string row, label;
  std::vector<std::pair<std::string, Metric>> metrics;
};

struct StudyTable {
  std::string name, reference;
  std::string row_name;              // names of the axes that make the rows
  std::vector<std::string> choices;  // names of the "choose" axes
  std::vector<TableGroup> groups;
  std::vector<TableRow> rows;
  std::vector<TableRun> runs;         // the runs that are done
  std::vector<RunState::Kind> kinds;  // of all runs of the study, in their order
  std::vector<std::string> diverged;  // labels
  std::vector<std::string> at_ends;   // "ROW: AXIS VALUE": chosen numbers at an end of their axis
  std::vector<std::string> unpaired = {};  // "ROW: why its documents do not pair"
};

/// The table of the current results.
StudyTable table_of(const Study& study, const std::vector<StudyRun>& runs);

/// Each is a complete file, bitwise identical for identical results. Markdown and LaTeX: a table
/// per group with mean, standard deviation and best of the repeats; in bold means that differ from
/// the reference (PairedCell::is_significant). Then the paired differences, or Welch's p where
/// there are none.
std::string markdown(const StudyTable& table);
std::string latex(const StudyTable& table);
/// A line per row and metric: row, chosen values, metric, n, mean, standard deviation, best,
/// Welch's p; then the paired difference, its error, the number of pairs and what they are, its p
/// and Holm's.
std::string csv(const StudyTable& table);
/// A line per run and metric: row, run, metric, value, standard error of its sampling.
std::string runs_csv(const StudyTable& table);
/// The first two cells of a run's lines in runs_csv.
std::string run_cells(const std::string& row, const std::string& label);
/// These cells of all runs in the output of runs_csv.
std::set<std::string> run_cells_in(const std::string& runs_csv);

/// "+1.230 ± 0.080", in the same units as value_text.
std::string paired_text(const std::string& number, const PairedDifference& difference,
                        const std::string& plus_minus);
/// Explains paired differences from `reference` and what is bold, as a clause.
std::string paired_meaning(const std::string& reference);
/// The heading of the list of reasons in StudyTable::unpaired.
inline constexpr const char* kUnpaired = "No differences by document";
/// "99.8 ± 0.1" and its parts, in the units people read: fractions as percentages.
std::string value_text(const std::string& number, double value);
/// The heading of the list at_ends.
inline constexpr const char* kAtEnds =
    "Chosen at an end of the values, so that a better one may lie beyond";
/// "exact match (%)".
std::string unit_text(const std::string& number);
/// The number of the row's runs: "3", "2 of 3, 1 diverged", "3, 2 of other values open".
std::string runs_text(const TableRow& row);
/// Appended to a cell with fewer runs, because some values were not finite: " [2]".
std::string fewer_text(const TableRow& row, const TableCell& cell);

}  // namespace bamtrain
