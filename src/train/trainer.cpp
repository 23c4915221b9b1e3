#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/checked.h"
#include "core/parallel.h"
#include "dist/collective.h"
#include "ops/host_copy.h"
#include "train/schedule.h"
#include "train/training_data.h"

namespace bamtrain {

namespace {

using Clock = std::chrono::steady_clock;

double in_seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Elements of a message between processes: long enough for the full bandwidth of devices, and
// because processes that share cores pay for every hand-over.
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

/// Allocates or checks memory. If the plan does not fit, the Error also names options that make
/// tables of the prior or the scale longer than a sequence.
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

std::optional<int64_t> resolve_document_start(const RunConfig& c,
                                              const std::vector<Source>& sources) {
  const bool needed = c.model.attention.document_mask;
  std::optional<int64_t> id;
  for (const Source& s : sources) {
    id = s.shards->document_start(c.data.document_start);  // the same for all sources
    if (id || !needed) continue;
    throw Error(
        ExitCode::config, "data.document_start",
        "the BOS id that begins a document, since model.attention.document_mask is true",
        "neither this key nor a manifest next to the shards of " + s.shards->source(),
        s.shards->document_start_remedy() + ", or set model.attention.document_mask to false");
  }
  return needed ? id : std::nullopt;
}

}  // namespace

NonfiniteStep::NonfiniteStep(const StepResult& r, const std::string& batch)
    : Error(ExitCode::nonfinite, fmt::format("step {}", r.step), "a finite loss and gradient norm",
            fmt::format("loss {}, gradient norm {} in {}", r.loss, r.norm, batch),
            std::isfinite(r.norm) ? "lower optimizer.lr"
                                  : "no parameter was updated in this step: lower optimizer.lr or "
                                    "optimizer.clip, or check these windows"),
      result(r) {}

Trainer::Trainer(const RunConfig& config, Backend& backend, int rank, int processes, Data data)
    : config_(config),
      backend_(backend),
      rank_(rank),
      processes_(processes),
      micro_batches_(count_micro_batches(config_)),
      groups_(config_.train.lanes > 0 ? config_.train.lanes
                                      : default_accumulation_groups(micro_batches_)),
      reduction_((check_process_count(processes, groups_), rank), processes, groups_,
                 kSquaresBlock),
      model_(make_network(config_.model, config_.data.sequence_length, backend,
                          activation_dtype(config_.train.precision))),
      state_(config_.optimizer, *model_, backend, reduction_),
      position_rng_(config_.seed, "positions"),
      validation_position_rng_(config_.seed, "positions.val") {
  if (micro_batches_ % groups_ != 0) {
    throw Error(ExitCode::config, "train.lanes",
                fmt::format("a divisor of the {} micro-batches of a step", micro_batches_),
                std::to_string(groups_), "lower it, or leave it out");
  }
  if (data == Data::opened) open_data();
  const int64_t B = config_.train.micro_batch, T = config_.data.sequence_length;
  const Dtype P = backend_.parameter_dtype();
  const bool looks_at_attention =
      config_.eval.attention > 0 && config_.data.validates() && !config_.data.val_task;
  model_->plan(arena_, B, T, ModelUse::training, config_.train.recompute, looks_at_attention);
  state_.plan(arena_, processes_ > 1 && config_.train.shard_optimizer.value_or(true));
  const GroupRange own = reduction_.groups();
  GroupStack stack(groups_);
  for (int64_t l = own.begin; l < own.end; ++l) {
    const auto buffer = static_cast<size_t>(stack.size());
    buffers_.push_back({buffer, stack.push({l, l + 1})});
  }
  gradients_.resize(static_cast<size_t>(stack.most()));
  for (Tensor& g : gradients_) arena_.add("gradients.lanes", &g, P, {layout().elements()});
  arena_.add("batch.sums", &sums_, Dtype::f64, {stack.most(), 2});
  arena_.add("batch.unread_sums", &in_flight_sums_, Dtype::f64,
             {kMaxInFlight, reduction_.own_sums(), 2});
  if (processes_ > 1) {
    arena_.add("gradients.messages", &messages_, P, {PeerLink::kSlots * kMessageElements});
  }
}

void Trainer::open_data() {
  training_ = open_training_data(config_);
  document_start_ = resolve_document_start(config_, training_->shard_sources());
  validation_ = open_validation_data(config_);
  if (validation_ && validation_->shards()) check_validation_shards();
}

void Trainer::check_memory(int64_t beside) const {
  int64_t bytes = checked_add(arena_.total_bytes(), beside, "memory plan");
  if (backend_.memory().on_host()) {
    bytes = checked_add(bytes, read_ahead_bytes(), "memory plan");
  }
  with_table_keys(config_, [&] { backend_.memory().check_fits(bytes); });
}

void Trainer::connect(Communicator& comm) {
  watchdog_ = comm.watchdog();
  const InPhase connecting(watchdog_, phases::kConnecting, 0);
  const Wait wait(watchdog_, "a connection between the GPUs");
  if (processes_ > 1) {
    link_ = backend_.connect(peers_of(comm, reduction_.partners()));
    exchange_.emplace(reduction_, link(comm),
                      std::span(gradients_).first(static_cast<size_t>(reduction_.own_sums())),
                      messages_,
                      Exchange::Mode{link_ == nullptr, overlaps(), !state_.ownership().divided()});
    state_.connect(&link(comm));
  }
  connected_ = true;
}

void Trainer::commit() {
  require(processes_ == 1 || connected_, "a connection, whose buffers are taken before the plan");
  check_memory(0);
  with_table_keys(config_, [&] { arena_.commit(backend_.memory()); });
  state_.begin(gradients_[0]);
  const auto N = static_cast<size_t>(config_.train.micro_batch * config_.data.sequence_length);
  inputs_.resize(N);
  targets_.resize(N);
  lengths_.resize(static_cast<size_t>(config_.train.micro_batch));
  read_sums_.resize(static_cast<size_t>(in_flight_sums_.size()));
  of_processes_.resize(static_cast<size_t>(kMaxInFlight * (reduction_.all_sums() + processes_)));
  waits_.resize(kMaxInFlight);
  counts_.resize(kMaxInFlight);
  order_.resize(static_cast<size_t>(sequences_per_step()));
  results_.resize(kMaxInFlight);
  positions_.resize(static_cast<size_t>(model_->draws()) * N);
  if (training_) training_->reserve_ahead(own_sequences());
}

void Trainer::initialize(const Tensor& weights) const {
  for (const Parameter& p : layout().all()) {
    bamtrain::initialize(p, config_.model, config_.data.sequence_length, config_.seed,
                         weights.slice(0, p.offset, p.size));
  }
}

void Trainer::initialize() {
  HostCopy weights(backend_, state_.place(StateTensor::master_weights),
                   HostCopy::Contents::undefined);
  initialize(weights.tensor());
  weights.upload();
  state_.take(StateTensor::master_weights);
}

const int32_t* Trainer::positions_of(const Rng& rng, const BatchDraw& batch, int64_t T) {
  draw_batch(rng, model_->randomization(), model_->draws(), batch, T, positions_.data());
  return positions_.data();
}

/// Loads the next microbatch of a step for the model's forward_backward(). Returns its T.
int64_t Trainer::load(std::span<const int64_t> numbers, int64_t step) {
  const auto slot = static_cast<size_t>(in_flight_);
  const Clock::time_point asked = Clock::now();
  SequenceCounts counts;
  const int64_t T =
      training_->read(numbers, step, inputs_.data(), targets_.data(), &counts, lengths_.data());
  waits_[slot] += in_seconds(Clock::now() - asked);
  counts_[slot].inputs += counts.inputs;
  counts_[slot].targets += counts.targets;
  const int32_t* const positions =
      model_->draws() > 0 ? positions_of(position_rng_, {numbers, step, counts.longest}, T)
                          : nullptr;
  const Wait wait = for_devices(in_flight_ + 1);
  model_->load(inputs_.data(), targets_.data(), T, document_start_, positions, lengths_.data());
  return T;
}

/// Gradients and token losses of the loaded microbatch. The gradients are those of the sum divided
/// by tokens_per_step, as if every position were a target; see gradient_scale().
void Trainer::forward_backward(const Tensor& gradients, const Tensor& loss) {
  model_->forward_backward(loss_scale(), gradients, loss);
}

/// Accumulates the microbatches of one group in index order, then makes the additions that follow
/// it. In the process's first microbatch, weights arrive while others are computed with; in its
/// last, gradients that are final leave while others are computed.
void Trainer::accumulate_group(std::span<const int64_t> numbers, int64_t step, size_t group) {
  const auto B = static_cast<size_t>(config_.train.micro_batch);
  const size_t buffer = buffers_[group].buffer;
  const Tensor &gradients = gradients_[buffer], loss = loss_sum(buffer);
  const bool sends = overlaps() && group + 1 == buffers_.size();
  backend_.zero(gradients);
  backend_.zero(loss);
  const auto work = [&] { forward_backward(gradients, loss); };
  for (size_t begin = 0; begin < numbers.size(); begin += B) {
    const int64_t T = load(numbers.subspan(begin, B), step);
    const bool last = sends && begin + B == numbers.size();
    if (receives_ || last) {
      pass_in_parts(group, T, last);
    } else {
      const Wait wait = for_devices(in_flight_ + 1);
      backend_.run_captured(graph_key(static_cast<int64_t>(buffer), T),
                            std::ref(work));  // allocates nothing
    }
  }
  if (!sends) add_buffers(group, {0, layout().elements()});
  for (size_t n = 0; n < static_cast<size_t>(buffers_[group].additions); ++n) {
    backend_.add(loss_sum(buffer - n - 1), loss_sum(buffer - n));
  }
}

void Trainer::add_buffers(size_t group, FlatRange elements) {
  size_t last = buffers_[group].buffer;
  for (int n = buffers_[group].additions; n > 0; --n, --last) {
    backend_.add(elements.of(gradients_[last - 1]), elements.of(gradients_[last]));
  }
}

/// The loaded microbatch, the first or the last of the process.
void Trainer::pass_in_parts(size_t group, int64_t T, bool last) {
  const size_t buffer = buffers_[group].buffer;
  const auto& ranges = state_.ownership().ranges_of_parts();
  int part = 0;
  const auto work = [&] {
    model_->forward_backward_part(part, loss_scale(), gradients_[buffer], loss_sum(buffer));
  };
  for (const int parts = model_->parts(); part < parts; ++part) {
    const Wait wait = for_devices(in_flight_ + 1);
    if (receives_ && part <= parts / 2) state_.receive(*exchange_, part);
    backend_.run_captured(graph_key(static_cast<int64_t>(buffer), T, part), std::ref(work));
    if (!last || part < parts / 2) continue;
    const std::vector<FlatRange>& done = ranges[static_cast<size_t>(parts - 1 - part)];
    for (const FlatRange& range : done) add_buffers(group, range);
    exchange_->reduce(done);
  }
  receives_ = false;
}

/// A step of several microbatches or processes.
void Trainer::step_in_groups(std::span<const int64_t> numbers, int64_t step, Communicator& comm) {
  const auto per_group = static_cast<size_t>(sequences_per_group());
  if (overlaps()) {
    receives_ = state_.start_refresh(*exchange_);
  } else {
    state_.refresh();
  }
  for (size_t l = 0; l < buffers_.size(); ++l) {
    accumulate_group(numbers.subspan(l * per_group, per_group), step, l);
  }
  if (processes_ > 1) reduce(comm);
  count_step(comm);
  prepare_update(step);
  const Wait wait = for_devices(in_flight_ + 1);
  state_.update(squared_norm(), overlaps() ? &*exchange_ : nullptr);
}

/// A step of one microbatch: a single graph of all that a device does.
void Trainer::step_at_once(std::span<const int64_t> numbers, int64_t step) {
  if (!state_.is_rounded()) state_.refresh();
  const int64_t T = load(numbers, step);
  prepare_update(step);
  const auto work = [this] {
    model_->refresh_mechanisms();
    backend_.zero(gradients_[0]);
    backend_.zero(loss_sum(0));
    forward_backward(gradients_[0], loss_sum(0));
    state_.update(squared_norm(), nullptr);
  };
  backend_.run_captured(graph_key(0, T), std::ref(work));
}

/// REQUIRES: the targets of the step have been counted.
void Trainer::prepare_update(int64_t step) {
  state_.optimizer().prepare(earlier_steps_ + step + 1, learning_rate(step),
                             gradient_scale(counts_[static_cast<size_t>(in_flight_)]));
}

void Trainer::count_step(Communicator& comm) {
  if (processes_ == 1) return;
  SequenceCounts& counts = counts_[static_cast<size_t>(in_flight_)];
  if (training_->tasks().empty()) {
    for (int64_t* count : {&counts.inputs, &counts.targets}) {
      *count = *count / reduction_.groups().size() * groups_;
    }
    return;
  }
  double sums[] = {static_cast<double>(counts.inputs), static_cast<double>(counts.targets)};
  comm.sum(sums, 2);
  counts = {static_cast<int64_t>(sums[0]), static_cast<int64_t>(sums[1])};
}

double Trainer::gradient_scale(const SequenceCounts& counts) const {
  return static_cast<double>(config_.train.tokens_per_step) / static_cast<double>(counts.targets);
}

Tensor Trainer::loss_sum(size_t buffer) const {
  return Tensor(sums_.ptr<double>() + 2 * buffer, Dtype::f64, {1});
}

Tensor Trainer::squared_norm() const { return Tensor(sums_.ptr<double>() + 1, Dtype::f64, {1}); }

void Trainer::reduce(Communicator& comm) {
  const Wait wait = for_devices(in_flight_ + 1);
  if (config_.train.reduction == Reduction::tree) {
    if (!overlaps()) exchange_->reduce(state_.ownership().segments());
    return exchange_->finish();
  }
  for (size_t n = 1; n < static_cast<size_t>(reduction_.own_sums()); ++n) {
    backend_.add(gradients_[0], gradients_[n]);
  }
  link(comm).all_reduce(gradients_[0]);
}

PeerLink& Trainer::link(Communicator& comm) const {
  PeerLink* const link = link_ ? link_.get() : comm.link();
  require(link != nullptr, "processes that are connected");
  return *link;
}

int64_t Trainer::read_ahead_bytes() const {
  if (!config_.data.train.has_shards()) return 0;
  return Loader::ahead_bytes(own_sequences(), config_.data.sequence_length);
}

/// Prefetches the windows of this step and of the following ones, as many as the run has and the
/// loader keeps.
void Trainer::read_ahead(int64_t step) {
  const int64_t end =
      std::min(step + ReadAhead::kRanges, std::max(step + 1, last_step(config_.train)));
  for (int64_t s = step; s < end; ++s) {
    training_->prefetch(s * sequences_per_step() + first_sequence(), own_sequences());
  }
}

void Trainer::start_step(int64_t step, Communicator& comm) {
  require(in_flight_ < kMaxInFlight, "results of steps to be read in time");
  if (in_flight_ == 0) first_in_flight_ = step;
  read_ahead(step);
  waits_[static_cast<size_t>(in_flight_)] = 0;
  counts_[static_cast<size_t>(in_flight_)] = {};
  training_->order(step, config_.train.micro_batch, groups_, &order_);
  const std::span<const int64_t> own = std::span<const int64_t>(order_).subspan(
      static_cast<size_t>(first_sequence()), static_cast<size_t>(own_sequences()));
  if (micro_batches_ == 1) {
    step_at_once(own, step);
  } else {
    step_in_groups(own, step, comm);
  }
  const Tensor slot = in_flight_sums_.slice(0, in_flight_++, 1);
  backend_.zero(slot);
  backend_.add(slot, sums_.slice(0, 0, reduction_.own_sums()));
}

double Trainer::learning_rate(int64_t step) const {
  return config_.optimizer.lr * schedule_factor(config_.schedule, step, config_.train.steps);
}

std::span<const StepResult> Trainer::finish_steps(Communicator& comm) {
  const int64_t count = std::exchange(in_flight_, 0);
  if (count == 0) return {};
  {
    // Messages between devices are waited for here.
    const Wait wait = for_devices(count);
    backend_.download(read_sums_.data(), in_flight_sums_.slice(0, 0, count));
  }
  const int64_t own = reduction_.own_sums(), all = reduction_.all_sums();
  const auto of_step = [&](std::vector<double>& values, int64_t size, int64_t step) {
    return std::span(values).subspan(static_cast<size_t>(size * step), static_cast<size_t>(size));
  };
  // Of each step: the losses of all sums of groups and the waits of all processes. Each process has
  // its own; all have the norm already.
  std::fill_n(of_processes_.data(), count * (all + processes_), 0.0);
  for (int64_t s = 0; s < count; ++s) {
    const std::span<double> step = of_step(of_processes_, all + processes_, s);
    const std::span<double> read = of_step(read_sums_, 2 * own, s);
    for (int64_t n = 0; n < own; ++n) step[reduction_.first_sum() + n] = read[2 * n];
    step[all + rank_] = waits_[static_cast<size_t>(s)];
    results_[static_cast<size_t>(s)].norm =
        gradient_scale(counts_[static_cast<size_t>(s)]) * std::abs(std::sqrt(read[1]));
  }
  if (processes_ > 1) comm.sum(of_processes_.data(), count * (all + processes_));
  for (size_t s = 0; s < static_cast<size_t>(count); ++s) {
    StepResult& r = results_[s];
    const int64_t step = first_in_flight_ + static_cast<int64_t>(s);
    const std::span<double> of = of_step(of_processes_, all + processes_, static_cast<int64_t>(s));
    const std::span<double> waits = of.last(static_cast<size_t>(processes_));
    r.step = step + 1;
    r.tokens = counts_[s].inputs;
    r.targets = counts_[s].targets;
    r.loss = reduction_.total(of.first(static_cast<size_t>(all))) / static_cast<double>(r.targets);
    r.lr = learning_rate(step);
    r.data_wait = *std::max_element(waits.begin(), waits.end());
    if (std::isfinite(r.loss) && std::isfinite(r.norm)) continue;
    const int64_t windows = sequences_per_step();
    fail_on_all_ranks(comm, std::make_exception_ptr(NonfiniteStep(
                                r, fmt::format("the batch of windows {} to {}", step * windows,
                                               (step + 1) * windows - 1))));
  }
  return {results_.data(), static_cast<size_t>(count)};
}

}  // namespace bamtrain
