#pragma once
// One run in memory: everything that a step reads and writes. Used by train() and by dry_run().

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/accumulation_tree.h"
#include "core/rng.h"
#include "data/sequences.h"
#include "dist/communicator.h"
#include "model/network.h"
#include "model/random_positions.h"
#include "train/optimizer.h"
#include "train/run_config.h"
#include "train/step_result.h"
#include "train/validation.h"

namespace bamtrain {

/// A step whose loss or gradient norm is none.
struct NonfiniteStep : Error {
  NonfiniteStep(const StepResult& result, const std::string& batch);
  StepResult result;
};

class Trainer {
 public:
  /// Opens the data and plans the memory; takes none before commit(). With Data::absent it does not
  /// open the data: to tell what a run would need.
  /// Errors as documented for train(). `config` must outlive it.
  enum class Data { opened, absent };
  Trainer(const RunConfig& config, Backend& backend, int rank, int processes,
          Data data = Data::opened);

  /// What Data::absent left out. Errors as documented for train().
  void open_data();

  /// Connects the processes' devices, where there are several. Collective.
  void connect(Communicator& comm);
  /// Takes the memory, of what the connection has left. REQUIRES: several processes are connected.
  void commit();
  void initialize();  // parameters to their initial values

  /// Steps in flight, at most: started, and their results not yet read.
  static constexpr int64_t kMaxInFlight = 16;

  /// Starts step number `step` (from 0) on all processes; a device goes on behind the call. A step
  /// whose gradient norm is not finite changes no parameter and no moment, nor does any after it.
  /// Takes no memory from the second call on, but for what a task's sequences are drawn in.
  /// REQUIRES: in_flight() < kMaxInFlight.
  void start_step(int64_t step, Communicator& comm);
  int64_t in_flight() const { return in_flight_; }
  /// Waits for the steps started since the last call and returns what they gave, in order; valid
  /// until the next call. Collective. Error (ExitCode::nonfinite) for the first that is not finite.
  std::span<const StepResult> finish_steps(Communicator& comm);

  /// Error (ExitCode::nonfinite) unless every parameter and moment is finite; `step`: steps done.
  void check_finite(int64_t step) const;

  /// A pass over eval.tokens of the validation set; none without one. Leaves the state of the
  /// training as it is. Collective.
  std::optional<Validation> validate(Communicator& comm);

  Backend& backend() const { return backend_; }
  const ParameterLayout& layout() const { return model_->parameters(); }
  Optimizer& optimizer() { return optimizer_; }
  /// How many steps of another run the moments have seen, by which the optimizer counts its own.
  void count_earlier_steps(int64_t steps) { earlier_steps_ = steps; }
  const Arena& arena() const { return arena_; }
  /// Error (ExitCode::device) unless its memory and `beside` bytes could be had; on a CPU that of
  /// what is read ahead too, which is the host's.
  void check_memory(int64_t beside) const;
  /// May be written before the first step alone.
  const Tensor& master_weights() const { return master_weights_; }
  const Sequences& training_data() const { return *training_; }
  /// The id that begins a document, where documents are masked.
  std::optional<int64_t> document_start() const { return document_start_; }
  bool validates() const { return validation_ != nullptr; }
  const Sequences* validation_data() const { return validation_.get(); }  // null: none
  int64_t groups() const { return groups_; }
  int64_t sequences_per_step() const { return micro_batches_ * config_.train.micro_batch; }
  /// Host memory for the windows of this process that are read ahead; of tasks alone: none.
  int64_t read_ahead_bytes() const;

  // --- validation.cpp
  int64_t validation_sequences() const;
  static constexpr int64_t kTaskSequences = 1000;  // without end, where eval.tokens is 0
  /// Of these, at whose attention a pass looks.
  int64_t attention_windows() const;

 private:
  void check_validation_shards();
  double learning_rate(int64_t step) const;
  int64_t own_sequences() const;  // of a step
  void read_ahead(int64_t step);
  int64_t load(std::span<const int64_t> numbers, int64_t step);
  void forward_backward(const Tensor& gradients, const Tensor& loss);
  void accumulate_group(std::span<const int64_t> numbers, int64_t step, Tensor gradients,
                        Tensor loss);
  void step_in_groups(std::span<const int64_t> numbers, int64_t step, Communicator& comm);
  void step_at_once(std::span<const int64_t> numbers, int64_t step);
  void prepare_update(int64_t step);
  void update();
  /// What the model draws for this batch of T columns; null where positions count tokens.
  const int32_t* positions_of(const Rng& rng, const BatchDraw& batch, int64_t T);
  /// Makes the counts of this process's sequences, at the step at hand, those of all.
  void count_step(Communicator& comm);
  /// What the gradients that groups add up are yet to be multiplied by to be those of the mean over
  /// the targets that count: 1 where all do.
  double gradient_scale(const SequenceCounts& counts) const;
  /// `total` becomes its sum over all processes.
  void reduce(Tensor total, Communicator& comm);
  /// The model computes with the master weights as they are.
  void refresh();
  /// (1) f64 in the row of a buffer: the sum of its losses; beside that of buffer 0 the squared
  /// norm of the gradients. Rows of two, since additions want addresses that 16 bytes divide.
  Tensor loss_sum(size_t buffer) const;
  Tensor squared_norm() const;

  const RunConfig& config_;
  Backend& backend_;
  int rank_, processes_;
  int64_t micro_batches_, groups_;
  AccumulationTree tree_;
  std::unique_ptr<Sequences> training_, validation_;
  std::optional<int64_t> document_start_;
  Arena arena_;
  std::unique_ptr<Network> model_;
  Optimizer optimizer_;
  int64_t earlier_steps_ = 0;           // that the moments have seen before step 0
  Tensor master_weights_;               // (elements) P
  bool rounded_ = false;                // the model has them rounded
  std::vector<Tensor> gradients_;       // tree_.buffers() of (elements) P
  Tensor sums_;                         // (buffers, 2) f64, see loss_sum()
  Tensor in_flight_sums_;               // (kMaxInFlight, 2) f64: row 0 of sums_ by step
  std::vector<double> read_sums_;       // (kMaxInFlight, 2), (kMaxInFlight, processes) waits
  std::vector<double> waits_;           // (kMaxInFlight) s, of this process for tokens
  std::vector<SequenceCounts> counts_;  // (kMaxInFlight) of all processes
  std::vector<StepResult> results_;     // kMaxInFlight
  int64_t in_flight_ = 0, first_in_flight_ = 0;  // steps
  bool connected_ = false;                       // or alone
  std::unique_ptr<PeerLink> link_;               // of devices; host memory: null
  Tensor messages_;                              // (2 pieces) P, of a link of devices
  std::vector<int64_t> order_;                   // of a step's sequences, see Sequences
  std::vector<int32_t> inputs_, targets_;        // (B, T)
  std::vector<int32_t> lengths_;                 // (B), of their rows without padding
  // By the window's number in the run, or its step's; by that of a pass's batch
  Rng position_rng_, validation_position_rng_;
  std::vector<int32_t> positions_;                       // (draws, B, T) where they are random
  std::vector<std::vector<std::pair<int, int>>> joins_;  // AccumulationTree::joins_after, by group
};

}  // namespace bamtrain
