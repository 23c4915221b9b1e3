#include "train/training_state.h"

#include <cmath>
#include <utility>

namespace bamtrain {

TrainingState::TrainingState(const OptimizerConfig& config, Network& network, Backend& backend,
                             GroupReduction& reduction)
    : network_(network),
      backend_(backend),
      reduction_(reduction),
      optimizer_(config, network.parameters(), backend) {}

void TrainingState::plan(Arena& arena, bool divided) {
  const bool has_rounded = network_.rounded_weights().size() > 0;
  ownership_.emplace(network_, reduction_, divided,
                     has_rounded ? Ownership::MasterWeights::exact : Ownership::MasterWeights::all);
  arena.add("weights.masters", &master_weights_, backend_.parameter_dtype(),
            {ownership_->master_weights()});
  optimizer_.plan(arena, ownership_->owned(), ownership_->moments());
  int64_t blocks = 0;
  for (const FlatRange& segment : ownership_->segments()) blocks += squares_blocks(segment.size());
  arena.add("gradients.squares", &squares_, Dtype::f64, {blocks});
}

void TrainingState::begin(const Tensor& gradients) {
  gradients_ = gradients;
  const bool whole = is_whole(StateTensor::master_weights);
  network_.set_master_weights(
      whole ? master_weights_
            : master_weights_.slice(0, 0, network_.parameters().exact_elements()));
  const int64_t exact = network_.parameters().exact_elements();
  const Tensor& rounded = network_.rounded_weights();
  for (const std::vector<FlatRange>& ranges : ownership_->ranges_of_parts()) {
    std::vector<Tensor>& weights = weights_of_parts_.emplace_back();
    for (const FlatRange& range : ranges) {
      if (range.size() == 0) continue;
      weights.push_back(range.of(rounded && range.begin >= exact ? rounded : master_weights_));
    }
  }
  received_ = weights_of_parts_.size();
}

void TrainingState::refresh() {
  const bool first = !std::exchange(rounded_, true);
  if (first && is_whole(StateTensor::master_weights)) return network_.refresh();
  if (first) round_own();
  receive_all();
  network_.refresh_mechanisms();
}

bool TrainingState::start_refresh(Exchange& exchange) {
  if (received_ == weights_of_parts_.size()) {
    refresh();
    return false;
  }
  if (!std::exchange(rounded_, true)) round_own();
  for (started_ = received_; received_ < weights_of_parts_.size(); ++received_) {
    exchange.gather(weights_of_parts_[received_]);
  }
  return true;
}

void TrainingState::receive(Exchange& exchange, int part) {
  const auto number = static_cast<size_t>(part);
  if (number >= started_) exchange.wait(number - started_ + 1);
  if (part == 0) network_.refresh_mechanisms();
}

void TrainingState::round_own() {
  for (const OwnedRange& own : ownership_->owned()) {
    if (own.elements.size() == 0) continue;
    backend_.convert(own.elements.of(network_.rounded_weights()),
                     part_of(StateTensor::master_weights, own));
  }
}

void TrainingState::receive_all() {
  for (; received_ < weights_of_parts_.size(); ++received_) gather(weights_of_parts_[received_]);
}

void TrainingState::update(const Tensor& squared_norm, Exchange* exchange) {
  sum_squares(squared_norm);
  optimizer_.clip(squared_norm);
  const bool divided = ownership_->divided();
  const std::vector<std::vector<FlatRange>>& parts = ownership_->ranges_of_parts();
  for (size_t part = 0; part < parts.size(); ++part) {
    optimizer_.update(parts[part], master_weights_, network_.rounded_weights(), gradients_);
    if (part == 0 && divided && exchange != nullptr) exchange->gather(weights_of_parts_[0]);
  }
  if (!divided) return;
  received_ = exchange != nullptr ? 1 : 0;
  if (exchange != nullptr) exchange->finish();
}

/// In blocks that begin with each segment, whoever owns them: so the sum has the same bits on any
/// number of processes.
void TrainingState::sum_squares(const Tensor& squared_norm) {
  parts_.clear();
  int64_t first = 0;
  for (size_t s = 0; s < ownership_->segments().size(); ++s) {
    const FlatRange &segment = ownership_->segments()[s], &own = ownership_->owned()[s].elements;
    const int64_t blocks = squares_blocks(segment.size());
    if (own.size() > 0) {
      const int64_t before = (own.begin - segment.begin) / kSquaresBlock;
      backend_.squares(squares_.slice(0, first + before, squares_blocks(own.size())),
                       own.of(gradients_));
    }
    parts_.push_back(squares_.slice(0, first, blocks));
    first += blocks;
  }
  if (ownership_->divided()) gather(parts_, kSquaresBlock);
  backend_.zero(squared_norm);
  backend_.sum(squared_norm, squares_);
}

void TrainingState::gather(std::span<const Tensor> tensors, int64_t per) {
  reduction_.gather(*link_, tensors, per);
  link_->join();
}

const Tensor& TrainingState::own(StateTensor t) const {
  if (t == StateTensor::master_weights) return master_weights_;
  return t == StateTensor::first_moments ? optimizer_.first_moments() : optimizer_.second_moments();
}

const Tensor& TrainingState::assemble(StateTensor t) {
  if (is_whole(t)) {
    receive_all();
    return own(t);
  }
  parts_.clear();
  for (size_t s = 0; s < ownership_->segments().size(); ++s) {
    const OwnedRange& range = ownership_->owned()[s];
    if (range.elements.size() > 0) {
      backend_.copy(range.elements.of(gradients_), part_of(t, range));
    }
    parts_.push_back(ownership_->segments()[s].of(gradients_));
  }
  gather(parts_);
  backend_.synchronize();  // others may read it
  return gradients_;
}

void TrainingState::take(StateTensor t) {
  if (t == StateTensor::master_weights) {
    rounded_ = false;
    received_ = is_whole(t) ? weights_of_parts_.size() : 0;
  }
  if (is_whole(t)) return;
  for (const OwnedRange& range : ownership_->owned()) {
    if (range.elements.size() == 0) continue;
    backend_.copy(part_of(t, range), range.elements.of(gradients_));
  }
}

void TrainingState::for_own(StateTensor t,
                            const std::function<void(FlatRange, const Tensor&)>& f) const {
  require(ownership_->divided(), "a state that processes divide");
  for (const OwnedRange& range : ownership_->owned()) {
    if (range.elements.size() > 0) f(range.elements, part_of(t, range));
  }
}

bool TrainingState::is_finite() {
  bool finite = true;
  for (const StateTensor t : kStateTensors) {
    const int64_t blocks = squares_blocks(own(t).size());
    if (blocks == 0) continue;
    std::vector<double> squares(static_cast<size_t>(blocks));
    const Tensor on_device = squares_.slice(0, 0, blocks);
    backend_.squares(on_device, own(t));
    backend_.download(squares.data(), on_device);
    for (const double x : squares) finite &= std::isfinite(x);
  }
  return finite;
}

}  // namespace bamtrain
