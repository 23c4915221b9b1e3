#pragma once
// The report that compares one or more runs: a page of charts and tables, and a plot for the
// terminal.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "report/run.h"

namespace bamtrain {

/// "parameters", "124,439,808".
struct RunFact {
  std::string name, value;
};

struct ReportedRun {
  std::string name;  // display name, unique
  std::string folder;
  const RunRecord* record = nullptr;
  std::optional<ModelConfig> model;  // nullopt before the first checkpoint
  int64_t training_length = 0;       // T, if there is a model
  std::vector<RunFact> facts = {};   // shown at the top of the page
  std::string recipe = {};           // equal in runs that differ only in their seed; "": unknown
  int64_t seed = 0;                  // valid if the recipe is known
};
using Runs = std::vector<ReportedRun>;

/// A key in which the configs differ, with its value in each run; "" if a run lacks it.
struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;
};

/// One HTML file. Empty sections are omitted. Throws Error (ExitCode::io) if a run's parameters do
/// not fit its model.
std::string report_html(const Runs& runs, const std::vector<ConfigDifference>& differences);

/// "these runs were evaluated on different data: their perplexities do not compare", or on
/// different documents of the same data, as determined by the longest length. "" if they compare.
std::string incomparable_perplexities(const Runs& runs);

/// Plot of perplexity against length of all runs (terminal_plot.h): of each window's last tokens if
/// all evaluated runs have them, else of whole windows; then incomparable_perplexities. "" if there
/// is nothing to plot.
std::string report_plot(const Runs& runs);

/// The same plot for one evaluation, with a line per protocol.
std::string perplexity_plot(const PerplexityResult& result);

}  // namespace bamtrain
