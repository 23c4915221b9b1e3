#pragma once
// The report of one or more runs: a page of charts and tables that compares them, and a plot for
// the terminal.

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
  std::string name;  // shown everywhere, different for each
  std::string folder;
  const RunRecord* record = nullptr;
  std::optional<ModelConfig> model;  // none before the first checkpoint
  int64_t training_length = 0;       // T, where there is a model
  std::vector<RunFact> facts = {};   // with which the page begins
  std::string recipe = {};  // the same text in runs that differ in their seed alone; "": unknown
  int64_t seed = 0;         // where the recipe is known
};
using Runs = std::vector<ReportedRun>;

/// A key in which the configs differ, with its value in each run; "" where a run has none.
struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;
};

/// One HTML file. Sections without contents are left out. Error (ExitCode::io) where a run's
/// parameters do not fit its model.
std::string report_html(const Runs& runs, const std::vector<ConfigDifference>& differences);

/// "these runs were evaluated on different data: their perplexities do not compare", or on
/// different documents of the same data, as the longest length decides; "" where they were not.
std::string incomparable_perplexities(const Runs& runs);

/// Perplexity against length of all runs, see terminal_plot.h: of the last tokens of each window
/// where all that were evaluated have that, else of whole windows, with incomparable_perplexities
/// below. "" where there is nothing to plot.
std::string report_plot(const Runs& runs);

/// The same of one evaluation: a line per protocol.
std::string perplexity_plot(const PerplexityResult& result);

}  // namespace bamtrain
