#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/checked.h"
#include "core/parallel.h"
#include "core/reduction_tree.h"
#include "dist/together.h"
#include "model/random_positions.h"
#include "ops/host_copy.h"
#include "train/schedule.h"

namespace bamtrain {

namespace {

using Clock = std::chrono::steady_clock;

double in_seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Of a message between devices: long enough for the bandwidth of their connection.
constexpr int64_t kMessageElements = int64_t{4} << 20;

int64_t count_micro_batches(const RunConfig& c) {
  const int64_t per = c.train.micro_batch * c.data.sequence_length;
  if (per <= 0 || c.train.tokens_per_step % per != 0 || c.train.tokens_per_step == 0) {
    throw Error(ExitCode::config, "train.tokens_per_step",
                fmt::format("a multiple of train.micro_batch * data.sequence_length = {}", per),
                std::to_string(c.train.tokens_per_step), "change one of the three");
  }
  return c.train.tokens_per_step / per;
}

/// Takes or checks memory; the Error of a plan that does not fit names the options, if any, that
/// make tables of the prior or the scale longer than a sequence.
template <class F>
void with_table_keys(const RunConfig& c, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.code() != ExitCode::device) throw;
    std::string keys;
    const auto add = [&](const Options& options, const std::string& path) {
      for (const char* option : {"positions", "randomized_length", "lengths"}) {
        if (!options.has(option)) continue;
        if (options.number(option) <= static_cast<double>(c.data.sequence_length)) continue;
        keys += (keys.empty() ? "" : ", ") + path + "." + option;
      }
    };
    const std::vector<PriorChoice>& priors = c.model.attention.prior.pattern;
    for (size_t i = 0; i < priors.size(); ++i) {
      const bool mixed = static_cast<bool>(c.model.attention.prior.mix_of(static_cast<int64_t>(i)));
      add(priors[i].options, "model.attention.prior" +
                                 (priors.size() > 1 ? fmt::format("[{}]", i) : "") +
                                 (mixed ? ".base" : ""));
    }
    add(c.model.attention.scale.options, "model.attention.scale");
    if (keys.empty()) throw;
    throw e.or_else("lower " + keys);
  }
}

std::optional<int64_t> resolve_document_start(const RunConfig& c, const Loader& loader) {
  const bool needed = c.model.attention.document_mask;
  std::optional<int64_t> id;
  for (const Source& s : loader.sources()) {
    id = s.shards->document_start(c.data.document_start);  // the same in all
    if (id || !needed) continue;
    throw Error(
        ExitCode::config, "data.document_start",
        "the id of the token that begins a document, since "
        "model.attention.document_mask is true",
        "neither this key nor a manifest beside the shards of " + s.shards->source(),
        s.shards->document_start_remedy() + "; or set model.attention.document_mask to false");
  }
  return needed ? id : std::nullopt;
}

/// Whether both are the same files, whatever the paths that lead to them.
bool same_files(const ShardSet& a, const ShardSet& b) {
  if (a.size() != b.size()) return false;
  std::error_code ignored;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!std::filesystem::equivalent(a.shard(i).path(), b.shard(i).path(), ignored)) return false;
  }
  return true;
}

std::unique_ptr<Loader> open_loader(const DataSources& data, const RunConfig& c, bool shuffle) {
  std::vector<Source> sources;
  for (const DataSource& s : data.list) {
    const auto shards = std::make_shared<const ShardSet>(ShardSet::open(s.path, c.model.vocab));
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!same_files(*shards, *sources[i].shards)) continue;
      throw Error(ExitCode::config, fmt::format("data.train[{}].path", sources.size()),
                  fmt::format("other shards than those of data.train[{}]", i),
                  fmt::format("\"{}\", the files of \"{}\"", s.path, data.list[i].path),
                  "give them once, with the sum of the weights");
    }
    sources.push_back({shards, s.weight});
  }
  return std::make_unique<Loader>(std::move(sources), c.data.sequence_length, c.seed, shuffle);
}

}  // namespace

NonfiniteStep::NonfiniteStep(const StepResult& r, const std::string& batch)
    : Error(ExitCode::nonfinite, fmt::format("step {}", r.step), "a finite loss and gradient norm",
            fmt::format("loss {}, gradient norm {} in {}", r.loss, r.norm, batch),
            std::isfinite(r.norm)
                ? "lower optimizer.lr and resume from the last checkpoint"
                : "no parameter was changed in this step: lower optimizer.lr or "
                  "optimizer.clip, or look at these windows, and resume from the last checkpoint"),
      result(r) {}

Trainer::Trainer(const RunConfig& config, Backend& backend, int rank, int processes, Data data)
    : config_(config),
      backend_(backend),
      rank_(rank),
      processes_(processes),
      micro_batches_(count_micro_batches(config_)),
      lanes_(config_.train.lanes > 0 ? config_.train.lanes : default_lanes(micro_batches_)),
      tree_((check_process_count(processes, lanes_), lanes_ / processes)),
      model_(config_.model, config_.data.sequence_length, backend,
             activation_dtype(config_.train.precision)),
      optimizer_(config_.optimizer, model_.parameters(), backend),
      position_rng_(config_.seed, "positions") {
  if (micro_batches_ % lanes_ != 0) {
    throw Error(ExitCode::config, "train.lanes",
                fmt::format("a divisor of the {} micro-batches of a step", micro_batches_),
                std::to_string(lanes_), "lower it, or leave it out");
  }
  if (data == Data::opened) open_data();
  const int64_t B = config_.train.micro_batch, T = config_.data.sequence_length;
  const Dtype P = backend_.parameter_dtype();
  arena_.add("weights.masters", &masters_, P, {layout().elements()});
  optimizer_.plan(arena_);
  gradients_.resize(static_cast<size_t>(tree_.buffers()));
  for (Tensor& g : gradients_) arena_.add("gradients.lanes", &g, P, {layout().elements()});
  arena_.add("batch.sums", &sums_, Dtype::f64, {tree_.buffers(), 2});
  arena_.add("batch.unread_sums", &unread_sums_, Dtype::f64, {kUnread, 2});
  if (processes_ > 1 && !backend_.memory().on_host()) {
    arena_.add("gradients.messages", &messages_, P, {PeerLink::kSlots * kMessageElements});
  }
  model_.plan(arena_, B, T, ModelUse::training, config_.train.recompute,
              config_.eval.attention > 0 && !config_.data.val.empty());
}

void Trainer::open_data() {
  loader_ = open_loader(config_.data.train, config_, config_.data.shuffle);
  document_start_ = resolve_document_start(config_, *loader_);
  if (config_.data.val.empty()) return;
  validation_ = open_loader(config_.data.val, config_, false);
  check_validation_shards();
}

void Trainer::check_memory(int64_t beside) const {
  int64_t bytes = checked_add(arena_.total_bytes(), beside, "memory plan");
  if (backend_.memory().on_host()) {
    bytes = checked_add(bytes, read_ahead_bytes(), "memory plan");
  }
  with_table_keys(config_, [&] { backend_.memory().check_fits(bytes); });
}

void Trainer::connect(Communicator& comm) {
  if (processes_ > 1) link_ = backend_.connect(peers_of(comm));
  connected_ = true;
}

void Trainer::commit() {
  require(processes_ == 1 || connected_, "a connection, whose buffers are taken before the plan");
  check_memory(0);
  with_table_keys(config_, [&] { arena_.commit(backend_.memory()); });
  model_.set_masters(masters_);
  const auto N = static_cast<size_t>(config_.train.micro_batch * config_.data.sequence_length);
  windows_.resize(N + static_cast<size_t>(config_.train.micro_batch));
  inputs_.resize(N);
  targets_.resize(N);
  read_sums_.resize(static_cast<size_t>(kUnread * (2 + processes_)));
  waits_.resize(kUnread);
  results_.resize(kUnread);
  if (model_.randomized_positions() > 0) positions_.resize(N);
  for (int64_t l = 0; l < tree_.lanes(); ++l) joins_.push_back(tree_.joins_after(l));
  if (loader_) loader_->reserve_ahead(own_windows());
}

void Trainer::refresh() { rounded_ ? model_.refresh_mechanisms() : model_.refresh(); }

void Trainer::initialize() {
  for (const Parameter& p : layout().all()) {
    HostCopy part(backend_, masters_.slice(0, p.offset, p.size), HostCopy::Contents::undefined);
    bamtrain::initialize(p, config_.model, config_.data.sequence_length, config_.seed,
                         part.tensor());
    part.upload();
  }
}

/// Windows of T + 1 tokens to inputs and, one further, targets.
void Trainer::split_rows(const std::vector<int32_t>& windows) {
  const int64_t T = config_.data.sequence_length;
  const int64_t rows = static_cast<int64_t>(windows.size()) / (T + 1);
  for (int64_t b = 0; b < rows; ++b) {
    const int32_t* window = windows.data() + b * (T + 1);
    std::copy_n(window, T, inputs_.data() + b * T);
    std::copy_n(window + 1, T, targets_.data() + b * T);
  }
}

const int32_t* Trainer::positions_from(int64_t window) {
  if (positions_.empty()) return nullptr;
  const int64_t T = config_.data.sequence_length, range = model_.randomized_positions();
  parallel_for(config_.train.micro_batch, [&](int64_t b) {
    draw_positions(position_rng_, window + b, range, T, positions_.data() + b * T);
  });
  return positions_.data();
}

/// Accumulates one lane's micro-batches in index order: their gradients and token losses.
void Trainer::lane(int64_t first_window, Tensor gradients, Tensor loss) {
  const int64_t B = config_.train.micro_batch;
  const double scale = 1 / static_cast<double>(config_.train.tokens_per_step);
  backend_.zero(gradients);
  backend_.zero(loss);
  for (int64_t m = 0; m < micro_batches_ / lanes_; ++m) {
    const int64_t window = first_window + m * B;
    const Clock::time_point asked = Clock::now();
    loader_->read(window, B, windows_.data());
    waits_[static_cast<size_t>(unread_)] += in_seconds(Clock::now() - asked);
    split_rows(windows_);
    model_.forward_backward(inputs_.data(), targets_.data(), document_start_, scale, gradients,
                            loss, positions_from(window));
  }
}

Tensor Trainer::loss_sum(size_t buffer) const {
  return Tensor(sums_.ptr<double>() + 2 * buffer, Dtype::f64, {1});
}

Tensor Trainer::squared_norm() const { return Tensor(sums_.ptr<double>() + 1, Dtype::f64, {1}); }

void Trainer::reduce(Tensor total, Communicator& comm) {
  PeerLink* const link = link_ ? link_.get() : comm.link();
  require(link != nullptr, "processes that are connected");
  if (config_.train.reduction == Reduction::library) {
    link->all_reduce(total);
  } else if (link_) {
    tree_all_reduce(*link_, rank_, processes_, total, messages_);
  } else {
    comm.all_reduce_sum(total.ptr<float>(), total.size());
  }
}

int64_t Trainer::own_windows() const { return sequences_per_step() / processes_; }

int64_t Trainer::first_own_window(int64_t step) const {
  return step * sequences_per_step() + rank_ * own_windows();
}

int64_t Trainer::read_ahead_bytes() const {
  return Loader::ahead_bytes(own_windows(), config_.data.sequence_length);
}

/// Has the windows of this step and of those after it read, as many as the run has and the loader
/// keeps.
void Trainer::read_ahead(int64_t step) {
  const int64_t end =
      std::min(step + ReadAhead::kRanges, std::max(step + 1, last_step(config_.train)));
  for (int64_t s = step; s < end; ++s) loader_->prefetch(first_own_window(s), own_windows());
}

void Trainer::start_step(int64_t step, Communicator& comm) {
  require(unread_ < kUnread, "results of steps to be read in time");
  if (unread_ == 0) first_unread_ = step;
  read_ahead(step);
  waits_[static_cast<size_t>(unread_)] = 0;
  const int64_t own_lanes = tree_.lanes(), per_lane = sequences_per_step() / lanes_;
  const int64_t first = first_own_window(step);
  refresh();
  for (int64_t l = 0; l < own_lanes; ++l) {
    const auto buffer = static_cast<size_t>(tree_.buffer_for(l));
    lane(first + l * per_lane, gradients_[buffer], loss_sum(buffer));
    for (const auto& [into, from] : joins_[static_cast<size_t>(l)]) {
      const auto to = static_cast<size_t>(into), of = static_cast<size_t>(from);
      backend_.add(gradients_[to], gradients_[of]);
      backend_.add(loss_sum(to), loss_sum(of));
    }
  }
  const Tensor& total = gradients_[0];
  if (processes_ > 1) reduce(total, comm);
  backend_.squared_norm(squared_norm(), total);
  const Tensor slot = unread_sums_.slice(0, unread_++, 1);
  backend_.zero(slot);
  backend_.add(slot, sums_.slice(0, 0, 1));
  optimizer_.step(step + 1, learning_rate(step), squared_norm(), masters_, model_.rounded_weights(),
                  total);
  rounded_ = true;
}

double Trainer::learning_rate(int64_t step) const {
  return config_.optimizer.lr * schedule_factor(config_.schedule, step, config_.train.steps);
}

std::span<const StepResult> Trainer::finish_steps(Communicator& comm) {
  const int64_t count = std::exchange(unread_, 0);
  if (count == 0) return {};
  backend_.download(read_sums_.data(), unread_sums_.slice(0, 0, count));
  const auto number = static_cast<size_t>(count);
  for (size_t s = 0; s < number; ++s) results_[s].norm = std::abs(std::sqrt(read_sums_[2 * s + 1]));
  // Of the losses: each process has those of its lanes, and the norm of all gradients. Of the
  // waits: a column for each process.
  double* const waits = read_sums_.data() + 2 * count;
  std::fill_n(waits, count * processes_, 0.0);
  for (int64_t s = 0; s < count; ++s) {
    waits[s * processes_ + rank_] = waits_[static_cast<size_t>(s)];
  }
  if (processes_ > 1) comm.all_reduce_sum(read_sums_.data(), (2 + processes_) * count);
  for (size_t s = 0; s < number; ++s) {
    StepResult& r = results_[s];
    const int64_t step = first_unread_ + static_cast<int64_t>(s);
    r.step = step + 1;
    r.loss = read_sums_[2 * s] / static_cast<double>(config_.train.tokens_per_step);
    r.lr = learning_rate(step);
    const double* const of_step = waits + static_cast<int64_t>(s) * processes_;
    r.data_wait = *std::max_element(of_step, of_step + processes_);
    if (std::isfinite(r.loss) && std::isfinite(r.norm)) continue;
    const int64_t windows = sequences_per_step();
    fail_together(comm, std::make_exception_ptr(NonfiniteStep(
                            r, fmt::format("the batch of windows {} to {}", step * windows,
                                           (step + 1) * windows - 1))));
  }
  return {results_.data(), number};
}

void Trainer::check_finite(int64_t step) const {
  const Tensor states[] = {masters_, optimizer_.first_moments(), optimizer_.second_moments()};
  for (const Tensor& t : states) {
    double squares = 0;
    backend_.squared_norm(squared_norm(), t);
    backend_.download(&squares, squared_norm());
    if (std::isfinite(squares)) continue;
    throw Error(ExitCode::nonfinite, fmt::format("step {}", step),
                "finite parameters and moments to save", "NaN or infinity in them",
                "lower optimizer.lr and resume from the last checkpoint, which is intact");
  }
}

}  // namespace bamtrain
