#include "commands/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "commands/command.h"
#include "config/changes.h"
#include "config/reader.h"
#include "core/durable_file.h"
#include "core/input_file.h"
#include "core/json.h"
#include "report/report.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMostStateBytes = int64_t{100} << 20;

/// The config of a run's newest checkpoint; none where there is no checkpoint. Its digests are not
/// verified: a picture is not worth reading a model of gigabytes for.
std::optional<RunConfig> newest_config(const std::string& folder) {
  const std::optional<int64_t> newest = newest_step(folder, ExitCode::io);
  if (!newest) return std::nullopt;
  const std::string path = folder + "/" + checkpoint_name(*newest) + "/state.json";
  const std::string remedy = "restore the checkpoint from a copy, or remove it";
  const InputFile file(path, ExitCode::checkpoint, remedy);
  const json state = parse_json(file.text(kMostStateBytes), {path, ExitCode::checkpoint, remedy});
  if (!state.is_object() || !state.contains("config")) {
    throw Error(ExitCode::checkpoint, path + ": config", "the run's config", "none", remedy);
  }
  return read_run_config_text(state["config"].dump(), path + ": config", {});
}

/// A run as the command line names it.
struct NamedRun {
  explicit NamedRun(const std::string& path)
      : folder(path), reader(path), config(newest_config(path)) {}

  std::string folder;
  RunReader reader;
  std::optional<RunConfig> config;
};

ReportedRun reported(const std::string& name, const std::string& folder, const RunRecord& record,
                     const RunConfig* config) {
  ReportedRun run = {name, folder, &record, std::nullopt, 0};
  if (config) {
    run.model = config->model;
    run.training_length = config->data.sequence_length;
  }
  return run;
}

/// Keys in which configs differ from the first one's, but those that only say which run it is.
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
  std::string output;
};

void refuse_repeated(const std::vector<std::string>& folders) {
  std::set<fs::path> seen;
  for (const std::string& folder : folders) {
    if (seen.insert(fs::weakly_canonical(folder)).second) continue;
    throw Error(ExitCode::usage, "RUN", "each run once", folder + " again", "remove it");
  }
}

int run_report(const ReportArguments& arguments) {
  refuse_repeated(arguments.runs);
  AtomicFile output(arguments.output);  // a path that cannot be written is found before the work
  std::list<NamedRun> runs;             // readers stay where they are
  for (const std::string& folder : arguments.runs) runs.emplace_back(folder);
  std::set<std::string> names;
  for (const NamedRun& run : runs) {
    if (run.config) names.insert(run.config->name);
  }
  const bool by_name = names.size() == runs.size();
  std::vector<ReportedRun> all;
  for (NamedRun& run : runs) {
    all.push_back(reported(by_name ? run.config->name : run.folder, run.folder, run.reader.update(),
                           run.config ? &*run.config : nullptr));
  }
  output.write(report_html(all, differences(runs)));
  output.commit();
  fmt::print("{}report {}\n", report_plot(all), arguments.output);
  return 0;
}

}  // namespace

LiveReport::LiveReport(const RunConfig& config) : config_(config) {}

void LiveReport::draw(const Warn& warn) {
  try {
    if (!reader_) reader_.emplace(config_.out_dir);
    const RunRecord& record = reader_->update();
    AtomicFile file(path());
    file.write(report_html({reported(config_.name, config_.out_dir, record, &config_)}, {}));
    file.commit();
  } catch (const std::exception& e) {
    reader_.reset();
    warn(fmt::format("no new {}: {}", path(), e.what()));
  }
}

Command report_command(CLI::App& app) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* options =
      app.add_subcommand("report", "one HTML page that compares runs, and a plot of perplexity");
  options->add_option("RUN", arguments->runs, "folders of runs (out_dir)")->required();
  options->add_option("-o,--output", arguments->output, "the page, one HTML file")->required();
  return {options, [arguments] { return run_report(*arguments); }};
}

}  // namespace bamtrain
