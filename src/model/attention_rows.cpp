// Sums over attention's rows, for evaluations that look at them.

#include "core/element.h"
#include "model/mechanism_part.h"
#include "model/model.h"

namespace bamtrain {

/// Into `to`, as Model::evaluate gives them, those of a layer whose forward pass has just run: row
/// by row in fp64, the same bits whatever else the batch holds.
void Model::sum_attention_rows(int64_t l, const AttentionSaved& saved, const Attention& a,
                               double* to) {
  const int64_t H = config_.heads, T = T_;
  const Tensor entropy = rows_of(entropy_, B_, H, T), support = rows_of(support_, B_, H, T);
  backend_.attention_statistics(entropy, support, saved, a);
  double* of_layer = to + 2 * H * l;
  for (const Tensor& t : {entropy, support}) {
    backend_.download(host_rows_.data(), t);
    const Tensor host(host_rows_.data(), t.dtype, {B_ * H * T});
    for (int64_t n = 0; n < B_ * H; ++n) {
      double& sum = of_layer[n / H * config_.layers * 2 * H + n % H] = 0;
      for (int64_t i = 0; i < T; ++i) sum += get(host, n * T + i);
    }
    of_layer += H;
  }
}

}  // namespace bamtrain
