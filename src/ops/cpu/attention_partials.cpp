#include "ops/cpu/attention_partials.h"

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

double* partial_fire(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part) {
  const int64_t heads = b * a.q.shape[2] + h;
  return s.dfire.ptr<double>() + (heads * parts_of(a.q.shape[1]) + part) * 2 * kFireSegments;
}

void join_partials(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  dispatch_rows(a, [&]<class Stage>() { Stage::join(g, a, s); });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
