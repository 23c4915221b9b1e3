#pragma once
// What the sections of a report share, and those that are files of their own.

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/charts.h"
#include "report/report.h"

namespace bamtrain {

/// Points of a line that are drawn each, with its error.
inline constexpr size_t kMostMarkers = 40;

/// Heads of a run that are drawn each, far above any model's: a damaged file makes no huge page.
inline constexpr size_t kMostHeads = 8192;

/// A run's colour and name.
std::string key_of(const Runs& runs, size_t n);
/// The colours' meaning; "" where there is one run.
std::string legend(const Runs& runs);
/// A heading above `contents`; "" where there are none.
std::string section(const std::string& title, const std::string& contents);
/// Figures side by side; "" where there are none.
std::string grid_of(const std::string& figures);
/// Whether there is anything to draw.
bool has_points(const Chart& chart);
/// A chart under its title; "" where it has no points.
std::string figure_of(const Chart& chart);
/// Those of these charts.
std::string figures_of(const std::vector<NamedChart>& charts);
/// "bam-layers-0-to-3": words of letters and digits, small ones where they are ASCII.
std::string chart_name(const std::string& title);
/// Tables beside a figure where the page is wide, else below it; either may be "".
std::string beside(const std::string& figure, const std::string& tables);

/// To follow the number that it belongs to: a plus-minus sign and the error, "-" where that is
/// unknown; "" where the file has none.
std::string error_text(StandardError error, int decimals);
/// What the errors of figures are, for a paragraph; `clusters`: over what they are taken.
std::string errors_note(const char* clusters);

// The charts of each section; some may be without points.
std::vector<NamedChart> perplexity_charts(const Runs& runs);
std::vector<NamedChart> task_charts(const Runs& runs);
std::vector<NamedChart> training_charts(const Runs& runs);
std::vector<NamedChart> attention_charts(const Runs& runs);
/// Of priors, then of parameters. Error (ExitCode::io) where a run's parameters do not fit its
/// model.
std::vector<NamedChart> mechanism_charts(const Runs& runs);

/// Charts and tables of perplexity against length.
std::string perplexity_section(const Runs& runs);
/// Charts, tables and maps of what tasks measured at the end of the runs.
std::string task_section(const Runs& runs);
/// Charts of attention's entropy and support by layer.
std::string attention_section(const Runs& runs);
/// What the priors add to a logit, and the parameters of mechanisms.
std::string mechanism_sections(const Runs& runs);

}  // namespace bamtrain
