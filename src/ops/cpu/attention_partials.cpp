#include "ops/cpu/attention_partials.h"

#include <algorithm>
#include <variant>

#include "core/parallel.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/biases.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

float* partial_table(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part) {
  const int64_t heads = b * a.q.shape[2] + h;
  return s.dtable.ptr<float>() + (heads * parts_of(a.q.shape[1]) + part) * s.dtable.stride[2];
}

float* key_numbers(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h) {
  return partial_table(s, a, b, h, 0);
}

float* partial_behind(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                      int64_t part) {
  return partial_table(s, a, b, h, part);
}

double* partial_fire(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part) {
  const int64_t heads = b * a.q.shape[2] + h;
  return s.dfire.ptr<double>() + (heads * parts_of(a.q.shape[1]) + part) * 2 * kFireSegments;
}

void join_parts(const Attention& a, const AttentionScratch& s) {
  if (!std::holds_alternative<TokenBias>(a.bias)) return;
  const int64_t T = a.q.shape[1], H = a.q.shape[2], parts = parts_of(T);
  parallel_for(a.q.shape[0] * H, [&](int64_t n) {
    // A part knows what the next one does, or less: the last part's are all.
    float* const total = key_numbers(s, a, n / H, n % H);
    for (int64_t part = 1; part < parts; ++part) {
      const float* const more = partial_table(s, a, n / H, n % H, part);
      const int64_t known = keys_of_part(a, part - 1), end = keys_of_part(a, part);
      for (int64_t j = 0; j < known; ++j) total[j] += more[j];
      std::copy(more + known, more + end, total + known);
    }
  });
}

void join_partials(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  dispatch_rows(a, [&]<class Stage>() { Stage::join(g, a, s); });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
