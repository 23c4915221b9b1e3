// Per-head statistics of attention's rows for evaluations.

#include "core/element.h"
#include "model/mechanism_part.h"
#include "model/model.h"
#include "ops/nonzero_blocks.h"

namespace bamtrain {

/// Writes the statistics of layer l, whose forward pass has just run, to `to` as Model::evaluate
/// returns them. Sums row by row in fp64, bitwise identical whatever else the batch holds.
void Model::sum_attention_statistics(int64_t l, const AttentionSaved& saved, const Attention& a,
                                     double* to) {
  const int64_t H = config_.heads, T = T_;
  const auto at = [&](AttentionStatistic number, int64_t b, int64_t h) -> double& {
    return to[((b * config_.layers + l) * kAttentionStatistics + static_cast<int64_t>(number)) * H +
              h];
  };
  const Tensor entropy = rows_of(entropy_, B_, H, T),
               nonzero_keys = rows_of(nonzero_keys_, B_, H, T);
  backend_.attention_statistics(entropy, nonzero_keys, saved, a);
  const auto sum_rows = [&](const Tensor& t, AttentionStatistic number) {
    backend_.download(host_rows_.data(), t);
    const Tensor host(host_rows_.data(), t.dtype, {B_ * H * T});
    for (int64_t n = 0; n < B_ * H; ++n) {
      double& sum = at(number, n / H, n % H) = 0;
      for (int64_t i = 0; i < T; ++i) sum += get(host, n * T + i);
    }
  };
  sum_rows(entropy, AttentionStatistic::entropy);
  sum_rows(nonzero_keys, AttentionStatistic::nonzero_keys);
  if (saved.live) backend_.download(host_rows_.data(), saved.live);
  const auto* words = reinterpret_cast<const int32_t*>(host_rows_.data());
  const int64_t of_window = mechanisms_.window(l) * B_ * T;
  const int32_t* first_key = host_first_key_.data() + of_window;
  const int32_t* last_key = causal() ? nullptr : host_last_key_.data() + of_window;
  for (int64_t n = 0; n < B_ * H; ++n) {
    const BlockCounts tiles =
        count_blocks(saved.live ? words + n * live_groups(T) * live_words(T) : nullptr,
                     first_key + n / H * T, last_key ? last_key + n / H * T : nullptr, T);
    at(AttentionStatistic::nonzero_blocks, n / H, n % H) = static_cast<double>(tiles.nonzero);
    at(AttentionStatistic::visible_blocks, n / H, n % H) = static_cast<double>(tiles.visible);
  }
}

}  // namespace bamtrain
