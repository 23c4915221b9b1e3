// A run's validation passes.

#include "train/validation.h"

#include <algorithm>
#include <numeric>

#include "core/checked.h"
#include "tasks/sequence_sums.h"
#include "train/trainer.h"

namespace bamtrain {

namespace {

/// Layout of attention statistics as Network::evaluate returns them for one sequence.
struct HeadSums {
  int64_t layers, heads;

  int64_t size() const { return layers * kAttentionStatistics * heads; }
  int64_t at(int64_t layer, AttentionStatistic number, int64_t head) const {
    return (layer * kAttentionStatistics + static_cast<int64_t>(number)) * heads + head;
  }
};

/// Means over sequences of T tokens; `sums` holds the sums of one sequence after another.
AttentionMeans means_of(const std::vector<double>& sums, const HeadSums& of, int64_t T) {
  AttentionMeans means;
  means.windows = static_cast<int64_t>(sums.size()) / of.size();
  const auto total = [&](int64_t l, AttentionStatistic number, int64_t h) {
    double sum = 0;
    for (int64_t w = 0; w < means.windows; ++w) {
      sum += sums[static_cast<size_t>(w * of.size() + of.at(l, number, h))];
    }
    return sum;
  };
  const auto by_head = [&](const auto& value) {
    HeadValues values(static_cast<size_t>(of.layers));
    for (int64_t l = 0; l < of.layers; ++l) {
      for (int64_t h = 0; h < of.heads; ++h) values[static_cast<size_t>(l)].push_back(value(l, h));
    }
    return values;
  };
  const auto mean = [&](AttentionStatistic number) {
    return by_head([&, number](int64_t l, int64_t h) {
      return total(l, number, h) / static_cast<double>(means.windows * T);
    });
  };
  means.entropy = mean(AttentionStatistic::entropy);
  means.nonzero_keys = mean(AttentionStatistic::nonzero_keys);
  means.nonzero_blocks = by_head([&](int64_t l, int64_t h) {
    return total(l, AttentionStatistic::nonzero_blocks, h) /
           total(l, AttentionStatistic::visible_blocks, h);
  });
  return means;
}

}  // namespace

/// Throws early what would otherwise end the run at its first validation.
void Trainer::check_validation_shards() {
  const auto& validation = validation_->shard_sources()[0].shards->manifest();
  for (const Source& s : training_->shard_sources()) {
    const auto& training = s.shards->manifest();
    if (!training || !validation) continue;
    if (training->tokenizer_sha256 == validation->tokenizer_sha256) continue;
    throw Error(ExitCode::data, "data.val",
                "shards of the tokenizer of data.train (sha256 " + training->tokenizer_sha256 + ")",
                "shards of another (sha256 " + validation->tokenizer_sha256 + ")",
                "tokenize both texts with one tokenizer");
  }
  const int64_t T = config_.data.sequence_length, windows = validation_sequences();
  std::vector<int32_t> window(static_cast<size_t>(T + 1));
  for (int64_t w = 0; w < windows; ++w) validation_->shards()->read(w, 1, window.data());
}

int64_t Trainer::validation_sequences() const {
  if (!validation_) return 0;
  const Loader* const shards = validation_->shards();
  const int64_t wanted = config_.eval.tokens / config_.data.sequence_length;
  if (!shards) {
    const int64_t count = validation_->tasks()[0].task->count();
    if (config_.eval.tokens == 0) return count > 0 ? count : kTaskSequences;
    return count > 0 ? std::min(count, wanted) : wanted;
  }
  const int64_t all = shards->windows_per_epoch();
  return config_.eval.tokens == 0 ? all : std::clamp<int64_t>(wanted, 1, all);
}

/// 0 for tasks, whose sequences differ in length.
int64_t Trainer::attention_windows() const {
  if (!validation_ || !validation_->shards()) return 0;
  return std::min(config_.eval.attention, validation_sequences());
}

std::optional<Validation> Trainer::validate(Communicator& comm,
                                            const std::function<void(double)>& progress) {
  if (!validation_) return std::nullopt;
  const int64_t B = config_.train.micro_batch, T = config_.data.sequence_length;
  const int64_t sequences = validation_sequences();
  // Sequences of a task belong to steps of kPublishedBatch, however many are read at a time.
  const int64_t step = validation_->tasks().empty() ? B : kPublishedBatch;
  const int64_t batches_of_step = ceil_div(step, B);
  const int64_t batches = ceil_div(sequences, step) * batches_of_step;
  const HeadSums of_heads = {config_.model.layers, config_.model.heads};
  const int64_t looked_at = attention_windows(), numbers = of_heads.size();
  const TaskInfo* const task =
      validation_->tasks().empty() ? nullptr : &validation_->tasks()[0].task->info();
  // One slot per sequence, filled by one process and zero elsewhere, so the sum over processes is
  // exact.
  std::vector<SequenceSums> slots(static_cast<size_t>(sequences));
  std::vector<double> attention(static_cast<size_t>(looked_at * numbers), 0.0);
  std::vector<double> losses(static_cast<size_t>(B * T)), rows_of_heads;
  std::vector<int32_t> answers(static_cast<size_t>(task ? B * T : 0));
  std::vector<int64_t> batch_numbers;
  state_.refresh();
  for (int64_t batch = rank_; batch < batches; batch += processes_) {
    const int64_t step_number = batch / batches_of_step;
    const int64_t first = step_number * step + batch % batches_of_step * B;
    const int64_t rows = std::min({B, (step_number + 1) * step - first, sequences - first});
    if (rows <= 0) continue;  // the last step has fewer
    const int64_t looked_at_here = std::clamp<int64_t>(looked_at - first, 0, rows);
    batch_numbers.resize(static_cast<size_t>(rows));
    std::iota(batch_numbers.begin(), batch_numbers.end(), first);
    SequenceCounts counts;
    const int64_t t = validation_->read(batch_numbers, step_number, inputs_.data(), targets_.data(),
                                        &counts, lengths_.data());
    rows_of_heads.resize(static_cast<size_t>(looked_at_here > 0 ? rows * numbers : 0));
    const int32_t* const positions =
        model_->randomization().in_evaluation
            ? positions_of(validation_position_rng_, {batch_numbers, step_number, counts.longest},
                           t)
            : nullptr;
    model_->evaluate(inputs_.data(), targets_.data(), rows, t, document_start_, losses.data(),
                     looked_at_here > 0 ? rows_of_heads.data() : nullptr,
                     task ? answers.data() : nullptr, positions, lengths_.data());
    for (int64_t b = 0; b < rows; ++b) {
      const auto row = [&]<class X>(const std::vector<X>& of) {
        return std::span<const X>(of).subspan(static_cast<size_t>(b * t), static_cast<size_t>(t));
      };
      slots[static_cast<size_t>(first + b)] = sequence_sums(
          row(losses), row(targets_), task ? row(answers) : std::span<const int32_t>(),
          task ? task->terminator : kIgnoreIndex);
    }
    if (looked_at_here > 0) {
      std::copy_n(rows_of_heads.begin(), looked_at_here * numbers,
                  attention.begin() + first * numbers);
    }
    progress(static_cast<double>(batch + 1) / static_cast<double>(batches));
  }
  if (processes_ > 1) {
    comm.sum(&slots[0].loss, sequences * SequenceSums::kNumbers);
    comm.sum(attention.data(), looked_at * numbers);
  }
  Validation result = {mean_loss(slots), std::nullopt, std::nullopt};
  if (task) result.scores = task_scores(slots, task->terminator != kIgnoreIndex);
  if (looked_at > 0) result.attention = means_of(attention, of_heads, T);
  return result;
}

}  // namespace bamtrain
