#pragma once
// The bias of family fire for the CPU attention, a row of a block at a time. See FireTables in
// ops/mechanisms/fire.h. Along a row, segments follow each other up to the row's own key. Far from
// the diagonal a tile's row lies in one segment. Each key after the query has segments of its own.

#include <algorithm>
#include <cstdlib>

#include "core/parallel.h"
#include "ops/cpu/bias.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

class FireRows final : public LogitBias {
 public:
  static int64_t floats(int64_t T, int64_t, const ContentShape& content) {
    return 2 * table_length(T, content.causal) + std::max(padded_keys(T), kQ * kK);
  }

  FireRows(const Attention& a, const AttentionScratch& s, const BiasGradients* g, Pieces& pieces)
      : a_(a),
        s_(s),
        g_(g),
        fire_(std::get<FireBias>(a.bias)),
        psi_(pieces.take(table_length(T_, a.causal()))),
        psi_dc_(pieces.take(table_length(T_, a.causal()))),
        formed_(pieces.take(std::max(padded_keys(T_), kQ * kK))),
        inverse_(fire_.tables.inverse.ptr<float>()) {
    const auto reverse = [&](float* to, const Tensor& of) {
      const float* const at_0 = of.ptr<float>();
      reverse_table(to, T_, a.causal(), [at_0](int64_t d) { return at_0[std::abs(d)]; });
    };
    reverse(psi_, fire_.tables.psi);
    if (g) reverse(psi_dc_, fire_.tables.psi_dc);
  }

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
    positions_ = fire_.positions.ptr<int32_t>() + b * a_.q.shape[1];
    slope_ = fire_.tables.slope.ptr<float>() + h * kFireSegments;
    offset_ = fire_.tables.offset.ptr<float>() + h * kFireSegments;
  }

  BiasRows form(const Block& x) override {
    for (int64_t i = x.i0; i < x.i1; ++i) {
      float* const to = formed_ + (i - x.i0) * kK;
      const float* const psi = psi_ + table_offset(T_, i, x.j0);
      const float of_row = inverse_[position_of(i)];
      for_segments(i, x, [&](int64_t segment, int64_t begin, int64_t end) {
        const Vec factor = simd::splat(slope_[segment] * of_row);
        const Vec constant = simd::splat(offset_[segment]);
        for_lanes(begin, end, [&](int64_t n, simd::IVec inside) {
          const Vec b = factor * simd::load(psi + n) + constant;
          simd::store(to + n, inside ? b : simd::load(to + n));
        });
      });
      for_later_keys(i, x, [&](int64_t segment, int64_t n, float of_key) {
        to[n] = slope_[segment] * of_key * psi[n] + offset_[segment];
      });
    }
    return {formed_, kK};
  }

  /// A query's own gradients are added directly, the rest into partial sums: of segments, and of
  /// keys after queries.
  void set_gradients(const TaskHead& head) override {
    u_ = head.of_rows(std::get<FireBiasGradients>(*g_).dfire_u, a_);
    dpsi_ = head.of_rows(std::get<FireBiasGradients>(*g_).dfire_psi, a_);
  }
  void set_part(int64_t part, bool mine, bool clear) override {
    sums_ = mine ? partial(s_, a_, b_, h_, part) : nullptr;
    if (mine && clear) std::fill_n(sums_, 2 * kFireSegments, 0.0);
    if (a_.causal()) return;
    u_later_ = partial_table(s_, a_, b_, h_, part);
    psi_later_ = u_later_ + T_;
    if (mine && clear) std::fill_n(u_later_, 2 * T_, 0.0f);
  }
  void add(const Block& dz, const RowFactors& f) override {
    if (!sums_) return;
    for (int64_t i = dz.i0; i < dz.i1; ++i) {
      const float* const db = dz.at(i, dz.j0);
      const float by = f.bias[i - dz.i0], of_row = inverse_[position_of(i)];
      const int64_t at = table_offset(T_, i, dz.j0);
      const auto add_to = [&](int64_t segment, float one, float u) {
        sums_[2 * segment] += static_cast<double>(one);
        sums_[2 * segment + 1] += static_cast<double>(u);
      };
      for_segments(i, dz, [&](int64_t segment, int64_t begin, int64_t end) {
        Vec one{}, with_psi{}, with_psi_dc{};
        for_lanes(begin, end, [&](int64_t n, simd::IVec inside) {
          const Vec d = inside ? by * simd::load(db + n) : Vec{};
          one += d;
          with_psi += d * simd::load(psi_ + at + n);
          with_psi_dc += d * simd::load(psi_dc_ + at + n);
        });
        const float u = simd::sum(with_psi) * of_row;
        add_to(segment, simd::sum(one), u);
        u_[i] += slope_[segment] * u;
        dpsi_[i] += slope_[segment] * simd::sum(with_psi_dc);
      });
      for_later_keys(i, dz, [&](int64_t segment, int64_t n, float of_key) {
        const float d = by * db[n], u = d * psi_[at + n] * of_key;
        add_to(segment, d, u);
        u_later_[dz.j0 + n] += slope_[segment] * u;
        psi_later_[dz.j0 + n] += slope_[segment] * (d * psi_dc_[at + n]);
      });
    }
  }

  /// Sums the partial sums over sequences and parts, in order.
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
    const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
    const auto& [dfire, u, psi] = std::get<FireBiasGradients>(g);
    std::fill_n(dfire.ptr<double>(), dfire.size(), 0.0);
    for (int64_t n = 0; n < B * H * parts_of(T); ++n) {
      const int64_t head = n / parts_of(T), h = head % H;
      const double* const part = partial(s, a, head / H, h, n % parts_of(T));
      double* const total = dfire.ptr<double>() + h * 2 * kFireSegments;
      for (int64_t k = 0; k < 2 * kFireSegments; ++k) total[k] += part[k];
    }
    if (a.causal()) return;
    parallel_for(B * H, [&, &to_u = u, &to_psi = psi](int64_t head) {
      for (int64_t n = 0; n < parts_of(T); ++n) {
        const float* const part = partial_table(s, a, head / H, head % H, n);
        for (int64_t t = 0; t < T; ++t) {
          to_u.ptr<float>()[head * T + t] += part[t];
          to_psi.ptr<float>()[head * T + t] += part[T + t];
        }
      }
    });
  }

 private:
  /// Partial sums of one head and one part of the queries: (kFireSegments, 2).
  static double* partial(const AttentionScratch& s, const Attention& a, int64_t b, int64_t h,
                         int64_t part) {
    const int64_t heads = b * a.q.shape[2] + h;
    return s.dfire.ptr<double>() + (heads * parts_of(a.q.shape[1]) + part) * 2 * kFireSegments;
  }
  int32_t position_of(int64_t i) const { return positions_[i - a_.past()]; }

  /// The keys of a block that use the segments of query i.
  int64_t lanes_of_row(int64_t i, const Block& x) const {
    return a_.causal() ? x.keys() : std::clamp<int64_t>(i - x.j0 + 1, 0, x.keys());
  }
  /// Calls f(segment, begin, end) for each range [begin, end) of those keys that lies in one
  /// segment, in order.
  template <class F>
  void for_segments(int64_t i, const Block& x, F&& f) const {
    const int64_t lanes = lanes_of_row(i, x);
    const int32_t* const ends =
        fire_.tables.ends.ptr<int32_t>() + int64_t{position_of(i)} * kFireHidden;
    const auto d = static_cast<int32_t>(i - x.j0);
    int64_t segment = std::upper_bound(ends, ends + kFireHidden, d) - ends;
    for (int64_t begin = 0; begin < lanes; --segment) {
      const int64_t end =
          segment == 0 ? lanes : std::min<int64_t>(lanes, d - ends[segment - 1] + 1);
      if (end > begin) f(segment, begin, end);
      begin = std::max(begin, end);
    }
  }
  /// Calls f(segment, n, inverse) for each key n of a block after query i.
  template <class F>
  void for_later_keys(int64_t i, const Block& x, F&& f) const {
    for (int64_t n = lanes_of_row(i, x); n < std::min(x.keys(), T_ - x.j0); ++n) {
      const int32_t position = position_of(x.j0 + n);
      const int32_t* const ends =
          fire_.tables.ends.ptr<int32_t>() + int64_t{position} * kFireHidden;
      const auto d = static_cast<int32_t>(x.j0 + n - i);
      f(std::upper_bound(ends, ends + kFireHidden, d) - ends, n, inverse_[position]);
    }
  }
  /// Calls f(n, inside) for the vectors that hold any lane of [begin, end), n the vector's first
  /// lane; `inside` masks the lanes in the range.
  template <class F>
  static void for_lanes(int64_t begin, int64_t end, F&& f) {
    for (int64_t n = begin / simd::kWidth * simd::kWidth; n < end; n += simd::kWidth) {
      const simd::IVec lane = simd::lanes() + static_cast<int32_t>(n);
      f(n, (lane >= static_cast<int32_t>(begin)) & (lane < static_cast<int32_t>(end)));
    }
  }

  const Attention& a_;
  const AttentionScratch& s_;
  const BiasGradients* g_;
  const FireBias& fire_;
  const int64_t T_ = a_.k.shape[1];
  int64_t b_ = 0, h_ = 0;
  float *psi_, *psi_dc_;                              // reversed, see reverse_table
  float* formed_;                                     // a tile, or a row
  const float* inverse_;                              // by position
  const int32_t* positions_ = nullptr;                // by query
  const float *slope_ = nullptr, *offset_ = nullptr;  // of the head
  // Gradients of rows, of keys after queries, and of segments (null: another task adds them all).
  float *u_ = nullptr, *dpsi_ = nullptr, *u_later_ = nullptr, *psi_later_ = nullptr;
  double* sums_ = nullptr;
};

template <class F>
inline void with_type_of(const FireBias&, F&& f) {
  f.template operator()<FireRows>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
