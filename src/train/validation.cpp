// A run's validation passes.

#include "train/validation.h"

#include <algorithm>

#include "core/checked.h"
#include "train/trainer.h"

namespace bamtrain {

namespace {

/// One number per head, and of what: as Model::evaluate gives those of a sequence.
struct HeadSums {
  int64_t layers, heads;

  int64_t size() const { return layers * kAttentionNumbers * heads; }
  int64_t at(int64_t layer, AttentionNumber number, int64_t head) const {
    return (layer * kAttentionNumbers + static_cast<int64_t>(number)) * heads + head;
  }
};

/// Of sequences of T tokens; `sums` are theirs, one after another.
AttentionMeans means_of(const std::vector<double>& sums, const HeadSums& of, int64_t T) {
  AttentionMeans means;
  means.windows = static_cast<int64_t>(sums.size()) / of.size();
  const auto total = [&](int64_t l, AttentionNumber number, int64_t h) {
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
  const auto mean = [&](AttentionNumber number) {
    return by_head([&, number](int64_t l, int64_t h) {
      return total(l, number, h) / static_cast<double>(means.windows * T);
    });
  };
  means.entropy = mean(AttentionNumber::entropy);
  means.support = mean(AttentionNumber::support);
  means.live_tiles = by_head([&](int64_t l, int64_t h) {
    return total(l, AttentionNumber::live_tiles, h) / total(l, AttentionNumber::visible_tiles, h);
  });
  return means;
}

}  // namespace

/// What would otherwise end the run at its first validation.
void Trainer::check_validation_shards() {
  const auto& validation = validation_->sources()[0].shards->manifest();
  for (const Source& s : loader_->sources()) {
    const auto& training = s.shards->manifest();
    if (!training || !validation) continue;
    if (training->tokenizer_sha256 == validation->tokenizer_sha256) continue;
    throw Error(ExitCode::data, "data.val",
                "shards of the tokenizer of data.train (sha256 " + training->tokenizer_sha256 + ")",
                "shards of another (sha256 " + validation->tokenizer_sha256 + ")",
                "tokenize both texts with one tokenizer");
  }
  const int64_t T = config_.data.sequence_length, windows = validation_windows();
  std::vector<int32_t> window(static_cast<size_t>(T + 1));
  for (int64_t w = 0; w < windows; ++w) validation_->read(w, 1, window.data());
}

int64_t Trainer::validation_windows() const {
  if (!validation_) return 0;
  const int64_t all = validation_->windows_per_epoch();
  if (config_.eval.tokens == 0) return all;
  return std::clamp<int64_t>(config_.eval.tokens / config_.data.sequence_length, 1, all);
}

int64_t Trainer::attention_windows() const {
  return std::min(config_.eval.attention, validation_windows());
}

std::optional<Validation> Trainer::validate(Communicator& comm) {
  if (!validation_) return std::nullopt;
  const int64_t B = config_.train.micro_batch, T = config_.data.sequence_length;
  const int64_t windows = validation_windows(), batches = ceil_div(windows, B);
  const HeadSums of_heads = {config_.model.layers, config_.model.heads};
  const int64_t looked_at = attention_windows(), numbers = of_heads.size();
  // Slots per sequence, filled by one process and zero elsewhere: the sum over processes is exact.
  std::vector<double> sums(static_cast<size_t>(windows), 0.0);
  std::vector<double> attention(static_cast<size_t>(looked_at * numbers), 0.0);
  std::vector<double> losses(static_cast<size_t>(B * T)), rows_of_heads;
  refresh();
  for (int64_t batch = rank_; batch < batches; batch += processes_) {
    const int64_t first = batch * B, rows = std::min(B, windows - first);
    const int64_t looked_at_here = std::clamp<int64_t>(looked_at - first, 0, rows);
    std::vector<int32_t> part(static_cast<size_t>(rows * (T + 1)));
    validation_->read(first, rows, part.data());
    split_rows(part);
    rows_of_heads.resize(static_cast<size_t>(looked_at_here > 0 ? rows * numbers : 0));
    model_.evaluate(inputs_.data(), targets_.data(), rows, T, document_start_, losses.data(),
                    looked_at_here > 0 ? rows_of_heads.data() : nullptr);
    for (int64_t n = 0; n < rows * T; ++n) {
      sums[static_cast<size_t>(first + n / T)] += losses[static_cast<size_t>(n)];
    }
    if (looked_at_here == 0) continue;
    std::copy_n(rows_of_heads.begin(), looked_at_here * numbers,
                attention.begin() + first * numbers);
  }
  if (processes_ > 1) {
    comm.all_reduce_sum(sums.data(), windows);
    comm.all_reduce_sum(attention.data(), looked_at * numbers);
  }
  std::vector<Cluster> clusters;
  clusters.reserve(sums.size());
  for (double s : sums) clusters.push_back({s, T});
  Validation result = {clustered_mean(clusters), std::nullopt};
  if (looked_at > 0) result.attention = means_of(attention, of_heads, T);
  return result;
}

}  // namespace bamtrain
