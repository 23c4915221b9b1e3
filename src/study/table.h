#pragma once
// The table of a study: rows by means over repeats, and what each run gave.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/results.h"
#include "study/plan.h"
#include "study/statistics.h"

namespace bamtrain {

struct TableCell {
  SeedSample sample;
  double best = 0;          // of the repeats
  std::optional<double> p;  // Welch's, against the reference
};

struct TableRow {
  std::string label;
  std::vector<std::string> chosen;       // values of the axes to choose; empty where no run is done
  int done = 0, diverged = 0, open = 0;  // runs, with those values where they are chosen
  std::vector<std::vector<std::optional<TableCell>>> cells;  // by group and column
  int not_compared = 0;  // runs of other values to choose that are open or failed
};

/// Metrics that are one curve against length, or one alone.
struct TableGroup {
  std::string name;    // "copy/exact_match"
  std::string number;  // "exact_match"
  std::vector<std::string> metrics;
  std::vector<int64_t> lengths;  // of them; empty: a metric without one
};

struct TableRun {
  std::string row, label;
  std::vector<std::pair<std::string, Metric>> metrics;
};

struct StudyTable {
  std::string name, reference;
  std::string row_name;              // what rows differ in
  std::vector<std::string> choices;  // names of the axes to choose
  std::vector<TableGroup> groups;
  std::vector<TableRow> rows;
  std::vector<TableRun> runs;         // those that are done
  std::vector<std::string> diverged;  // labels
  std::vector<std::string> at_ends;   // "ROW: AXIS VALUE": the least or most of numbers to choose
};

/// What is there of the study now.
StudyTable table_of(const Study& study, const std::vector<StudyRun>& runs);

/// Each a whole file. The same bytes for the same results. Markdown and LaTeX: a table per group,
/// mean, standard deviation and best of the repeats, the best mean of a column in bold; then p.
std::string markdown(const StudyTable& table);
std::string latex(const StudyTable& table);
/// A line per row and metric: row, chosen values, metric, n, mean, deviation, best, p.
std::string csv(const StudyTable& table);
/// A line per run and metric: row, run, metric, value, standard error of its sampling.
std::string runs_csv(const StudyTable& table);
/// The beginning of a run's lines there: its first two cells.
std::string run_cells(const std::string& row, const std::string& label);
/// Those of all runs that have a line in what runs_csv gave.
std::set<std::string> run_cells_in(const std::string& runs_csv);

/// "99.8 ± 0.1" and its parts, in the units in which people read the number: percent of shares.
std::string value_text(const std::string& number, double value);
/// What at_ends are, before their list.
inline constexpr const char* kAtEnds =
    "Chosen at an end of the values, so that a better one may lie beyond";
/// "exact match (%)".
std::string unit_text(const std::string& number);
/// How many of the row's runs are there: "3", "2 of 3, 1 diverged", "3, 2 of other values open".
std::string runs_text(const TableRow& row);
/// Behind a cell of fewer of them, where a number was not finite: " [2]".
std::string fewer_text(const TableRow& row, const TableCell& cell);

}  // namespace bamtrain
