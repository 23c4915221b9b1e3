// The memory, time and data that a run needs, before it starts.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "core/checked.h"
#include "core/durable_file.h"
#include "core/utf8.h"
#include "core/with_commas.h"
#include "eval/perplexity.h"
#include "model/parameter_counts.h"
#include "record/progress.h"
#include "run/host_state.h"
#include "run/init_from.h"
#include "run/init_from_tokenizer.h"
#include "run/peak_matmul.h"
#include "run/resume.h"
#include "run/train.h"
#include "train/trainer.h"
#include "train/training_data.h"

namespace bamtrain {

using G = ParameterGroup;

double attention_flops_per_token(const ModelConfig& c, int64_t T) {
  double pairs = 0;
  for (int64_t l = 0; l < c.layers; ++l) {
    const int64_t own = layer_window(c, l, T), window = own > 0 ? std::min(own, T) : T;
    // Row i sees min(i + 1, window) keys.
    pairs += static_cast<double>(window) *
             (static_cast<double>(T - window) + static_cast<double>(window + 1) / 2);
  }
  return 12.0 * static_cast<double>(c.heads * c.head_dim()) * pairs / static_cast<double>(T);
}

double flops_per_token(const ModelConfig& c, const ParameterLayout& layout, int64_t T) {
  double matrices = static_cast<double>(layout.count({G::matrix}));
  if (c.tied) matrices += static_cast<double>(c.vocab * c.width);
  return 6 * matrices + attention_flops_per_token(c, T);
}

namespace {

/// Memory of the evaluation at eval.lengths and of eval.tasks, which runs after the steps' memory
/// is freed; 0 if there is none.
int64_t evaluation_bytes(const RunConfig& c, int64_t tasks, Backend& backend) {
  if (c.eval.lengths.empty()) return tasks;
  const ScoredModel model = {
      c.model, c.data.sequence_length, backend, activation_dtype(c.train.precision), {}};
  const int64_t master_weights = ParameterLayout(c.model, c.data.sequence_length).elements() *
                                 static_cast<int64_t>(size_of(Dtype::f32));
  return std::max(tasks, master_weights + perplexity_bytes(model, c.eval.lengths));
}

/// Host memory per parameter other than its values: names and places in plans, and file headers
/// while a checkpoint is written. Measured with 4,096 layers, 36,866 parameters: 35 MiB before the
/// first checkpoint, 120 MiB with it.
int64_t name_bytes(const ParameterLayout& layout) {
  constexpr int64_t kBytesOfAParameter = 3400;
  return kBytesOfAParameter * std::ssize(layout.all());
}

/// Memory of the report beyond that of a checkpoint, since the two are never made at the same time.
int64_t report_bytes(int64_t all, const ParameterLayout& layout) {
  constexpr int64_t kOfACheckpoint = 2400;  // part of name_bytes
  return std::max<int64_t>(all - kOfACheckpoint * std::ssize(layout.all()), 0);
}

/// The program and its libraries, measured with a run of a few kilobytes on a CPU.
constexpr int64_t kProgramBytes = int64_t{27} << 20;

/// "0.25", "438", "24000"; no exponent.
std::string epochs_text(double epochs) {
  if (epochs < 1e-3) return "under 0.001";
  return epochs < 100 ? fmt::format("{:.3g}", epochs) : fmt::format("{:.0f}", epochs);
}

/// Prints a line per source: its content, how often `windows` windows see it and, in a mixture, its
/// share of them.
void print_training_data(const Sequences& data, int64_t windows) {
  const std::vector<Source>& sources = data.shard_sources();
  std::vector<double> weights;
  for (const Source& s : sources) weights.push_back(s.weight);
  for (const TaskSource& t : data.tasks()) weights.push_back(t.weight);
  const std::vector<double> shares = shares_of(weights);
  for (size_t i = 0; i < sources.size(); ++i) {
    const ShardSet& shards = *sources[i].shards;
    const std::string label = weights.size() > 1 ? printable(shards.source()) : "training";
    fmt::print("  {:<28} {:>12} tokens in {} shards", label, with_commas(shards.tokens()),
               shards.size());
    if (weights.size() > 1) fmt::print(", {:.4g} % of the windows", 100 * shares[i]);
    const double epochs = static_cast<double>(windows) * shares[i] /
                          static_cast<double>(data.shards()->windows_per_epoch(i));
    fmt::print(", {} epochs\n", epochs_text(epochs));
  }
  for (size_t i = 0; i < data.tasks().size(); ++i) {
    const Task& task = *data.tasks()[i].task;
    const double share = shares[sources.size() + i];
    if (task.count() > 0) {
      fmt::print(
          "  {:<28} {:>12} examples of up to {} inputs, {:.4g} % of the sequences, {} epochs\n",
          task.info().name, task.count(), task.most_inputs(), 100 * share,
          epochs_text(static_cast<double>(windows) * share / static_cast<double>(task.count())));
      continue;
    }
    fmt::print("  {:<28} {:>12} to {} source tokens, {:.4g} % of the sequences\n", task.info().name,
               task.lengths().shortest, task.lengths().longest, 100 * share);
  }
}

/// Prints the number of documents of each source, from its manifest or else from its first tokens.
/// Prints nothing if the id that begins documents is unknown.
void print_documents(const std::vector<Source>& sources, std::optional<int64_t> configured) {
  for (const Source& s : sources) {
    const ShardSet& shards = *s.shards;
    const std::optional<int64_t> start = shards.document_start(configured);
    if (!start) continue;
    const std::optional<Manifest>& m = shards.manifest();
    const bool told = m && m->document_start && std::ssize(m->shards) == shards.size();
    const bool all = told || shards.tokens() <= kSearchedTokens;
    fmt::print("  {:<28} {:>12} begin with id {}{}{}\n", "documents",
               with_commas(told ? m->documents : shards.count(*start, kSearchedTokens)), *start,
               all ? "" : fmt::format(", in the first {} tokens", with_commas(kSearchedTokens)),
               sources.size() > 1 ? ", of " + printable(shards.source()) : "");
  }
}

/// The Error of this code that f() throws; empty if it succeeds.
std::optional<Error> error_of(ExitCode code, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.code() != code) throw;
    return e;
  }
  return std::nullopt;
}

void print_mebibytes(const char* what, int64_t bytes) {
  if (bytes == 0) return;
  fmt::print("  {:<28} {:>10.1f} MiB\n", what, static_cast<double>(bytes) / (1 << 20));
}

/// The most that a process sends in a step.
void print_messages(const Trainer& trainer, Dtype A, int processes) {
  const GroupReduction& r = trainer.reduction();
  const Ownership& own = trainer.state().ownership();
  const int64_t exact = trainer.layout().exact_elements();
  int64_t gradients = 0, weights = 0;  // in bytes
  for (int rank = 0; rank < processes; ++rank) {
    int64_t reduced = 0, gathered = 0;
    for (const FlatRange& segment : own.segments()) {
      const int64_t sent = r.elements_gathered(rank, segment.size());
      reduced += r.elements_reduced(rank, segment.size()) * size_of(Dtype::f32);
      gathered += sent * size_of(own.divided() && segment.begin >= exact ? A : Dtype::f32);
    }
    gradients = std::max(gradients, reduced + (own.divided() ? 0 : gathered));
    weights = std::max(weights, own.divided() ? gathered : 0);
  }
  fmt::print("  {:<28} {:>10.1f} MiB by a process, {}\n", "gradients sent",
             static_cast<double>(gradients) / (1 << 20),
             r.halves() ? "by recursive halving" : "at most, directly to the others");
  print_mebibytes("weights sent", weights);
}

}  // namespace

void dry_run(const TrainRun& run, Backend& backend, int processes) {
  const RunConfig& c = run.config;
  Trainer trainer(c, backend, 0, processes, Trainer::Data::absent);
  const ParameterLayout& layout = trainer.layout();
  const auto note = [](const std::string& text) { fmt::print("{}\n", printable(text)); };
  const Warn warn = [&](const std::string& text) { note("warning: " + text); };
  try {
    require_folders_can_be_made(c.out_dir);
  } catch (const Error& e) {
    throw e.or_else("change out_dir");
  }
  const std::optional<Checkpoint> checkpoint = find_checkpoint(c, note);
  if (checkpoint) {
    note(fmt::format("resumes from {} at step {}", checkpoint->folder, checkpoint->step));
  }
  const bool begins = !checkpoint && !c.init_from.folder.empty();
  if (begins) {
    check_init_from(run, layout, warn);
    note("starts from the weights in " + c.init_from.folder);
  }
  const Dtype A = activation_dtype(c.train.precision);
  const double flops = flops_per_token(c.model, layout, c.data.sequence_length);
  const int64_t end = last_step(c.train);
  const int64_t steps = std::max<int64_t>(end - (checkpoint ? checkpoint->step : 0), 0);
  const double tokens = static_cast<double>(c.train.tokens_per_step) * static_cast<double>(steps);
  // The plan is useful even on another processor than the run's, or without its GPU.
  double rate = 0;
  const std::optional<Error> of_rate = error_of(ExitCode::device, [&] {
    if (run.has_device) rate = measure_peak_matmul(backend, A);
  });
  const TaskMeasures::Memory tasks =
      run.tasks != nullptr ? run.tasks->memory(backend) : TaskMeasures::Memory{};
  const int64_t saved = HostState::bytes(trainer);
  const int64_t evaluation = evaluation_bytes(c, tasks.after, backend), beside = tasks.beside;
  // Users who have to lower sizes need to see them, so this Error is thrown at the end.
  const std::optional<Error> of_memory = error_of(ExitCode::device, [&] {
    trainer.check_memory(beside + (backend.memory().on_host() ? name_bytes(layout) + saved : 0));
    backend.memory().check_fits(evaluation);
  });
  fmt::print("parameters\n");
  for (const auto& [part, count] : parameter_counts(layout)) {
    fmt::print("  {:<28} {:>12}\n", part, with_commas(count));
  }
  fmt::print("a step\n");
  fmt::print("  {:<28} {:>12}\n", "tokens", with_commas(c.train.tokens_per_step));
  fmt::print("  {:<28} {:>12} in {} lanes\n", "sequences", trainer.sequences_per_step(),
             trainer.groups());
  if (processes > 1 && c.train.reduction == Reduction::tree) print_messages(trainer, A, processes);
  fmt::print("  {:<28} {:>12.4g}\n", "FLOPs per token", flops);
  fmt::print("memory of one process\n{}", trainer.arena().table());
  if (backend.memory().on_host()) print_mebibytes("+ program", kProgramBytes);
  print_mebibytes("+ tensor names", name_bytes(layout));
  print_mebibytes("+ read-ahead", trainer.read_ahead_bytes());
  print_mebibytes("+ samples", run.sample_bytes);
  print_mebibytes("+ report", report_bytes(run.report_bytes, layout));
  print_mebibytes("+ tasks", beside);
  print_mebibytes("+ saving (rank 0's host)", saved);
  print_mebibytes("final evaluation", evaluation);
  fmt::print("time\n");
  if (rate > 0) {
    fmt::print("  {:<28} {:>12.4g} FLOP/s (measured: {}, {})\n", "peak matmul throughput", rate,
               backend.name(), name_of(A));
    fmt::print("  {:<28} {:>12} for {} steps on {} {} at that rate\n", "at least",
               format_duration(tokens * flops / rate / processes), steps, processes,
               processes == 1 ? "process" : "processes");
  } else {
    fmt::print("  {:<28} {}\n", "unknown",
               of_rate ? "no matmul, see the error below" : "no GPU here to measure");
  }
  const std::optional<Error> of_data = error_of(ExitCode::data, [&] {
    trainer.open_data();
    fmt::print("data\n");
    print_training_data(trainer.training_data(), end * trainer.sequences_per_step());
    const std::vector<Source>& sources = trainer.training_data().shard_sources();
    print_documents(sources, c.data.document_start);
    if (trainer.document_start()) {
      for (const std::string& text : missing_document_starts(sources, *trainer.document_start())) {
        warn(text);
      }
    }
    fmt::print("  {:<28} {:>12} {}\n", "validation", trainer.validation_sequences(),
               c.data.val_task ? "sequences" : "windows");
    if (begins) check_init_from_tokenizer(c, warn);
  });
  std::optional<Error> wrong;
  for (const std::optional<Error>* e : {&of_memory, &of_rate, &of_data}) {
    if (*e) wrong.emplace(wrong ? wrong->with((*e)->what()) : **e);
  }
  if (wrong) throw Error(*wrong);
  if (checkpoint) check_fits(run, *checkpoint, trainer, note);
}

}  // namespace bamtrain
