#include "ops/cpu/attention_tiles.h"

#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

void pack_rows(float* out, const Tensor& x, int64_t b, int64_t h, int64_t begin, int64_t end,
               int64_t Dp, float factor) {
  const int64_t D = x.shape[3];
  rows::dispatch_activation(x.dtype, [&]<class A>() {
    const A* base = static_cast<const A*>(x.data) + b * x.stride[0] + h * x.stride[2];
    for (int64_t t = begin; t < end; ++t, out += Dp) {
      const A* row = base + t * x.stride[1];
      rows::for_vectors(D, [&](int64_t c, auto lanes) {
        simd::store(out + c, rows::load(row + c, lanes) * factor);
      });
    }
  });
}

void unpack_rows(const Tensor& x, int64_t b, int64_t h, int64_t begin, int64_t end, const float* in,
                 int64_t Dp, float factor) {
  const int64_t D = x.shape[3];
  rows::dispatch_activation(x.dtype, [&]<class A>() {
    A* base = static_cast<A*>(x.data) + b * x.stride[0] + h * x.stride[2];
    for (int64_t t = begin; t < end; ++t, in += Dp) {
      A* row = base + t * x.stride[1];
      rows::for_vectors(D, [&](int64_t c, auto lanes) {
        rows::store(row + c, simd::load(in + c) * factor, lanes);
      });
    }
  });
}

void transpose_tiles(float* out, const float* rows, int64_t begin, int64_t end, int64_t D,
                     int64_t Dp) {
  for (int64_t j = begin; j < padded_keys(end); j += simd::kWidth) {
    float* const to = out + j / kK * kK * D + j % kK;  // of channel 0
    for (int64_t d = 0; d < D; d += simd::kWidth) {
      Vec v[simd::kWidth];
      for (int64_t r = 0; r < simd::kWidth; ++r) {
        v[r] = j + r < end ? simd::load(rows + (j + r) * Dp + d) : Vec{};
      }
      simd::transpose(v);
      const int64_t channels = std::min<int64_t>(simd::kWidth, D - d);
      for (int64_t c = 0; c < channels; ++c) simd::store(to + (d + c) * kK, v[c]);
    }
  }
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
