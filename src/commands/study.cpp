// bamtrain study: trains the runs of a study and tabulates their results.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "commands/backend.h"
#include "commands/command.h"
#include "core/durable_file.h"
#include "core/input_file.h"
#include "core/json.h"
#include "core/option_value.h"
#include "core/standard_output.h"
#include "data/shard_set.h"
#include "model/parameters.h"
#include "ops/cuda/cuda.h"
#include "record/progress.h"
#include "run/peak_matmul.h"
#include "run/train.h"
#include "study/page.h"
#include "study/run_time.h"
#include "study/runner.h"
#include "study/table.h"

namespace bamtrain {

namespace {

struct StudyArguments {
  std::string file;
  bool dry_run = false;
  int64_t jobs = 0;  // 0: one per GPU, or one
};

/// The GPUs that child processes may use, as CUDA_VISIBLE_DEVICES names them; empty if no run uses
/// one.
std::vector<std::string> gpus_of(const std::vector<StudyRun>& runs) {
  std::vector<std::string> gpus;
#ifdef BAMTRAIN_CUDA
  const bool used = std::any_of(runs.begin(), runs.end(), [](const StudyRun& r) {
    return r.config.device != DeviceKind::cpu;
  });
  if (!used) return gpus;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream names(visible ? visible : "");
  for (std::string name; std::getline(names, name, ',');) gpus.push_back(name);
  const auto count = static_cast<size_t>(cuda_devices());
  if (gpus.size() < count) {
    for (size_t i = gpus.size(); i < count; ++i) gpus.push_back(std::to_string(i));
  }
  gpus.resize(count);
#else
  static_cast<void>(runs);
#endif
  return gpus;
}

double flops_of(const StudyRun& run) {
  const RunConfig& c = run.config;
  const ParameterLayout layout(c.model, c.data.sequence_length);
  return flops_per_token(c.model, layout, c.data.sequence_length) *
         static_cast<double>(c.train.tokens_per_step) * static_cast<double>(last_step(c.train));
}

/// The training lengths of the runs.
std::vector<int64_t> trained_lengths(const std::vector<StudyRun>& runs) {
  std::vector<int64_t> lengths;
  for (const StudyRun& run : runs) {
    int64_t T = 0;
    for (const DataSource& s : run.config.data.train.list) {
      const bool drawn = s.task && !s.task->info->of_file;
      T = std::max(T, drawn ? s.task->lengths.longest : run.config.data.sequence_length);
    }
    if (std::find(lengths.begin(), lengths.end(), T) == lengths.end()) lengths.push_back(T);
  }
  return lengths;
}

/// Throws Error naming the first run to train whose data cannot be opened, before other runs are
/// trained in vain.
void check_data(const Study& study, const std::vector<StudyRun>& runs) {
  std::set<std::pair<std::string, int64_t>> opened;
  const auto open = [&](const StudyRun& run, const char* key, const std::string& path) {
    const int64_t vocab = run.config.model.vocab;
    if (path.empty() || !opened.insert({path, vocab}).second) return;
    try {
      ShardSet::open(path, vocab);
    } catch (const Error& e) {
      throw e.at(study.file + ": " + run.label + ": " + key + ": " + e.where());
    }
  };
  for (const StudyRun& run : runs) {
    const RunState::Kind kind = state_of(study, run).kind;
    if (kind != RunState::Kind::to_do && kind != RunState::Kind::begun) continue;
    for (const DataSource& source : run.config.data.train.list) {
      if (!run.inputs.training.is_null()) break;  // all sources were opened
      open(run, "data.train", source.path);
      if (!source.task || !source.task->options.has("path")) continue;
      const InputFile readable(source.task->options.text("path"), ExitCode::io,
                               "correct " + study.file + ": " + run.label + ": data.train.path");
    }
    open(run, "data.val", run.config.data.val);
  }
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

/// A file that names the study that a folder belongs to.
constexpr const char* kStudyFile = "/study.json";
constexpr int64_t kMostStudyFileBytes = 1 << 20;

/// Throws Error (ExitCode::config) if the folder has another study's tables.
void check_folder(const Study& study) {
  const std::string path = study.out_dir + kStudyFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const JsonSource source = {path, ExitCode::io, "remove it"};
  const nlohmann::json note =
      parse_json(InputFile(path, source.code, source.remedy).text(kMostStudyFileBytes), source);
  const nlohmann::json* const name = note.is_object() ? find_value(note, "name") : nullptr;
  if (name != nullptr && *name == study.name) return;
  throw Error(ExitCode::config, study.file + ": out_dir",
              "an empty folder, or one of the study \"" + study.name + "\"",
              study.out_dir + " of " + (name ? "the study " + name->dump() : "another study"),
              "choose another folder; if the study was renamed, remove " + path);
}

/// Throws Error (ExitCode::config) for the first run whose folder has another configuration's run.
/// It would fail anyway, and tables without it would replace those with it.
void check_others(const Study& study, const std::vector<StudyRun>& runs) {
  for (const StudyRun& run : runs) {
    const RunState state = state_of(study, run);
    if (state.kind != RunState::Kind::other) continue;
    throw Error(ExitCode::config, study.file + ": " + run.label,
                "an empty folder, or one of this run", state.message,
                "nothing was written; --dry-run lists all such runs");
  }
}

/// A lock held by one process at a time, so that tables of more runs come after those of fewer.
class TablesLock {
 public:
  explicit TablesLock(const std::string& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (folder_ >= 0 && ::flock(folder_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  TablesLock(const TablesLock&) = delete;
  TablesLock& operator=(const TablesLock&) = delete;
  ~TablesLock() {
    if (folder_ >= 0) ::close(folder_);
  }

 private:
  int folder_;
};

/// Whether an earlier call trained the run with another configuration; the tables then show that
/// one.
bool was_of_another_configuration(const Study& study, const StudyRun& run) {
  constexpr int64_t kMostConfigBytes = int64_t{1} << 26;
  const std::string path = config_file(study, run);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const std::string text = InputFile(path, ExitCode::io, "remove it").text(kMostConfigBytes);
  return nlohmann::json::parse(text, nullptr, false) != nlohmann::json(run.resolved);
}

/// Writes the tables of a study repeatedly.
class StudyTables {
 public:
  /// Construct before a run of this call begins.
  StudyTables(const Study& study, const std::vector<StudyRun>& runs)
      : study_(study),
        runs_(runs),
        of_these_(std::none_of(runs.begin(), runs.end(), [&](const StudyRun& run) {
          return was_of_another_configuration(study, run);
        })) {}

  /// Writes the tables of the current results. Keeps existing tables with more runs if the results
  /// of one of them are missing or damaged, and reports that once per run. Throws Error
  /// (ExitCode::io).
  void write() {
    const TablesLock lock(study_.out_dir);
    const StudyTable table = table_of(study_, runs_);
    if (const StudyRun* const lost = lost_run(table)) {
      if (told_.insert(lost->label).second) {
        print_status(
            fmt::format("tables not updated: the results of {} are missing or damaged (to drop the "
                        "run from the tables, remove {})\n",
                        lost->label, runs_file()));
      }
      return;
    }
    write_file(study_.out_dir + "/table.md", markdown(table));
    write_file(study_.out_dir + "/table.csv", csv(table));
    write_file(study_.out_dir + "/table.tex", latex(table));
    write_file(runs_file(), runs_csv(table));
    write_file(study_.out_dir + "/study.html",
               study_page(table, trained_lengths(runs_), page_runs(study_, runs_, table)));
  }

 private:
  std::string runs_file() const { return study_.out_dir + "/runs.csv"; }

  /// If the existing tables have more runs than `now`: the first of these runs whose results are
  /// missing or damaged. Otherwise null.
  const StudyRun* lost_run(const StudyTable& now) const {
    constexpr int64_t kMostTableBytes = int64_t{1} << 30;
    std::error_code ignored;
    if (!of_these_ || !std::filesystem::is_regular_file(runs_file(), ignored)) return nullptr;
    const std::set<std::string> before =
        run_cells_in(InputFile(runs_file(), ExitCode::io, "remove it").text(kMostTableBytes));
    std::set<std::string> over(now.diverged.begin(), now.diverged.end());
    for (const TableRun& run : now.runs) over.insert(run.label);
    size_t runs = 0;
    const StudyRun* lost = nullptr;
    for (const StudyRun& run : runs_) {
      if (before.count(run_cells(run.row, run.label)) == 0) continue;
      ++runs;
      if (lost != nullptr || over.count(run.label) > 0) continue;
      const bool there = std::filesystem::exists(run.folder + "/" + kResultsFile, ignored);
      if (!there || state_of(study_, run).kind == RunState::Kind::damaged) lost = &run;
    }
    return runs > now.runs.size() ? lost : nullptr;
  }

  const Study& study_;
  const std::vector<StudyRun>& runs_;
  bool of_these_;               // whether the existing tables are of these configurations
  std::set<std::string> told_;  // labels of lost runs already reported
};

/// Throws Error (ExitCode::io) for the first folder that the study needs and cannot create.
void check_places(const Study& study, const std::vector<StudyRun>& runs) {
  std::vector<std::string> folders = {study.out_dir};
  for (const char* part : {"configs", "logs", "diverged"}) {
    folders.push_back(study.out_dir + "/" + part);
  }
  bool to_do = false;  // finished runs may be in folders that are no longer writable
  for (const StudyRun& run : runs) {
    const RunState::Kind kind = state_of(study, run).kind;
    to_do |= kind == RunState::Kind::to_do || kind == RunState::Kind::begun;
    if (kind == RunState::Kind::to_do) folders.push_back(run.folder);
  }
  if (!to_do) return;
  for (const std::string& folder : folders) {
    try {
      require_folders_can_be_made(folder);
    } catch (const Error& e) {
      throw e.or_else("change " + study.file + ": out_dir");
    }
  }
}

/// "1 run", "6 runs".
std::string number_of(const std::vector<StudyRun>& runs) {
  return fmt::format("{} run{}", runs.size(), runs.size() == 1 ? "" : "s");
}

/// Prints the number of runs, their states and the estimated time left. Returns the exit code.
int print_plan(const Study& study, const std::vector<StudyRun>& runs, int jobs) {
  double flops_done = 0, seconds_done = 0, flops_open = 0;
  int to_do = 0, done = 0, diverged = 0, other = 0, damaged = 0;
  for (const StudyRun& run : runs) {
    const RunState state = state_of(study, run);
    const double flops = flops_of(run);
    const auto steps = static_cast<double>(last_step(run.config.train));
    std::string text;
    switch (state.kind) {
      case RunState::Kind::done:
        ++done;
        if (const auto seconds = seconds_of(run); seconds && *seconds > 0) {
          flops_done += flops;
          seconds_done += *seconds;
        }
        text = "done";
        break;
      case RunState::Kind::diverged:
        ++diverged;
        text = "diverged: " + state.message;
        break;
      case RunState::Kind::other:
        ++other;
        text = state.message;
        break;
      case RunState::Kind::damaged:
        ++damaged;
        text = "damaged: " + state.message;
        break;
      case RunState::Kind::begun:
        ++to_do;
        flops_open += flops * std::max(0.0, 1 - static_cast<double>(state.step) / steps);
        text = state.step < last_step(run.config.train)
                   ? fmt::format("at step {} of {}", state.step, last_step(run.config.train))
                   : "trained, not measured yet";
        break;
      case RunState::Kind::to_do:
        ++to_do;
        flops_open += flops;
        text = "to do";
        break;
    }
    print_status(fmt::format("  {:<48} {}\n", run.label, text));
  }
  const auto some = [](int n, const char* what) {
    return n > 0 ? fmt::format(", {} {}", n, what) : "";
  };
  print_status(fmt::format("{}: {} done, {} to do{}{}{}, {} at a time\n", number_of(runs), done,
                           to_do, some(diverged, "diverged"),
                           some(other, "of another configuration"), some(damaged, "damaged"),
                           jobs));
  const int code = other > 0     ? static_cast<int>(ExitCode::config)
                   : damaged > 0 ? static_cast<int>(ExitCode::io)
                                 : 0;
  if (to_do == 0) return code;
  if (seconds_done > 0) {
    print_status(fmt::format(
        "about {} of training left, at the speed of the finished runs\n",
        format_duration(flops_open * seconds_done / flops_done / std::min(jobs, to_do))));
    return code;
  }
  const StudyRun& first = runs.front();
  if (make_plan_without_device(first.config.device)) {
    print_status("training time is unknown: no GPU here to measure\n");
    return code;
  }
  const auto backend = make_backend(first.config.device, first.config.train.precision, 0);
  const double rate = measure_peak_matmul(*backend, activation_dtype(first.config.train.precision));
  // On a CPU, runs share the machine's cores; each GPU run has its own GPU.
  const double together = backend->memory().on_host() ? 1 : std::min(jobs, to_do);
  print_status(
      fmt::format("at least {} of training, at the peak matmul throughput ({:.4g} FLOP/s)\n",
                  format_duration(flops_open / rate / together), rate));
  return code;
}

int run(const StudyArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // keep training if nobody reads the output
  const Study study = read_study(arguments.file);
  check_folder(study);
  const std::vector<StudyRun> runs = runs_of(study);
  check_data(study, runs);
  RunnerSettings settings;
  settings.gpus = gpus_of(runs);
  settings.jobs = arguments.jobs > 0 ? static_cast<int>(arguments.jobs)
                                     : std::max(1, static_cast<int>(settings.gpus.size()));
  // If there are more jobs than GPUs, they share the GPUs in turn.
  for (size_t i = 0;
       !settings.gpus.empty() && settings.gpus.size() < static_cast<size_t>(settings.jobs); ++i) {
    settings.gpus.push_back(settings.gpus[i]);
  }
  print_status(fmt::format("study {} in {}\n", study.name, study.out_dir));
  if (!study.take_over.empty()) {
    const auto taken =
        std::count_if(runs.begin(), runs.end(), [](const StudyRun& r) { return r.reused; });
    print_status(
        fmt::format("{} of {} runs reused from the folders of take_over\n", taken, runs.size()));
  }
  if (arguments.dry_run) {
    check_places(study, runs);
    return print_plan(study, runs, settings.jobs);
  }
  check_others(study, runs);
  make_folders(study.out_dir);
  write_file(study.out_dir + kStudyFile, nlohmann::json{{"name", study.name}}.dump() + "\n");
  StudyTables tables(study, runs);
  const RunnerResult result = run_study(study, runs, settings, [&] { tables.write(); });
  const int over = result.done + result.diverged + result.failed;
  print_status(
      fmt::format("{}: {} done, {} diverged, {} failed{}\ntable {}/table.md\npage {}/study.html\n",
                  number_of(runs), result.done, result.diverged, result.failed,
                  result.interrupted ? fmt::format(", {} left", std::ssize(runs) - over) : "",
                  study.out_dir, study.out_dir));
  if (result.interrupted) return static_cast<int>(ExitCode::interrupted);
  return result.exit_code;
}

}  // namespace

Command study_command(CLI::App& app) {
  const auto arguments = std::make_shared<StudyArguments>();
  CLI::App* options = app.add_subcommand("study", "train a grid of runs and tabulate the results");
  options->add_option("STUDY", arguments->file, "the study (JSON; see bamtrain help study)")
      ->required();
  options->add_flag("--dry-run", arguments->dry_run,
                    "list the runs with their state, and estimate the remaining time");
  take_integers(options->add_option("--jobs", arguments->jobs,
                                    "concurrent runs (default: one per GPU, or one); on a CPU they "
                                    "share its threads"),
                1, 1024);
  return {options, [arguments] { return run(*arguments); }};
}

}  // namespace bamtrain
