#include "study/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "config/changes.h"
#include "config/reader.h"
#include "config/renamed_keys.h"
#include "core/closest_match.h"
#include "core/durable_file.h"
#include "core/error.h"
#include "core/faults.h"
#include "core/input_file.h"
#include "core/join.h"
#include "core/json.h"
#include "core/metric.h"
#include "record/results.h"
#include "train/metric_name.h"

namespace bamtrain {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMostTextBytes = int64_t{100} << 20;
constexpr size_t kLongestName = 200;  // bytes of a file name, with room for its extension

/// Letters, digits, dots and underscores of a label; other characters become dashes.
std::string slug_of(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_';
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "-" : out;
}

/// One value of each axis.
using Combination = std::vector<const StudyAxis::Value*>;

std::vector<Combination> combinations(const Study& study) {
  check_run_count(study);
  // Rows vary slowest and repeats fastest, whatever the file's order.
  std::vector<Combination> all = {Combination(study.axes.size(), nullptr)};
  for (const AxisUse use : {AxisUse::rows, AxisUse::choose, AxisUse::repeat}) {
    for (size_t a = 0; a < study.axes.size(); ++a) {
      if (study.axes[a].use != use) continue;
      std::vector<Combination> longer;
      for (const Combination& c : all) {
        for (const StudyAxis::Value& v : study.axes[a].values) {
          longer.push_back(c);
          longer.back()[a] = &v;
        }
      }
      all = std::move(longer);
    }
  }
  return all;
}

/// The labels of a combination that make its row.
std::vector<std::string> row_labels(const Study& study, const Combination& choice) {
  std::vector<std::string> labels;
  for (size_t a = 0; a < study.axes.size(); ++a) {
    if (study.axes[a].use == AxisUse::rows) labels.push_back(choice[a]->label);
  }
  return labels;
}

std::string override_of(const std::string& key, const json& value) {
  return key + "=" + value.dump();
}

StudyRun run_of(const Study& study, const ConfigDocument& base, const Combination& choice) {
  StudyRun run;
  std::vector<std::string> overrides, parts, others;
  for (const auto& [key, value] : study.set) overrides.push_back(override_of(key, value));
  for (size_t a = 0; a < study.axes.size(); ++a) {
    const StudyAxis& axis = study.axes[a];
    const StudyAxis::Value& value = *choice[a];
    for (const auto& [key, v] : value.settings) overrides.push_back(override_of(key, v));
    if (axis.use == AxisUse::rows) {
      parts.push_back(slug_of(value.label));
      continue;
    }
    (axis.use == AxisUse::choose ? run.chosen : run.repeats).push_back(value.label);
    others.push_back(axis.name + " " + value.label);
    parts.push_back(slug_of(axis.name) + "-" + slug_of(value.label));
  }
  run.row = join(row_labels(study, choice));
  if (run.row.empty()) run.row = study.name;
  run.slug = join(parts, "_");
  run.label = run.row + (others.empty() ? "" : ", " + join(others));
  run.folder = study.out_dir + "/runs/" + run.slug;
  overrides.push_back(override_of("name", run.slug));
  overrides.push_back(override_of("out_dir", run.folder));
  try {
    run.config = read_run_config(base, overrides);
  } catch (const Error& e) {
    const std::string where = study.file + ": " + run.label + ": " + e.where();
    // These keys are not command-line options, so a usage error is one of the study's file.
    throw e.code() == ExitCode::usage ? e.as(ExitCode::config, where) : e.at(where);
  }
  return run;
}

/// The state of the newest checkpoint in a run's folder; null without a checkpoint.
json state_of_newest(const std::string& folder) {
  const std::optional<UnverifiedState> newest = newest_state(folder, "move the run elsewhere");
  return newest ? newest->state : json();
}
json config_of(const json& state) {
  const json* const config = state.is_object() ? find_value(state, "config") : nullptr;
  return config == nullptr ? json() : *config;
}

/// A run in a folder of take_over.
struct EarlierRun {
  std::string folder;
  json state, config;
  int64_t step = 0;
  bool taken = false;
};

/// In the order of take_over, but most steps first.
std::vector<EarlierRun> runs_to_reuse(const Study& study) {
  std::vector<EarlierRun> found;
  for (const std::string& parent : study.take_over) {
    std::error_code failure;
    std::vector<std::string> folders;
    for (fs::directory_iterator it(parent, failure), end; !failure && it != end;
         it.increment(failure)) {
      std::error_code ignored;
      if (it->is_directory(ignored)) folders.push_back(it->path().string());
    }
    std::sort(folders.begin(), folders.end());
    if (failure == std::errc::no_such_file_or_directory) continue;  // nothing to reuse yet
    if (failure) {
      throw system_error(ExitCode::io, parent, "list the folder", failure.value(),
                         "check the path, or remove it from take_over");
    }
    for (const std::string& folder : folders) {
      json state = state_of_newest(folder), config = config_of(state);
      if (!config.is_object()) continue;
      found.push_back(
          {folder, std::move(state), std::move(config), newest_step(folder).value_or(0)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

/// The keys that make two runs train or validate differently: those that a resumed run must not
/// change, and those of init_from and the data.
std::vector<std::string> differences(const json& before, const json& now) {
  std::vector<std::string> keys = keys_refused_on_resume(before, now, {});
  for (const std::string& path : changed_keys(before, now)) {
    for (const char* const tree : {"data.train", "data.val", "init_from"}) {
      const bool within = path == tree || path.starts_with(std::string(tree) + ".");
      if (is_newer_default(path, before, now)) continue;
      if (within && find_value(before, tree) != nullptr) keys.push_back(path);
    }
  }
  return keys;
}

bool is_same_run(const json& before, const json& now) {
  return before.is_object() && differences(before, now).empty();
}

/// Moves runs that have not begun to folders of take_over. Runs that are done there go first, so
/// that runs that differ only in what they measure do not take each other's folders.
void take_over(const Study& study, std::vector<StudyRun>* runs) {
  std::vector<EarlierRun> others = runs_to_reuse(study);
  if (others.empty()) return;
  std::vector<StudyRun*> to_do;
  for (StudyRun& run : *runs) {
    if (state_of(study, run).kind == RunState::Kind::to_do) to_do.push_back(&run);
  }
  for (const bool done : {true, false}) {
    for (StudyRun* const run : to_do) {
      for (EarlierRun& other : others) {
        if (run->reused || other.taken || !is_same_run(other.config, run->resolved)) continue;
        if (is_of_other_data(run->inputs, other.state)) continue;
        StudyRun there = *run;
        there.folder = there.config.out_dir = other.folder;
        there.reused = true;
        there.resolved = resolved_json(there.config);
        if (done && state_of(study, there).kind != RunState::Kind::done) continue;
        *run = std::move(there);
        other.taken = true;
      }
    }
  }
}

/// Throws Error unless every run has the metric that the study chooses by, and each measure matches
/// a metric of some run.
void check_metrics(const Study& study, const std::vector<StudyRun>& runs) {
  const bool chooses = std::any_of(study.axes.begin(), study.axes.end(),
                                   [](const StudyAxis& a) { return a.use == AxisUse::choose; });
  std::vector<std::string> all;
  for (const StudyRun& run : runs) {
    const std::vector<std::string> own = metrics_at_end(run.config);
    if (chooses && std::find(own.begin(), own.end(), study.choose_metric) == own.end()) {
      throw Error(ExitCode::config, study.file + ": choose.metric",
                  "a metric of every run; " + run.label + " has " + join(own),
                  "\"" + study.choose_metric + "\"",
                  did_you_mean(study.choose_metric, own,
                               "choose one of them, or measure it with eval.tasks"));
    }
    for (const std::string& metric : own) {
      if (std::find(all.begin(), all.end(), metric) == all.end()) all.push_back(metric);
    }
  }
  const bool high = higher_is_better(metric_base_name(study.choose_metric));
  if (chooses && study.choose_highest != high) {
    const std::string right = high ? "max" : "min";
    throw Error(ExitCode::config, study.file + ": choose.mode",
                right + " with " + study.choose_metric + ", where " + (high ? "higher" : "lower") +
                    " is better",
                high ? "\"min\"" : "\"max\"", "set it to " + right);
  }
  for (const std::string& pattern : study.measures) {
    const auto matches = [&](const std::string& metric) {
      return fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
    };
    if (std::any_of(all.begin(), all.end(), matches)) continue;
    throw Error(ExitCode::config, study.file + ": measures",
                "patterns that match metrics of the runs: " + join(all), "\"" + pattern + "\"",
                "correct it, or measure it with eval.tasks or eval.lengths");
  }
}

/// The configuration that the study varies.
ConfigDocument base_of(const Study& study) {
  try {
    return read_config_document(study.config);
  } catch (const Error& e) {
    if (e.code() != ExitCode::io) throw;
    throw e.as(ExitCode::io, e.where(), "correct \"config\" of " + study.file);
  }
}

std::string diverged_file(const Study& study, const StudyRun& run) {
  return study.out_dir + "/diverged/" + run.slug + ".json";
}

}  // namespace

void check_run_count(const Study& study) {
  int64_t runs = 1;
  for (const StudyAxis& axis : study.axes) {
    const int64_t values = std::ssize(axis.values);
    if (values <= kMostRuns / runs) {
      runs *= values;
      continue;
    }
    throw Error(
        ExitCode::config, study.file + ": axes", "at most " + std::to_string(kMostRuns) + " runs",
        "more, from the axis \"" + axis.name + "\" on", "leave values out, or write two studies");
  }
}

std::vector<StudyRun> runs_of(const Study& study) {
  const ConfigDocument base = base_of(study);
  std::vector<StudyRun> runs;
  RunInputsReader reader;
  std::map<std::string, std::string> labels;             // run label by slug
  std::map<json, std::string> configs;                   // run label by configuration
  std::map<std::string, std::vector<std::string>> rows;  // the labels that make each row
  for (const Combination& choice : combinations(study)) {
    StudyRun run = run_of(study, base, choice);
    const auto [other, is_new] = labels.emplace(run.slug, run.label);
    if (!is_new) {
      throw Error(ExitCode::config, study.file + ": axes",
                  "labels that differ in letters and digits, which name folders",
                  "\"" + other->second + "\" and \"" + run.label + "\"", "change one of them");
    }
    if (run.slug.size() > kLongestName || run.slug.find_first_not_of('.') == std::string::npos) {
      throw Error(ExitCode::config, study.file + ": axes",
                  "labels that name a folder, of at most " + std::to_string(kLongestName) +
                      " letters and digits together",
                  "\"" + run.label + "\"", "shorten them");
    }
    run.resolved = resolved_json(run.config);
    run.inputs = reader.read(run.config, run.resolved);
    json anonymous = run.resolved;
    anonymous.erase("name");
    anonymous.erase("out_dir");
    if (const auto [same, is_only] = configs.emplace(std::move(anonymous), run.label); !is_only) {
      throw Error(ExitCode::config, study.file + ": axes", "values that make different runs",
                  "\"" + same->second + "\" and \"" + run.label + "\" of the same configuration",
                  "remove one of them");
    }
    std::vector<std::string> parts = row_labels(study, choice);
    if (const auto [row, is_new_row] = rows.emplace(run.row, parts); row->second != parts) {
      throw Error(ExitCode::config, study.file + ": axes", "labels that make different rows",
                  "two ways to make the row \"" + run.row + "\"", "change a label");
    }
    runs.push_back(std::move(run));
  }
  if (!study.reference.empty() && rows.count(study.reference) == 0) {
    std::vector<std::string> known;
    for (const auto& [row, unused] : rows) known.push_back(row);
    throw Error(ExitCode::config, study.file + ": reference", "a row of the table: " + join(known),
                "\"" + study.reference + "\"", did_you_mean(study.reference, known, ""));
  }
  check_metrics(study, runs);
  take_over(study, &runs);
  return runs;
}

namespace {

RunState state_in_files(const Study& study, const StudyRun& run) {
  using Kind = RunState::Kind;
  RunState state;
  std::error_code ignored;
  const std::string diverged = diverged_file(study, run);
  if (fs::exists(diverged, ignored)) {
    const JsonSource source = {diverged, ExitCode::io, "remove it"};
    const json note =
        parse_json(InputFile(diverged, source.code, source.remedy).text(kMostTextBytes), source);
    const json* const message = find_value(note, "message");
    if (message == nullptr || !message->is_string()) {
      throw Error(ExitCode::io, diverged, "the note of a run that has diverged", "another file",
                  "remove it: the run is trained again");
    }
    if (is_same_run(note.value("config", json()), run.resolved)) {
      return {.kind = Kind::diverged, .message = message->get<std::string>()};
    }
  }
  if (!fs::is_directory(run.folder, ignored)) return state;
  if (const auto step = newest_step(run.folder)) {
    state = {.kind = Kind::begun, .step = *step};
    json newest;
    try {
      newest = state_of_newest(run.folder);
    } catch (const Error& e) {
      // Damaged: the run itself continues from an earlier one, or reports why it cannot.
      if (e.code() != ExitCode::checkpoint) throw;
    }
    const json config = config_of(newest);
    std::vector<std::string> others =
        config.is_object() ? differences(config, run.resolved) : std::vector<std::string>();
    if (others.empty() && config.is_object() && is_of_other_data(run.inputs, newest)) {
      others.emplace_back("data.train");
    }
    if (!others.empty()) {
      state.kind = Kind::other;
      state.message = run.folder + " has a run with another " + join(others) +
                      ": remove it, or choose another out_dir";
      return state;
    }
  }
  const Results results(run.folder + "/" + kResultsFile);
  if (!results.complete()) return state;
  const json before = with_current_names(json::parse(results.config().dump()));
  const auto same = [&](const char* path) {
    const json *const a = find_value(before, path), *const b = find_value(run.resolved, path);
    return a != nullptr && b != nullptr && *a == *b;
  };
  if (is_same_run(before, run.resolved) && same("eval") && same("checkpoint.best") &&
      same("train.stop_at") && is_measured_on(run.inputs, results)) {
    state.kind = Kind::done;
  }
  return state;
}

}  // namespace

RunState state_of(const Study& study, const StudyRun& run) {
  try {
    return state_in_files(study, run);
  } catch (const Error& e) {  // affects only this run
    return {RunState::Kind::damaged, 0, e.what(), e.code()};
  }
}

void record_diverged(const Study& study, const StudyRun& run, const std::string& message) {
  make_folders(study.out_dir + "/diverged");
  AtomicFile file(diverged_file(study, run));
  file.write(nlohmann::ordered_json{{"message", message}, {"config", run.resolved}}.dump(2) + "\n");
  file.commit();
}

std::string config_file(const Study& study, const StudyRun& run) {
  return study.out_dir + "/configs/" + run.slug + ".json";
}

std::string log_file(const Study& study, const StudyRun& run) {
  return study.out_dir + "/logs/" + run.slug + ".log";
}

}  // namespace bamtrain
