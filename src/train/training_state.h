#pragma once
// What the steps of a run change: master weights, their rounded copy and the optimizer's moments.
// With several processes each may keep a part of it (train/ownership.h).

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/group_reduction.h"
#include "model/network.h"
#include "train/exchange.h"
#include "train/optimizer.h"
#include "train/ownership.h"

namespace bamtrain {

/// The tensors of a checkpoint: (elements) P each.
enum class StateTensor { master_weights, first_moments, second_moments };
inline constexpr std::array kStateTensors = {
    StateTensor::master_weights, StateTensor::first_moments, StateTensor::second_moments};

class TrainingState {
 public:
  /// The arguments must outlive it. Throws Error as Optimizer.
  TrainingState(const OptimizerConfig& config, Network& network, Backend& backend,
                GroupReduction& reduction);

  /// REQUIRES: the network is planned.
  void plan(Arena& arena, bool divided);
  /// The link between processes; null: there is one.
  void connect(PeerLink* link) { link_ = link; }
  /// Gives the network its weights. `gradients` (elements) P: the sum of the step, and between
  /// steps memory in which tensors are put together. REQUIRES: the plan is committed.
  void begin(const Tensor& gradients);

  const Ownership& ownership() const { return *ownership_; }
  Optimizer& optimizer() { return optimizer_; }

  /// Makes the network compute with the current weights. Collective.
  void refresh();
  /// The same, while the network computes: receive(exchange, part) must precede each of the first
  /// Network::parts() / 2 + 1 parts of its next pass. False: refresh() was enough. Collective.
  bool start_refresh(Exchange& exchange);
  void receive(Exchange& exchange, int part);
  /// After Optimizer::prepare(): sets squared_norm (1) f64 to that of the gradients, whose owned
  /// elements are the sum over all processes, and updates the weights that the process owns; the
  /// next refresh() receives those of others, except that those of the first part arrive beside the
  /// update, if there is an exchange. Collective; a backend may capture it if there is one process.
  void update(const Tensor& squared_norm, Exchange* exchange);
  /// Whether the network has the rounded copy of the weights, which refresh() makes and update()
  /// keeps.
  bool is_rounded() const { return rounded_; }

  /// Whether this process keeps all of it.
  bool is_whole(StateTensor t) const {
    return !ownership_->divided() ||
           (t == StateTensor::master_weights && ownership_->has_all_master_weights());
  }
  /// Where all of it is put together, (elements) P: the tensor itself, or the memory of the
  /// gradients. Shared by tensors that are not whole.
  const Tensor& place(StateTensor t) const { return is_whole(t) ? own(t) : gradients_; }
  /// Puts all of it in its place, on all processes, up to the next step or another call.
  /// Collective.
  const Tensor& assemble(StateTensor t);
  /// Takes this process's part from its place.
  void take(StateTensor t);

  /// Calls f(elements, tensor) for each range of the elements that this process updates, with what
  /// it keeps of them. Those of all processes are all elements. REQUIRES: ownership().divided().
  void for_own(StateTensor t, const std::function<void(FlatRange, const Tensor&)>& f) const;

  /// Whether what this process keeps is finite.
  bool is_finite();

 private:
  const Tensor& own(StateTensor t) const;
  /// Where this process has the elements of the range.
  Tensor part_of(StateTensor t, const OwnedRange& range) const {
    return own(t).slice(0, t == StateTensor::master_weights ? range.master_weights : range.moments,
                        range.elements.size());
  }
  void gather(std::span<const Tensor> tensors, int64_t per = 1);
  /// Rounds the weights that the process owns.
  void round_own();
  void receive_all();
  void sum_squares(const Tensor& squared_norm);

  Network& network_;
  Backend& backend_;
  GroupReduction& reduction_;
  PeerLink* link_ = nullptr;
  Optimizer optimizer_;
  std::optional<Ownership> ownership_;
  Tensor master_weights_;  // (Ownership::master_weights()) P
  Tensor squares_;         // f64: Backend::squares of the gradients, segment by segment
  Tensor gradients_;       // (elements) P
  bool rounded_ = false;
  // By part: the weights that the network reads, which products read rounded if it rounds them.
  // Those of the first received_ parts are current, from others too; started_: before
  // start_refresh().
  std::vector<std::vector<Tensor>> weights_of_parts_;
  size_t received_ = 0, started_ = 0;
  std::vector<Tensor> parts_;  // that processes exchange
};

}  // namespace bamtrain
