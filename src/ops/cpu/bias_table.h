#pragma once
// Biases by distance in the CPU attention. Tables are reversed, so that a row's biases ascend with
// the key.

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class TableStage : public StageOfKeys {
 public:
  TableStage(const Attention& a, int64_t, int64_t h, const BiasMemory& memory)
      : T_(a.k.shape[1]), table_(memory.table) {
    const Tensor& table = std::get<TableBias>(a.bias).table;
    const float* const at_0 =
        table.ptr<float>() + h * table.stride[0] + (a.causal() ? 0 : (table.shape[1] - 1) / 2);
    reverse_table(memory.table, T_, a.causal(), [at_0](int64_t d) { return at_0[d]; });
  }

  const float* of_keys(int64_t i, int64_t j0) const { return table_ + table_offset(T_, i, j0); }

  template <class F>
  static void for_row(const Attention& a, int64_t, int64_t h, const SeenKeys& row, F&& f) {
    const Tensor& of_heads = std::get<TableBias>(a.bias).table;
    const float* table = of_heads.ptr<float>() + h * of_heads.stride[0];
    for (int64_t j = row.first; j <= row.last; ++j) f(j - row.first, table[row.last - j]);
  }

  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s);

  class Adjoint;

 private:
  int64_t T_;
  const float* table_;
};

/// Adds into partial tables: see partial_table.
class TableStage::Adjoint : public PlainAdjoint {
 public:
  Adjoint(const BiasGradients&, const Attention& a, const AttentionScratch& s, float*)
      : a_(a), s_(s), T_(a.q.shape[1]) {}

  void set_head(const TaskHead& head) {
    b_ = head.b;
    h_ = head.h;
  }
  void set_part(int64_t part, bool mine) {
    dtable_ = partial_table(s_, a_, b_, h_, part);
    if (mine) std::fill_n(dtable_, table_length(T_, a_.causal()), 0.0f);
  }

  /// Adds the diagonals of one tile to the reversed table: lane n of the tile's 2 kK - 1 distances
  /// is the sum over rows r of element (r, n - (kQ - 1) + r).
  void add_tile(const float* dz, int64_t rows, int64_t i0, int64_t j0) {
    float* out = dtable_ + table_offset(T_, i0 + kQ - 1, j0);
    for (int64_t n0 = 0; n0 < kQ + kK; n0 += simd::kWidth) {
      const int64_t from = std::max<int64_t>(0, kQ - 1 - n0 - (simd::kWidth - 1));
      const int64_t to = std::min<int64_t>(rows, kQ - 1 - n0 + kK);
      Vec sum{};
      for (int64_t r = from; r < to; ++r) {
        sum += simd::load(dz + r * kStride + kMargin + n0 - (kQ - 1) + r);
      }
      simd::store(out + n0, simd::load(out + n0) + sum);
    }
  }

  void add_row(const TableStage&, const float* dz, const RowSpan& row, float of_bias) {
    float* const to = dtable_ + table_offset(T_, row.i, row.first);
    for (int64_t n = 0; n < row.n; n += simd::kWidth) {
      simd::store(to + n, simd::load(to + n) + of_bias * simd::load(dz + n));
    }
  }

 private:
  const Attention& a_;
  const AttentionScratch& s_;
  int64_t T_, b_ = 0, h_ = 0;
  float* dtable_ = nullptr;
};

/// Sums the reversed partial tables over sequences and parts, in order, into dtable.
inline void TableStage::join(const BiasGradients& g, const Attention& a,
                             const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  const Tensor& dtable = std::get<TableBiasGradients>(g).dtable;
  parallel_for(H, [&](int64_t h) {
    const int64_t behind = a.causal() ? 0 : T - 1;  // distances below 0
    float* total = dtable.ptr<float>() + h * dtable.stride[0];
    std::fill_n(total, behind + T, 0.0f);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t n = 0; n < parts_of(T); ++n) {
        const float* part = partial_table(s, a, b, h, n);
        for (int64_t d = -behind; d < T; ++d) total[behind + d] += part[table_offset(T, d, 0)];
      }
    }
  });
}

template <class F>
inline void with_stage(const TableBias&, F&& f) {
  f.template operator()<TableStage>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
