#pragma once
// Shared parts of a report's sections, and the sections in files of their own.

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/charts.h"
#include "report/report.h"

namespace bamtrain {

/// Most points of a line that get markers and error bars.
inline constexpr size_t kMostMarkers = 40;

/// Most heads of a run that are drawn. Far above any model's: it keeps a damaged file from making a
/// huge page.
inline constexpr size_t kMostHeads = 8192;

/// A run's colour and name.
std::string key_of(const Runs& runs, size_t n);
/// Legend of the runs' colours; "" for a single run.
std::string legend(const Runs& runs);
/// A heading above `contents`; "" if they are empty.
std::string section(const std::string& title, const std::string& contents);
/// Figures in a grid; "" if there are no figures.
std::string grid_of(const std::string& figures);
/// Whether the chart has any points.
bool has_points(const Chart& chart);
/// A chart under its title; "" if it has no points.
std::string figure_of(const Chart& chart);
/// "bam-layers-0-to-3": words of letters and digits, ASCII letters in lower case.
std::string chart_name(const std::string& title);
/// Tables next to a figure on a wide page, else below it; either may be "".
std::string beside(const std::string& figure, const std::string& tables);

/// Appended to a number: a plus-minus sign and its error, "-" if unknown; "" if the file has no
/// error.
std::string error_text(StandardError error, int decimals);
/// Sentence that explains the errors in charts; `clusters`: the units they are taken over.
std::string errors_note(const char* clusters);

// Charts of each section; some may have no points.
std::vector<NamedChart> perplexity_charts(const Runs& runs);
std::vector<NamedChart> task_charts(const Runs& runs);
std::vector<NamedChart> training_charts(const Runs& runs);
std::vector<NamedChart> attention_charts(const Runs& runs);
/// Charts of priors, then of parameters. Throws Error (ExitCode::io) if a run's parameters do not
/// fit its model.
std::vector<NamedChart> mechanism_charts(const Runs& runs);

/// Charts and tables of perplexity against length.
std::string perplexity_section(const Runs& runs);
/// Charts, tables and maps of task results at the end of the runs.
std::string task_section(const Runs& runs);
/// Charts of attention's entropy and nonzero keys by layer.
std::string attention_section(const Runs& runs);
/// The priors' biases, and the parameters of mechanisms.
std::string mechanism_sections(const Runs& runs);

}  // namespace bamtrain
