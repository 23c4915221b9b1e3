#pragma once
// The bias of family fire for the CPU attention, one row of a tile at a time. See FireTables in
// ops/mechanisms/fire.h. Along a row, segments follow each other up to the row's own key. Far from
// the diagonal a tile's row lies in one segment. Each key after the query has segments of its own.

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/parallel.h"
#include "ops/cpu/bias.h"
#include "ops/cpu/simd.h"
#include "priors/fire.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// What one head and sequence reads, and the output for a row's biases.
template <int64_t kKeys>
struct FireRows {
  const float *psi = nullptr, *psi_dc = nullptr;        // reversed, see reverse_table
  const float* inverse = nullptr;                       // by position
  const int32_t *ends = nullptr, *positions = nullptr;  // positions: by query
  int64_t past = 0;                                     // tokens before the first query
  const float *slope = nullptr, *offset = nullptr;      // of the head
  float* row = nullptr;                                 // (kKeys)
  int64_t keys_behind = 0;  // keys of the sequence if queries see keys after their own, else 0

  int32_t position_of(int64_t i) const { return positions[i - past]; }
  /// Lanes of keys from j0 on that use the segments of query i.
  int64_t lanes_of_row(int64_t i, int64_t j0) const {
    return keys_behind == 0 ? kKeys : std::clamp<int64_t>(i - j0 + 1, 0, kKeys);
  }
  /// Calls f(segment, begin, end) for each range [begin, end) of those lanes that lies in one
  /// segment, in lane order.
  template <class F>
  void for_segments(int64_t i, int64_t j0, F&& f) const {
    const int64_t lanes = lanes_of_row(i, j0);
    const int32_t* of_row = ends + int64_t{position_of(i)} * kFireHidden;
    const auto d = static_cast<int32_t>(i - j0);
    int64_t segment = std::upper_bound(of_row, of_row + kFireHidden, d) - of_row;
    for (int64_t begin = 0; begin < lanes; --segment) {
      const int64_t end =
          segment == 0 ? lanes : std::min<int64_t>(lanes, d - of_row[segment - 1] + 1);
      if (end > begin) f(segment, begin, end);
      begin = std::max(begin, end);
    }
  }

  /// Calls f(segment, n, inverse) for each lane n of a key after query i.
  template <class F>
  void for_keys_behind(int64_t i, int64_t j0, F&& f) const {
    for (int64_t n = lanes_of_row(i, j0); n < std::min(kKeys, keys_behind - j0); ++n) {
      const int32_t position = position_of(j0 + n);
      const int32_t* of_key = ends + int64_t{position} * kFireHidden;
      const auto d = static_cast<int32_t>(j0 + n - i);
      f(std::upper_bound(of_key, of_key + kFireHidden, d) - of_key, n, inverse[position]);
    }
  }

  /// Calls f(n, inside) for the vectors that hold any lane of [begin, end), n the vector's first
  /// lane; `inside` masks the lanes in the range.
  template <class F>
  static void for_vectors(int64_t begin, int64_t end, F&& f) {
    for (int64_t v = begin / simd::kWidth; v * simd::kWidth < end; ++v) {
      const simd::IVec lane = simd::lanes() + static_cast<int32_t>(v * simd::kWidth);
      f(v * simd::kWidth,
        (lane >= static_cast<int32_t>(begin)) & (lane < static_cast<int32_t>(end)));
    }
  }

  /// The biases of query i and the keys from j0 on; their entries of psi start at `at`.
  const float* biases(int64_t i, int64_t j0, int64_t at) const {
    const float of_row = inverse[position_of(i)];
    for_segments(i, j0, [&](int64_t segment, int64_t begin, int64_t end) {
      const simd::Vec factor = simd::splat(slope[segment] * of_row);
      const simd::Vec constant = simd::splat(offset[segment]);
      for_vectors(begin, end, [&](int64_t n, simd::IVec inside) {
        const simd::Vec b = factor * simd::load(psi + at + n) + constant;
        simd::store(row + n, inside ? b : simd::load(row + n));
      });
    });
    for_keys_behind(i, j0, [&](int64_t segment, int64_t n, float of_key) {
      row[n] = slope[segment] * of_key * psi[at + n] + offset[segment];
    });
    return row;
  }

  /// Adds the contributions of db of query i and the keys from j0 on: to sums (kFireSegments, 2) of
  /// the head, to the query's of_u and of_psi, and by position to those of the keys after it.
  void add(const float* db, int64_t i, int64_t j0, int64_t at, double* sums, float* of_u,
           float* of_psi, float* of_u_behind, float* of_psi_behind) const {
    const float of_row = inverse[position_of(i)];
    for_segments(i, j0, [&](int64_t segment, int64_t begin, int64_t end) {
      simd::Vec one{}, with_psi{}, with_psi_dc{};
      for_vectors(begin, end, [&](int64_t n, simd::IVec inside) {
        const simd::Vec d = inside ? simd::load(db + n) : simd::Vec{};
        one += d;
        with_psi += d * simd::load(psi + at + n);
        with_psi_dc += d * simd::load(psi_dc + at + n);
      });
      const float u = simd::sum(with_psi) * of_row;
      sums[2 * segment] += static_cast<double>(simd::sum(one));
      sums[2 * segment + 1] += static_cast<double>(u);
      *of_u += slope[segment] * u;
      *of_psi += slope[segment] * simd::sum(with_psi_dc);
    });
    for_keys_behind(i, j0, [&](int64_t segment, int64_t n, float of_key) {
      const float u = db[n] * psi[at + n] * of_key;
      sums[2 * segment] += static_cast<double>(db[n]);
      sums[2 * segment + 1] += static_cast<double>(u);
      of_u_behind[j0 + n] += slope[segment] * u;
      of_psi_behind[j0 + n] += slope[segment] * (db[n] * psi_dc[at + n]);
    });
  }
};

class FireStage : public StageOfKeys {
 public:
  FireStage(const Attention& a, int64_t b, int64_t h, const BiasMemory& memory) : T_(a.k.shape[1]) {
    const auto& [tables, positions] = std::get<FireBias>(a.bias);
    const float *const psi = tables.psi.ptr<float>(), *const psi_dc = tables.psi_dc.ptr<float>();
    reverse_table(memory.table, T_, a.causal(), [psi](int64_t d) { return psi[std::abs(d)]; });
    reverse_table(memory.more_table, T_, a.causal(),
                  [psi_dc](int64_t d) { return psi_dc[std::abs(d)]; });
    rows_ = {memory.table,
             memory.more_table,
             tables.inverse.ptr<float>(),
             tables.ends.ptr<int32_t>(),
             positions.ptr<int32_t>() + b * a.q.shape[1],
             a.past(),
             tables.slope.ptr<float>() + h * kFireSegments,
             tables.offset.ptr<float>() + h * kFireSegments,
             memory.rows,
             a.causal() ? 0 : T_};
  }

  const float* of_keys(int64_t i, int64_t j0) const {
    return rows_.biases(i, j0, table_offset(T_, i, j0));
  }

  template <class F>
  static void for_row(const Attention& a, int64_t b, int64_t h, const SeenKeys& row, F&& f) {
    const auto& [fire, positions] = std::get<FireBias>(a.bias);
    const int32_t position = positions.ptr<int32_t>()[b * a.q.shape[1] + row.i];
    const int32_t* ends = fire.ends.ptr<int32_t>() + int64_t{position} * kFireHidden;
    const float* slope = fire.slope.ptr<float>() + h * kFireSegments;
    const float* offset = fire.offset.ptr<float>() + h * kFireSegments;
    const float* psi = fire.psi.ptr<float>();
    const float inverse = fire.inverse.ptr<float>()[position];
    int64_t segment = kFireHidden;
    for (int64_t j = row.first; j <= row.last; ++j) {
      while (segment > 0 && row.last - j < ends[segment - 1]) --segment;
      f(j - row.first, slope[segment] * (psi[row.last - j] * inverse) + offset[segment]);
    }
  }
  static void join(const BiasGradients& g, const Attention& a, const AttentionScratch& s);

  class Adjoint;

 private:
  int64_t T_;
  FireRows<kK> rows_;
};

/// A query's own gradients are added directly, the rest into partial sums: see partial_fire, and
/// partial_behind for keys after queries.
class FireStage::Adjoint : public PlainAdjoint {
 public:
  Adjoint(const BiasGradients& g, const Attention& a, const AttentionScratch& s, float* row)
      : g_(g), a_(a), s_(s), db_(row) {}

  void set_head(const TaskHead& head) {
    b_ = head.b;
    h_ = head.h;
    u_ = head.of_rows(std::get<FireBiasGradients>(g_).dfire_u, a_);
    psi_ = head.of_rows(std::get<FireBiasGradients>(g_).dfire_psi, a_);
  }
  void set_part(int64_t part, bool mine) {
    sums_ = mine ? partial_fire(s_, a_, b_, h_, part) : nullptr;
    if (mine) std::fill_n(sums_, 2 * kFireSegments, 0.0);
    if (a_.causal()) return;
    u_behind_ = partial_behind(s_, a_, b_, h_, part);
    psi_behind_ = u_behind_ + a_.q.shape[1];
    if (mine) std::fill_n(u_behind_, 2 * a_.q.shape[1], 0.0f);
  }

  void end_row(const Tile&, const float* db, int64_t i, int64_t j0, const FireStage& stage) {
    if (sums_) add(stage, db, i, j0);
  }

  void add_row(const FireStage& stage, const float* dz, const RowSpan& row, float of_bias) {
    for (int64_t n = 0; n < row.n; n += kK) {
      for (int64_t c = 0; c < kK; ++c) db_[c] = n + c < row.n ? of_bias * dz[n + c] : 0.0f;
      add(stage, db_, row.i, row.first + n);
    }
  }

 private:
  void add(const FireStage& stage, const float* db, int64_t i, int64_t j0) {
    stage.rows_.add(db, i, j0, table_offset(stage.T_, i, j0), sums_, &u_[i], &psi_[i], u_behind_,
                    psi_behind_);
  }

  const BiasGradients& g_;
  const Attention& a_;
  const AttentionScratch& s_;
  int64_t b_ = 0, h_ = 0;
  float *db_, *u_ = nullptr, *psi_ = nullptr, *u_behind_ = nullptr, *psi_behind_ = nullptr;
  double* sums_ = nullptr;  // null: another task adds them
};

/// Sums the partial sums over sequences and parts, in order, into dfire (H, kFireSegments, 2).
inline void FireStage::join(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  const Tensor& dfire = std::get<FireBiasGradients>(g).dfire;
  std::fill_n(dfire.ptr<double>(), dfire.size(), 0.0);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      double* total = dfire.ptr<double>() + h * 2 * kFireSegments;
      for (int64_t n = 0; n < parts_of(T); ++n) {
        const double* part = partial_fire(s, a, b, h, n);
        for (int64_t k = 0; k < 2 * kFireSegments; ++k) total[k] += part[k];
      }
    }
  }
  if (a.causal()) return;
  const auto& [all, u, psi] = std::get<FireBiasGradients>(g);
  parallel_for(B * H, [&, &to_u = u, &to_psi = psi](int64_t head) {
    for (int64_t n = 0; n < parts_of(T); ++n) {
      const float* const part = partial_behind(s, a, head / H, head % H, n);
      for (int64_t t = 0; t < T; ++t) {
        to_u.ptr<float>()[head * T + t] += part[t];
        to_psi.ptr<float>()[head * T + t] += part[T + t];
      }
    }
  });
}

template <class F>
inline void with_stage(const FireBias&, F&& f) {
  f.template operator()<FireStage>();
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
