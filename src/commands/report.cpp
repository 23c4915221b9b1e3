#include "commands/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "commands/beginning.h"
#include "commands/command.h"
#include "commands/load_checkpoint.h"
#include "commands/run_facts.h"
#include "config/changes.h"
#include "config/reader.h"
#include "core/checked.h"
#include "core/durable_file.h"
#include "core/faults.h"
#include "core/json.h"
#include "core/option_value.h"
#include "core/print_message.h"
#include "core/utf8.h"
#include "model/parameters.h"
#include "record/logs.h"
#include "report/charts.h"
#include "report/figure.h"
#include "report/heat_map.h"
#include "report/mechanism_curves.h"
#include "report/page.h"
#include "report/report.h"
#include "report/retrieval_maps.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kRetrieval = "retrieval";  // the figure of an evaluation, not of a run

/// The absolute path without a trailing slash.
fs::path whole_path(const std::string& folder) {
  std::error_code ignored;  // fails if the working folder is gone
  return fs::absolute(folder + "/", ignored).lexically_normal().parent_path();
}

/// The config of a run's newest checkpoint; nullopt without a checkpoint.
std::optional<RunConfig> newest_config(const std::string& folder) {
  const std::string remedy = "restore the checkpoint from a copy, or remove it";
  const std::optional<UnverifiedState> newest = newest_state(folder, remedy);
  if (!newest) return std::nullopt;
  return stored_config(newest->state, newest->path, remedy);
}

/// A run named on the command line.
struct NamedRun {
  explicit NamedRun(const std::string& path)
      : folder(path), reader(path), config(newest_config(path)) {}

  std::string folder;
  RunReader reader;
  std::optional<RunConfig> config;
};

/// The config without its seed and without keys that only say where a run writes and what it logs.
/// Keys of evaluation stay.
std::string recipe_of(const RunConfig& config) {
  json recipe = resolved_json(config);
  for (const char* key : {"seed", "name", "out_dir", "checkpoint", "log", "sample"}) {
    recipe.erase(key);
  }
  return recipe.dump();
}

ReportedRun reported(const std::string& name, const std::string& folder, const RunRecord& record,
                     const RunConfig* config) {
  ReportedRun run = {name, folder, &record, std::nullopt, 0, run_facts(config, record)};
  if (config) {
    run.model = config->model;
    run.training_length = config->data.sequence_length;
    run.recipe = recipe_of(*config);
    run.seed = config->seed;
  }
  return run;
}

/// Keys in which configs differ from the first one, except those that only identify the run.
std::vector<ConfigDifference> differences(const std::list<NamedRun>& runs) {
  std::vector<json> configs;
  for (const NamedRun& run : runs) {
    configs.push_back(run.config ? json(resolved_json(*run.config)) : json());
  }
  std::set<std::string> keys;
  const auto first =
      std::find_if(configs.begin(), configs.end(), [](const json& c) { return c.is_object(); });
  for (auto c = first; c != configs.end(); ++c) {
    if (!c->is_object()) continue;
    for (const std::string& key : changed_keys(*first, *c)) keys.insert(key);
  }
  keys.erase("name");
  keys.erase("out_dir");
  std::vector<ConfigDifference> out;
  for (const std::string& key : keys) {
    ConfigDifference d = {key, {}};
    for (const json& c : configs) {
      const json* value = find_value(c, key);
      d.values.push_back(!value               ? ""
                         : value->is_string() ? value->get<std::string>()
                                              : value->dump());
    }
    out.push_back(std::move(d));
  }
  return out;
}

struct ReportArguments {
  std::vector<std::string> runs;
  std::optional<std::string> output;
  std::optional<std::string> figure;  // not set: the page
  double width = kFigureWidth;
};

void refuse_repeated(const std::vector<std::string>& folders) {
  std::set<fs::path> seen;
  for (const std::string& folder : folders) {
    std::error_code error;  // reading the folder later reports the error
    const fs::path path = fs::weakly_canonical(folder, error);
    if (error || seen.insert(path).second) continue;
    throw Error::fault(ExitCode::usage, "RUN", folder + " is given twice", "remove one");
  }
}

/// Throws Error (ExitCode::usage) for another format's extension: no program opens a picture.pdf
/// that contains SVG. Other names with dots are accepted: "bam-0.1".
void require_extension(const std::string& path, bool figure) {
  std::string extension = fs::path(path).extension().string();
  if (extension.empty() && fs::path(path).filename().string().starts_with('.')) {
    extension = fs::path(path).filename().string();  // ".png"
  }
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  static const std::set<std::string> kOthers = {
      ".ai",  ".avif", ".bmp",  ".bz2",  ".csv", ".doc", ".docx", ".dvi", ".emf", ".eps",
      ".gif", ".gz",   ".heic", ".heif", ".ico", ".jpe", ".jpeg", ".jpg", ".jp2", ".json",
      ".jxl", ".md",   ".odg",  ".odp",  ".ods", ".odt", ".pdf",  ".pgf", ".png", ".ppm",
      ".pps", ".ppt",  ".pptx", ".ps",   ".psd", ".rtf", ".svgz", ".tar", ".tex", ".tga",
      ".tif", ".tiff", ".tikz", ".tsv",  ".txt", ".wmf", ".webp", ".xcf", ".xls", ".xlsx",
      ".xml", ".xz",   ".yaml", ".yml",  ".zip", ".zst"};
  const bool other = kOthers.count(extension) != 0 ||
                     (figure ? extension.starts_with(".htm") : extension == ".svg");
  if (!other) return;
  const std::string name = fs::path(path).replace_extension(figure ? ".svg" : ".html").string();
  throw Error(ExitCode::usage, "--output",
              figure ? "a name that ends with .svg, as figures are SVG"
                     : "a name that ends with .html, as pages are HTML",
              path,
              figure ? "write " + name + " and convert it with rsvg-convert or inkscape"
                     : "write " + name + "; --figure NAME writes one chart as SVG");
}

/// Refuses other files: a typo could replace what a run has written.
void require_replaceable_report(const ReportArguments& arguments) {
  constexpr int64_t kBeginning = 1024;
  const std::string& path = *arguments.output;
  if (path.empty()) throw Error::fault(ExitCode::usage, "--output", "empty name", "name a file");
  const bool figure = arguments.figure.has_value();
  const std::string text = beginning_of(path, kBeginning);
  if (text.empty() || (figure ? is_figure_svg(text) : is_html_page(text, "report"))) {
    return require_extension(path, figure);
  }
  throw Error::fault(
      ExitCode::usage, "--output",
      fmt::format("{} exists and is not a {} of bamtrain report", path, figure ? "figure" : "page"),
      "choose another name, or remove the file");
}

/// The folders without their common parents.
std::vector<std::string> distinct_ends(const std::vector<std::string>& folders) {
  std::vector<std::vector<std::string>> parts;
  size_t common = SIZE_MAX;  // leading parts common to all, never the last part
  for (const std::string& folder : folders) {
    parts.emplace_back();
    for (const fs::path& part : whole_path(folder)) parts.back().push_back(part.string());
    common = std::min(common, std::max<size_t>(parts.back().size(), 1) - 1);
    const auto begin = parts[0].begin();
    while (!std::equal(begin, begin + static_cast<int64_t>(common), parts.back().begin())) --common;
  }
  std::vector<std::string> out;
  for (const std::vector<std::string>& of : parts) {
    fs::path end;
    for (size_t i = common; i < of.size(); ++i) end /= of[i];
    out.push_back(end.string());
  }
  return out;
}

/// The name of each run: its label if all labels differ, else its folder.
std::vector<std::string> names_of(const std::list<NamedRun>& runs) {
  std::vector<std::string> labels, folders;
  for (const NamedRun& run : runs) {
    folders.push_back(run.folder);
    if (run.config) labels.push_back(run_label(*run.config, run.folder));
  }
  const std::set<std::string> different(labels.begin(), labels.end());
  return different.size() == runs.size() ? labels : distinct_ends(folders);
}

/// Draws a map from an evaluation's file, not from a run.
int report_retrieval(const ReportArguments& arguments) {
  if (arguments.runs.size() != 1) {
    throw Error(ExitCode::usage, "RUN", "one --output file of bamtrain eval --task passkey or niah",
                fmt::format("{} files", arguments.runs.size()), "draw them one at a time");
  }
  AtomicFile output(*arguments.output);
  output.write(heat_map_svg(read_retrieval_maps(arguments.runs[0]), arguments.width));
  output.commit();
  fmt::print("figure {}\n", printable(*arguments.output));
  return 0;
}

/// The arguments with their output: report.html of a single run, if none is given.
ReportArguments with_output(ReportArguments arguments) {
  if (arguments.output) return arguments;
  if (arguments.figure || arguments.runs.size() > 1) {
    throw missing(ExitCode::usage, "--output",
                  arguments.figure ? "the file of a figure" : "the page of several runs",
                  arguments.figure ? "give -o NAME.svg" : "give -o NAME.html");
  }
  arguments.output = (fs::path(arguments.runs[0]) / "report.html").string();
  return arguments;
}

int run_report(const ReportArguments& given) {
  const ReportArguments arguments = with_output(given);
  require_replaceable_report(arguments);
  if (arguments.figure == kRetrieval) return report_retrieval(arguments);
  refuse_repeated(arguments.runs);
  std::list<NamedRun> runs;  // a list, so that readers keep their addresses
  for (const std::string& folder : arguments.runs) runs.emplace_back(folder);
  AtomicFile output(*arguments.output);  // before the runs are read, so that it fails early
  const std::vector<std::string> names = names_of(runs);
  std::vector<ReportedRun> all;
  for (NamedRun& run : runs) {
    all.push_back(reported(names[all.size()], run.folder, run.reader.update(),
                           run.config ? &*run.config : nullptr));
  }
  if (arguments.figure) {
    if (arguments.figure->starts_with("perplexity")) {
      const std::string different = incomparable_perplexities(all);
      if (!different.empty()) print_message(stderr, "warning: " + different);
    }
    output.write(figure_svg(chart_of(all, *arguments.figure), arguments.width));
    output.commit();
    fmt::print("figure {}\n", printable(*arguments.output));
    return 0;
  }
  output.write(report_html(all, differences(runs)));
  output.commit();
  fmt::print("{}report {}\n", report_plot(all), printable(*arguments.output));
  return 0;
}

}  // namespace

std::string run_label(const RunConfig& config, const std::string& folder) {
  return config.name.empty() ? whole_path(folder).filename().string() : config.name;
}

LiveReport::LiveReport(const RunConfig& config) : config_(config) {}

int64_t LiveReport::bytes(const RunConfig& config) {
  const ParameterLayout layout(config.model, config.data.sequence_length);
  size_t numbers = 0;
  for (const Parameter& p : layout.all()) {
    const auto size = static_cast<size_t>(p.size);
    if (is_mechanism(p.group) && size <= kMostOfALine) numbers += size;
  }
  numbers = std::min(numbers, kMostOfAll);
  // Each number as text, as JSON, as read and as kept.
  constexpr size_t kOfANumber = 24 + sizeof(json) + 2 * sizeof(double);
  // Each point as computed, as drawn, and as text in a figure and in the page.
  constexpr int64_t kOfAPoint = 2 * int64_t{sizeof(Point)} + 2 * 16;
  const int64_t curves = checked_mul(most_curve_points(config.model), kOfAPoint, "model.heads");
  return checked_add(MetricsHistory::kBytes + static_cast<int64_t>(numbers * kOfANumber), curves,
                     "model.heads");
}

void LiveReport::draw(const Warn& warn) {
  try {
    if (!reader_) reader_.emplace(config_.out_dir);
    const RunRecord& record = reader_->update();
    AtomicFile file(path());
    const std::string name = run_label(config_, config_.out_dir);
    file.write(report_html({reported(name, config_.out_dir, record, &config_)}, {}));
    file.commit();
  } catch (const std::exception& e) {
    reader_.reset();
    warn(std::string("report not updated: ") + e.what());
  }
}

Command report_command(CLI::App& app) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* options =
      app.add_subcommand("report", "compare runs on one HTML page, or draw one chart");
  options
      ->add_option("RUN", arguments->runs,
                   "folders of runs (out_dir); with --figure retrieval, the --output of bamtrain "
                   "eval --task passkey or niah")
      ->required();
  constexpr const char* kGroup = "Output";
  options
      ->add_option("-o,--output", arguments->output,
                   "the HTML page to write (default for one run: report.html in its folder); with "
                   "--figure, the SVG file")
      ->type_name("FILE")
      ->group(kGroup);
  std::string names = kRetrieval;
  for (const std::string& name : fixed_chart_names()) names += "|" + name;
  CLI::Option* figure =
      options
          ->add_option(
              "--figure", arguments->figure,
              "draw one chart instead of the page; an unknown name lists those of the runs")
          ->type_name(names)
          ->group(kGroup);
  take_numbers(options->add_option("--width", arguments->width,
                                   "width of the figure in mm; text stays at 8 and 7 points"),
               fmt::format("millimetres from {} to {}", kLeastFigureWidth, kMostFigureWidth),
               [](double mm) { return mm >= kLeastFigureWidth && mm <= kMostFigureWidth; })
      ->type_name("MM")
      ->needs(figure)
      ->capture_default_str()
      ->group(kGroup);
  return {options, [arguments] { return run_report(*arguments); }};
}

}  // namespace bamtrain
