#include "ops/cpu/attention_partials.h"

#include "core/parallel.h"
#include "ops/cpu/attention_tasks.h"
#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

float* partial_table(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part) {
  const int64_t heads = b * a.q.shape[2] + h;
  return s.dtable.ptr<float>() + (heads * parts_of(a.q.shape[1]) + part) * s.dtable.stride[2];
}

float* key_sums(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h) {
  return partial_table(s, a, b, h, 0);
}

double* partial_fire(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                     int64_t part) {
  const int64_t heads = b * a.q.shape[2] + h;
  return s.dfire.ptr<double>() + (heads * parts_of(a.q.shape[1]) + part) * 2 * kFireSegments;
}

namespace {

/// Sums the reversed partial tables over sequences and parts, in order, into g.dtable (H, T).
void reduce(const TableBiasGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  parallel_for(H, [&](int64_t h) {
    float* total = g.dtable.ptr<float>() + h * g.dtable.stride[0];
    std::fill_n(total, T, 0.0f);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t n = 0; n < parts_of(T); ++n) {
        const float* part = partial_table(s, a, b, h, n);
        for (int64_t d = 0; d < T; ++d) total[d] += part[table_offset(T, d, 0)];
      }
    }
  });
}

/// Adds the keys' part to that of the rows, which is in g.dsums.
void reduce(const SumsBiasGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  parallel_for(B * H, [&](int64_t n) {
    const float* of_keys = key_sums(s, a, n / H, n % H);
    float* total = g.dsums.ptr<float>() + n * T;
    for (int64_t t = 0; t < T; ++t) total[t] += of_keys[t];
  });
}

/// Sums the partial sums of FireBias likewise into g.dfire (H, kFireSegments, 2).
void reduce(const FireBiasGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  std::fill_n(g.dfire.ptr<double>(), g.dfire.size(), 0.0);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      double* total = g.dfire.ptr<double>() + h * 2 * kFireSegments;
      for (int64_t n = 0; n < parts_of(T); ++n) {
        const double* part = partial_fire(s, a, b, h, n);
        for (int64_t k = 0; k < 2 * kFireSegments; ++k) total[k] += part[k];
      }
    }
  }
}

void reduce(const Nothing&, const Attention&, const AttentionScratch&) {}

}  // namespace

void join_partials(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  std::visit([&](const auto& bias) { reduce(bias, a, s); }, g);
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
