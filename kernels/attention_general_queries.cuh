#pragma once
// The general path, backward: what belongs to a query. A block walks its tiles of keys twice: for
// the sums of a row from which its D follows, or what stick-breaking carries from tile to tile; and
// for dz.

#include "attention_backward_queries.cuh"
#include "attention_general.cuh"

namespace bamtrain::kernels {

/// Launch with grid (tiles of queries, heads at hand), kThreads threads and this much dynamic
/// shared memory.
template <int D>
constexpr size_t attention_general_queries_shared(bool fire) {
  const int floats = 2 * kThreads + (fire ? kThreads + FireTotals<kTile>::kFloats : 0);
  return (2 + 2 * kGeneralStages<D>)*kTileBytes<D> + sizeof(float) * static_cast<size_t>(floats);
}

/// dq (B, T, H, D), `to_rows`, dalpha (B, H, T) where it is, and saved.centre, .factor and .carries
/// are written, of the heads of all sequences from first_head on.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_general_queries(AttentionInputs<bf16> a, GeneralSaved saved, Rows<bf16> dq,
                              RowGradients to_rows, float* dalpha, int first_head) {
  constexpr int kStages = kGeneralStages<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int head = static_cast<int>(device::block_index().y);  // at hand
  const int b = (first_head + head) / a.H, h = (first_head + head) % a.H;
  const int tiles = static_cast<int>(device::grid_size().x);
  const int i0 = kTile * (tiles - 1 - static_cast<int>(device::block_index().x));
  const GeneralRows own(a, b, h, i0, l);
  const int kh = h / (a.H / a.K);
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress outputs = queries + kTileBytes<D>;  // dO
  const SharedAddress keys = outputs + kTileBytes<D>;     // kStages of them
  const SharedAddress values = keys + kStages * kTileBytes<D>;
  float* const slices =
      reinterpret_cast<float*>(shared + (2 + 2 * kStages) * kTileBytes<D>);  // two
  float* const derivatives = slices + 2 * kThreads;                          // with fire: of psi
  const FireTotals<kTile> fire_totals(derivatives + kThreads);

  const WeightForm form = weight_form(a.normalizer, h);
  const bool stick = form == WeightForm::stick_breaking, fire = a.fire.psi != nullptr;
  const LiveRows live(a, saved.rows, b, h, i0);
  copy_tile<D>(queries, a.q, b, h, i0, a.T);
  copy_tile<D>(outputs, saved.dout, b, h, i0, a.T);
  device::copy_async_commit();
  if (fire) {
    fire_totals.clear(thread);
    fire_totals.clear_row(a, own, 0, l);
    fire_totals.clear_row(a, own, 1, l);
  }

  // f(tile, slice, stage) for each live tile.
  const auto walk = [&](bool leftwards, const auto& f) {
    const auto inside = [&](int tile) { return tile >= own.first_tile && tile <= own.last_tile; };
    const auto next = [&](int tile) {
      do {
        tile += leftwards ? -1 : 1;
      } while (inside(tile) && !live.any(tile));
      return tile;
    };
    const auto copy = [&](int tile, uint32_t stage) {
      copy_tile<D>(keys + stage * kTileBytes<D>, a.k, b, kh, tile * kTile, a.T);
      copy_tile<D>(values + stage * kTileBytes<D>, a.v, b, kh, tile * kTile, a.T);
      device::copy_async_commit();
    };
    int tile = next(leftwards ? own.last_tile + 1 : own.first_tile - 1);
    uint32_t stage = 0;
    if (inside(tile)) copy(tile, 0);
    while (inside(tile)) {
      const int after = next(tile);
      float* const slice = slices + stage % 2 * kThreads;
      slice[thread] = own.slice_entry(a, tile * kTile, thread);
      if (fire) derivatives[thread] = own.derivative_entry(a, tile * kTile, thread);
      if (kStages > 1 && inside(after)) {
        copy(after, (stage + 1) % kStages);
        device::copy_async_wait<1>();
      } else {
        device::copy_async_wait<0>();
      }
      device::barrier();
      if (live.warp(l.warp, tile)) f(tile, slice, stage % kStages);
      device::barrier();
      ++stage;
      if (kStages == 1 && inside(after)) copy(after, 0);
      tile = after;
    }
    device::copy_async_wait<0>();
    device::barrier();
  };
  // Logits, and dP; returns the first key.
  const auto products = [&](Logits& z, Logits& dp, int tile, int part, const float* slice,
                            uint32_t stage) {
    const uint32_t from = stage * kTileBytes<D> + part_bytes<D>(part);
    const int j0 = tile * kTile + part * kPart;
    multiply_part<D>(z, queries, keys + from, l);
    multiply_part<D>(dp, outputs, values + from, l);
    own.logits(z, a, own.slice_of(a, slice, part), j0, l);
    return j0;
  };

  RowWeights weights[2];
  float centre[2] = {}, factor[2] = {1, 1};
  if (stick) {
    float broken[2] = {};
    walk(true, [&](int tile, const float* slice, uint32_t stage) {
      for_parts(true, [&](int part) {
        Logits z, share;
        const int j0 = tile * kTile + part * kPart;
        multiply_part<D>(z, queries, keys + stage * kTileBytes<D> + part_bytes<D>(part), l);
        own.logits(z, a, own.slice_of(a, slice, part), j0, l);
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          if (l.pair == 0 && own.inside(r)) *saved.carry(a, head, j0, own.rows[r]) = broken[r];
          stick_weights(z, share, broken[r], r, l);
        }
      });
    });
    device::sync_warp();  // carries are read by the lanes of the row
  } else {
    RowSums sums[2];
    const bool entropy = dalpha != nullptr;
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (own.inside(r)) weights[r] = RowWeights(a.normalizer, saved.rows, h, own.of_row(a, r));
    }
    walk(false, [&](int tile, const float* slice, uint32_t stage) {
      for_parts(false, [&](int part) {
        Logits z, dp;
        const int j0 = products(z, dp, tile, part, slice, stage);
        with_weight_form(form, [&]<WeightForm kForm>() {
          own.for_elements([&](int n, int e) {
            const int r = e / 2;
            const Weight w = weights[r].template of<kForm, false>(z[n][e], j0 + l.column(n, e));
            if (own.inside(r)) sums[r].add(w, dp[n][e], entropy);
          });
        });
      });
    });
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      sums[r].template join<4>();
      if (!own.inside(r)) continue;
      const bool alone = own.first[r] == own.rows[r];
      centre[r] = sums[r].centre();
      factor[r] = sums[r].factor(form, weights[r].a);
      if (l.pair != 0) continue;
      saved.centre[own.of_row(a, r)] = centre[r];
      saved.factor[own.of_row(a, r)] = factor[r];
      if (entropy) {
        dalpha[own.of_row(a, r)] = alone ? 0.0f : sums[r].dalpha(weights[r].a, factor[r]);
      }
    }
  }

  float sum[1][D / 8][4] = {}, before[2] = {}, dt[2] = {}, dsum[2] = {};
  walk(false, [&](int tile, const float* slice_of_tile, uint32_t stage) {
    for_parts(false, [&](int part) {
      Logits z, dz;
      const int j0 = products(z, dz, tile, part, slice_of_tile, stage);
      const float* const slice = own.slice_of(a, slice_of_tile, part);
      if (stick) {
        Logits share;
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          float broken = 0;
          if (own.inside(r)) {
            float* const carry = saved.carry(a, head, j0, own.rows[r]);
            broken = carry[0];
            if (l.pair == 0) carry[1] = before[r];
          }
          stick_weights(z, share, broken, r, l);
          stick_adjoint(dz, z, share, before[r], r, l);
        }
      } else {
        with_weight_form(form, [&]<WeightForm kForm>() {
          own.for_elements([&](int n, int e) {
            const int r = e / 2;
            const float u = weights[r].template of<kForm, false>(z[n][e], j0 + l.column(n, e)).u;
            const bool alone = own.first[r] >= own.rows[r];
            dz[n][e] = alone ? 0.0f : u * (dz[n][e] - centre[r]);
          });
        });
      }
      if (a.scale_bias) {
        own.with_biases(a, slice, j0, l,
                        [&](int n, int e, float bias) { dt[e / 2] += dz[n][e] * bias; });
      }
      if (a.sums != nullptr) {
        own.for_elements([&](int n, int e) {
          dsum[e / 2] -= dz[n][e] * own.sum_derivative(a, slice, e / 2, l.column(n, e));
        });
      }
      if (fire) {
        const float* const of_part = own.slice_of(a, derivatives, part);
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          FirePlace at = own.place(a, r, j0, l);
          fire_totals.add(at, dz, a, own, r, j0, slice, of_part, l);
        }
      }
      uint32_t ds[1][kPart / 16][4];
      as_operand(ds[0], dz);
      multiply<D>(sum, ds, keys + stage * kTileBytes<D> + part_bytes<D>(part), l);
    });
  });

  if (fire && thread < kFirePartial) {
    to_rows.fire_partial[(static_cast<int64_t>(first_head + head) * tiles + i0 / kTile) *
                             kFirePartial +
                         thread] = fire_totals.of_segment(thread);
  }
  const float root = 1.0f / a.content_divisor;
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    // <q, sum dz k> is the content's part of dt.
    const auto* const query = reinterpret_cast<const uint32_t*>(
        shared + static_cast<uint32_t>(own.rows[r] - i0) * kRowBytes<D>);
    float content = 0;
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      const uint32_t two = query[4 * n + l.pair];
      content += device::low_bf16(two) * sum[0][n][2 * r];
      content += device::high_bf16(two) * sum[0][n][2 * r + 1];
    }
    dt[r] += root * content;
    BAMTRAIN_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
      dt[r] += device::shuffle_xor(device::kWholeWarp, dt[r], distance);
      dsum[r] += device::shuffle_xor(device::kWholeWarp, dsum[r], distance);
    }
    if (!own.inside(r)) continue;
    auto* to = reinterpret_cast<uint32_t*>(row_of(dq, b, own.rows[r], h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] =
          device::pack_bf16(sum[0][n][2 * r] * own.factor[r], sum[0][n][2 * r + 1] * own.factor[r]);
    }
    if (l.pair != 0) continue;
    if (a.scale != nullptr) to_rows.scale[own.of_row(a, r)] = dt[r];
    if (a.sums != nullptr) to_rows.sums[own.of_row(a, r)] = own.u[r] * dsum[r];
    if (fire) {
      const float by_row = own.u[r] * kLn2;
      const int row = own.rows[r] - i0;
      to_rows.fire_u[own.of_row(a, r)] = by_row * fire_totals.u[row];
      to_rows.fire_psi[own.of_row(a, r)] = by_row / fire_totals.inverse[row] * fire_totals.psi[row];
    }
  }
}

}  // namespace bamtrain::kernels
