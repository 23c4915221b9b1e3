#pragma once
// Biases by distance in the CPU attention. Tables are reversed, so that a row's biases ascend with
// the key.

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class TableRows final : public LogitBias {
 public:
  static int64_t floats(int64_t T, int64_t, const ContentShape& content) {
    return table_length(T, content.causal);
  }

  TableRows(const Attention& a, const AttentionScratch& s, const BiasGradients*, Pieces& pieces)
      : a_(a), s_(s), table_(pieces.take(table_length(T_, a.causal()))) {}

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
    const Tensor& table = std::get<TableBias>(a_.bias).table;
    const float* const at_0 =
        table.ptr<float>() + h * table.stride[0] + (a_.causal() ? 0 : (table.shape[1] - 1) / 2);
    reverse_table(table_, T_, a_.causal(), [at_0](int64_t d) { return at_0[d]; });
  }
  BiasRows form(const Block& x) override { return {table_ + table_offset(T_, x.i0, x.j0), -1}; }

  void set_part(int64_t part, bool mine, bool clear) override {
    dtable_ = mine ? partial_table(s_, a_, b_, h_, part) : nullptr;
    if (mine && clear) std::fill_n(dtable_, table_length(T_, a_.causal()), 0.0f);
  }

  void add(const Block& dz, const RowFactors& f) override {
    if (!dtable_) return;
    if (dz.rows() == 1) return add_row(dz, f.bias[0]);
    // A tile: the sum of its diagonal n - (kQ - 1) is of elements (r, n - (kQ - 1) + r).
    float* const out = dtable_ + table_offset(T_, dz.i0 + kQ - 1, dz.j0);
    for (int64_t n = 0; n < kQ + kK; n += simd::kWidth) {
      const int64_t from = std::max<int64_t>(0, kQ - 1 - n - (simd::kWidth - 1));
      const int64_t to = std::min<int64_t>(dz.rows(), kQ - 1 - n + kK);
      Vec sum{};
      for (int64_t r = from; r < to; ++r) {
        sum += f.bias[r] * simd::load(dz.data + r * dz.stride + n - (kQ - 1) + r);
      }
      simd::store(out + n, simd::load(out + n) + sum);
    }
  }

  /// Sums the partial tables over sequences and parts, in order.
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
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

 private:
  void add_row(const Block& dz, float factor) {
    float* const to = dtable_ + table_offset(T_, dz.i0, dz.j0);
    for (int64_t n = 0; n < dz.keys(); n += simd::kWidth) {
      simd::store(to + n, simd::load(to + n) + factor * simd::load(dz.data + n));
    }
  }

  const Attention& a_;
  const AttentionScratch& s_;
  const int64_t T_ = a_.k.shape[1];
  int64_t b_ = 0, h_ = 0;
  float* table_;
  float* dtable_ = nullptr;  // null: another task's
};

template <class F>
inline void with_type_of(const TableBias&, F&& f) {
  f.template operator()<TableRows>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
