#pragma once
// The in-memory state of a run: all that a step reads and writes. Used by train() and dry_run().

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/group_reduction.h"
#include "core/rng.h"
#include "data/sequences.h"
#include "dist/communicator.h"
#include "model/network.h"
#include "model/random_positions.h"
#include "train/exchange.h"
#include "train/run_config.h"
#include "train/step_result.h"
#include "train/training_state.h"
#include "train/validation.h"

namespace bamtrain {

/// A step whose loss or gradient norm is NaN or infinite.
struct NonfiniteStep : Error {
  NonfiniteStep(const StepResult& result, const std::string& batch);
  StepResult result;
};

class Trainer {
 public:
  /// Opens the data and plans the memory, but allocates nothing before commit(). With Data::absent
  /// it does not open the data, to find out what a run would need. Throws Error as documented for
  /// train(). `config` must outlive the trainer.
  enum class Data { opened, absent };
  Trainer(const RunConfig& config, Backend& backend, int rank, int processes,
          Data data = Data::opened);

  /// Opens the data that Data::absent left out. Throws Error as documented for train().
  void open_data();

  /// Connects the devices of several processes. Collective.
  void connect(Communicator& comm);
  /// Allocates the memory, after the buffers of connect(). REQUIRES: connect() was called if there
  /// are several processes.
  void commit();
  /// Writes the parameters' initial values to `weights` (elements) P in host memory.
  void initialize(const Tensor& weights) const;
  void initialize();  // takes them

  /// Maximum number of steps that are started and whose results are not yet read.
  static constexpr int64_t kMaxInFlight = 16;

  /// Starts step number `step` (from 0) on all processes. A device may still compute it when the
  /// call returns. A step with a non-finite gradient norm changes no parameter and no optimizer
  /// state, and neither does any step after it. Allocates nothing from the second call on, except
  /// for drawing a task's sequences. REQUIRES: in_flight() < kMaxInFlight.
  void start_step(int64_t step, Communicator& comm);
  int64_t in_flight() const { return in_flight_; }
  /// Waits for the steps started since the last call and returns their results in order, valid
  /// until the next call. Collective. Throws Error (ExitCode::nonfinite) for the first non-finite
  /// step.
  std::span<const StepResult> finish_steps(Communicator& comm);

  /// A validation pass over eval.tokens; empty without a validation set. Does not change the
  /// training state. Calls progress(share) with the share of this process's sequences that are
  /// done. Collective.
  std::optional<Validation> validate(
      Communicator& comm, const std::function<void(double share)>& progress = [](double) {});

  Backend& backend() const { return backend_; }
  const ParameterLayout& layout() const { return model_->parameters(); }
  /// What steps change. May be written only before the first step.
  TrainingState& state() { return state_; }
  const TrainingState& state() const { return state_; }
  /// Steps of another run that the optimizer state has seen; the optimizer counts from there.
  void count_earlier_steps(int64_t steps) { earlier_steps_ = steps; }
  const Arena& arena() const { return arena_; }
  /// Throws Error (ExitCode::device) unless the planned memory and `beside` more bytes are
  /// available. On a CPU this includes the read-ahead buffers, which are in host memory.
  void check_memory(int64_t beside) const;
  const Sequences& training_data() const { return *training_; }
  /// The id that begins a document, set if documents are masked.
  std::optional<int64_t> document_start() const { return document_start_; }
  bool validates() const { return validation_ != nullptr; }
  const Sequences* validation_data() const { return validation_.get(); }  // null: none
  int64_t groups() const { return groups_; }
  const GroupReduction& reduction() const { return reduction_; }
  int64_t sequences_per_step() const { return micro_batches_ * config_.train.micro_batch; }
  /// Host memory for this process's read-ahead windows; 0 with tasks alone.
  int64_t read_ahead_bytes() const;

  // --- validation.cpp
  int64_t validation_sequences() const;
  static constexpr int64_t kTaskSequences = 1000;  // for a task without end, if eval.tokens is 0
  /// Validation windows for which a pass computes attention statistics.
  int64_t attention_windows() const;

 private:
  void check_validation_shards();
  double learning_rate(int64_t step) const;
  int64_t sequences_per_group() const { return sequences_per_step() / groups_; }
  /// Of a step: the numbers of this process's sequences begin with first_sequence().
  int64_t own_sequences() const { return reduction_.groups().size() * sequences_per_group(); }
  int64_t first_sequence() const { return reduction_.groups().begin * sequences_per_group(); }
  void read_ahead(int64_t step);
  int64_t load(std::span<const int64_t> numbers, int64_t step);
  void forward_backward(const Tensor& gradients, const Tensor& loss);
  void accumulate_group(std::span<const int64_t> numbers, int64_t step, size_t group);
  /// Adds elements of the last buffers to those before them, after a group.
  void add_buffers(size_t group, FlatRange elements);
  void pass_in_parts(size_t group, int64_t T, bool last);
  PeerLink& link(Communicator& comm) const;
  double loss_scale() const { return 1 / static_cast<double>(config_.train.tokens_per_step); }
  /// The host runs ahead of a device, and may wait here for the messages of some steps. A link in
  /// host memory watches its own waits.
  Wait for_devices(int64_t steps) const {
    return Wait(link_ ? watchdog_ : nullptr, "messages between GPUs", Wait::kNobody, steps);
  }
  /// Whether processes exchange gradients and weights while they compute.
  bool overlaps() const {
    return processes_ > 1 && config_.train.overlap && config_.train.reduction == Reduction::tree;
  }
  void step_in_groups(std::span<const int64_t> numbers, int64_t step, Communicator& comm);
  void step_at_once(std::span<const int64_t> numbers, int64_t step);
  void prepare_update(int64_t step);
  /// The model's random positions for this batch of T columns; null if positions count tokens.
  const int32_t* positions_of(const Rng& rng, const BatchDraw& batch, int64_t T);
  /// Makes the counts of the step in progress, so far of this process's sequences, those of all
  /// processes.
  void count_step(Communicator& comm);
  /// The factor that turns the accumulated gradients into those of the mean over counted targets; 1
  /// if all targets count.
  double gradient_scale(const SequenceCounts& counts) const;
  /// Makes gradients_[0] the sum over the groups of all processes.
  void reduce(Communicator& comm);
  /// (1) f64 in a buffer's row of sums_: the sum of its losses. Row 0 also holds the squared norm
  /// of the gradients. Rows have two elements because additions require addresses aligned to 16
  /// bytes.
  Tensor loss_sum(size_t buffer) const;
  Tensor squared_norm() const;

  const RunConfig& config_;
  Backend& backend_;
  int rank_, processes_;
  int64_t micro_batches_, groups_;
  GroupReduction reduction_;
  // Of each of this process's groups: the buffer that it is added in, and the additions after it.
  struct GroupBuffer {
    size_t buffer;
    int additions;
  };
  std::vector<GroupBuffer> buffers_;
  std::unique_ptr<Sequences> training_, validation_;
  std::optional<int64_t> document_start_;
  Arena arena_;
  std::unique_ptr<Network> model_;
  TrainingState state_;
  int64_t earlier_steps_ = 0;           // that the optimizer state has seen before step 0
  std::vector<Tensor> gradients_;       // buffers of (elements) P; then the sums of own groups
  Tensor sums_;                         // (buffers, 2) f64, see loss_sum()
  Tensor in_flight_sums_;               // (kMaxInFlight, own sums, 2) f64: rows of sums_ by step
  std::vector<double> read_sums_;       // the same in host memory
  std::vector<double> of_processes_;    // (steps, losses of all sums and waits of all processes)
  std::vector<double> waits_;           // (kMaxInFlight) s, this process's wait for tokens
  std::vector<SequenceCounts> counts_;  // (kMaxInFlight) over all processes
  std::vector<StepResult> results_;     // kMaxInFlight
  int64_t in_flight_ = 0, first_in_flight_ = 0;  // steps
  bool connected_ = false;                       // connect() was called
  Watchdog* watchdog_ = nullptr;
  std::unique_ptr<PeerLink> link_;  // between devices; null for host memory
  Tensor messages_;                 // (PeerLink::kSlots messages) P
  std::optional<Exchange> exchange_;
  bool receives_ = false;       // weights, up to the end of the step's first forward pass
  std::vector<int64_t> order_;  // sequences of a step, see Sequences
  std::vector<int32_t> inputs_, targets_;  // (B, T)
  std::vector<int32_t> lengths_;           // (B), row lengths without padding
  // Keyed by the window's number in the run or by the step; for validation by the batch of the pass
  Rng position_rng_, validation_position_rng_;
  std::vector<int32_t> positions_;  // (draws, B, T) if they are random
};

}  // namespace bamtrain
