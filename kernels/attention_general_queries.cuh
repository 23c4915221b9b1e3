#pragma once
// The general path, backward: what belongs to a query. Of softmax and topk D = <dO, out>, as in the
// fused kernels; of entmax it follows from sums over a row, for which a block walks its tiles of
// keys once more. Stick-breaking walks for what it carries from tile to tile.

#include "attention_backward_queries.cuh"
#include "attention_general_sticks.cuh"

namespace bamtrain::kernels {

/// Launch with grid (tiles of queries, heads in flight), kThreads threads and this much dynamic
/// shared memory.
template <int D>
constexpr size_t attention_general_queries_shared(bool fire) {
  constexpr int kSlice = GeneralRows<kRowTiles<D>>::kSliceFloats;
  const int floats = 2 * kSlice + (1 + NumbersOfRows::kFloats) * kQueryTile<D> +
                     4 * kRowTiles<D> * kThreads +
                     (fire ? kSlice + FireTotals<kQueryTile<D>>::kFloats : 0);
  return 2 * kTileBytes<D, kQueryTile<D>> + 2 * kGeneralStages<D> * kTileBytes<D> +
         sizeof(float) * static_cast<size_t>(floats);
}

/// The part of <dO, out> that the lane's columns of row r have, of a row inside.
template <int D, class Block>
BAMTRAIN_DEVICE float row_product_of_lane(const GeneralSaved& saved, const Block& own, int r,
                                          const Lane& l) {
  const auto* const out =
      reinterpret_cast<const uint32_t*>(row_of(saved.out, own.b, own.rows[r], own.h));
  const auto* const dout =
      reinterpret_cast<const uint32_t*>(row_of(saved.dout, own.b, own.rows[r], own.h));
  float sum = 0;
  BAMTRAIN_UNROLL
  for (int n = 0; n < D / 8; ++n) {
    const uint32_t x = out[4 * n + l.pair], y = dout[4 * n + l.pair];
    sum += device::low_bf16(x) * device::low_bf16(y);
    sum += device::high_bf16(x) * device::high_bf16(y);
  }
  return sum;
}

/// dq (B, T, H, D), `to_rows`, dalpha (B, H, T) where it is, and saved.centre, .factor and .carries
/// are written, of the heads of all sequences from first_head on. kFormed: of the queries whose
/// bias was formed: the weights and dz are written, 0 where there are none, of the block's keys
/// (see attention_content.cuh), and in saved.factor the sums of dz of softmax and topk, which are
/// zero but for roundings, and 0 of the others; dq is for others to write.
template <int D, bool kFormed>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_general_queries(AttentionInputs<bf16> a, GeneralSaved saved, Rows<bf16> dq,
                              RowGradients to_rows, float* dalpha, int first_head) {
  constexpr int kStages = kGeneralStages<D>, M = kRowTiles<D>, kRows = 2 * M;
  using Block = GeneralRows<M, kFormed>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int head = static_cast<int>(device::block_index().y);  // in flight
  const int b = (first_head + head) / a.H, h = (first_head + head) % a.H;
  const int tiles = static_cast<int>(device::grid_size().x);
  const int i0 = Block::block_begin(a, tiles - 1 - static_cast<int>(device::block_index().x));

  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress outputs = queries + kTileBytes<D, kQueryTile<D>>;  // dO
  const SharedAddress keys = outputs + kTileBytes<D, kQueryTile<D>>;     // kStages of them
  const SharedAddress values = keys + kStages * kTileBytes<D>;
  float* const slices = reinterpret_cast<float*>(shared + 2 * kTileBytes<D, kQueryTile<D>> +
                                                 2 * kStages * kTileBytes<D>);  // two
  float* const row_sums = slices + 2 * Block::kSliceFloats;
  const NumbersOfRows numbers(row_sums + kQueryTile<D>, kQueryTile<D>);
  // The thread's sums for its rows: dt, with a bias that is scaled; of stick-breaking, which takes
  // no scale, p dP of the keys before; and dn. Here for the registers.
  float* const of_threads = row_sums + (1 + NumbersOfRows::kFloats) * kQueryTile<D>;
  float* const of_thread = of_threads + thread;
  float* const derivatives = of_threads + 2 * kRows * kThreads;  // with fire: of psi
  const FireTotals<kQueryTile<D>> fire_totals(derivatives + Block::kSliceFloats);

  const Block own(a, b, h, i0, kQueryTile<D>, 1.0f / a.content_divisor, row_sums, l);
  const int kh = h / (a.H / a.K);
  const WeightForm form = weight_form(a.normalizer, h);
  const bool stick = form == WeightForm::stick_breaking, fire = !kFormed && a.fire.psi != nullptr;

  const bf16 *const k = row_of(a.k, b, 0, kh), *const v = row_of(a.v, b, 0, kh);
  copy_tile_by_rows<D, kQueryTile<D>>(queries, a.q, row_of(a.q, b, 0, h), i0, a.T);
  copy_tile_by_rows<D, kQueryTile<D>>(outputs, saved.dout, row_of(saved.dout, b, 0, h), i0, a.T);
  device::copy_async_commit();
  if (fire) {
    fire_totals.clear(thread);
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) fire_totals.clear_row(a, own, r, l);
  }

  // f(tile, slice, stage) for each tile that is live; of formed biases otherwise(tile) for others.
  LiveTiles<4 * M> live(a, saved.rows, b, h, i0, l.warp);
  const auto walk = [&](bool leftwards, const auto& otherwise, const auto& f) {
    const auto inside = [&](int tile) { return tile >= own.first_tile && tile <= own.last_tile; };
    const auto next = [&](int tile) {
      do {
        tile += leftwards ? -1 : 1;
      } while (!kFormed && inside(tile) && !live.any(tile));
      return tile;
    };
    const auto copy = [&](int tile, uint32_t stage) {
      copy_tile_by_rows<D>(keys + stage * kTileBytes<D>, a.k, k, tile * kTile, a.T);
      copy_tile_by_rows<D>(values + stage * kTileBytes<D>, a.v, v, tile * kTile, a.T);
      device::copy_async_commit();
    };
    int tile = next(leftwards ? own.last_tile + 1 : own.first_tile - 1);
    uint32_t stage = 0;
    if (inside(tile)) copy(tile, 0);
    while (inside(tile)) {
      const int after = next(tile);
      float* const slice = slices + stage % 2 * Block::kSliceFloats;
      own.fill_slice(slice, a, tile * kTile, thread);
      if (fire) own.fill_by_distance(derivatives, a.fire.psi_dc, tile * kTile, thread);
      if (kStages > 1 && inside(after)) {
        copy(after, (stage + 1) % kStages);
        device::copy_async_wait<1>();
      } else {
        device::copy_async_wait<0>();
      }
      device::barrier();
      if (live.own(tile)) {
        f(tile, slice, stage % kStages);
      } else if (kFormed) {
        otherwise(tile);
      }
      device::barrier();
      ++stage;
      if (kStages == 1 && inside(after)) copy(after, 0);
      tile = after;
    }
    device::copy_async_wait<0>();
    device::barrier();
  };
  const auto nothing = [](int) {};
  // Of row r, which the lanes of the row share.
  const auto weights_of = [&](int r) { return numbers.weights(own.rows[r] - i0); };
  const float alpha_less_one =
      a.normalizer.kind == NormalizerKind::entmax ? alpha_of(a.normalizer, h) - 1.0f : 0.0f;
  const bool takes_logits = LineWeights::takes_logits(form, alpha_less_one);
  const auto line_of = [&](int r) { return numbers.line(own.rows[r] - i0, takes_logits); };
  // f(z, j0, part) with line_of(r) of the logits of each part of a tile that the warp sees.
  const auto with_logits = [&](bool leftwards, int tile, const float* slice, uint32_t stage,
                               const auto& f) {
    for_parts(leftwards, [&](int part) {
      const int j0 = tile * kTile + part * kPart;
      if (!own.warp_sees(j0, kPart)) return;
      GroupsOfLogits<M> z;
      multiply_part<D>(z, queries, keys + stage * kTileBytes<D> + part_bytes<D>(part), l);
      own.logits(z, line_of, a, own.slice_of(a, slice, part), j0, l);
      f(z, j0, part);
    });
  };
  const auto multiply_values = [&](GroupsOfLogits<M>& dp, int part, uint32_t stage) {
    multiply_part<D>(dp, outputs, values + stage * kTileBytes<D> + part_bytes<D>(part), l);
  };

  // Rows of which one key alone has weight are not at the diagonal alone.
  const bool of_one = form == WeightForm::topk && a.normalizer.keys.number <= 1;
  const bool of_rows = is_exponential(form);
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    RowWeights weights;
    float product = 0;
    if (!stick && own.inside(r)) {
      weights = RowWeights(a.normalizer, saved.rows, h, own.of_row(a, r));
      if (of_rows) product = row_product_of_lane<D>(saved, own, r, l);
    }
    product += device::shuffle_xor(device::kWholeWarp, product, 1);
    product += device::shuffle_xor(device::kWholeWarp, product, 2);
    if (l.pair != 0) continue;
    numbers.set(own.rows[r] - i0, stick ? LineWeights() : LineWeights(form, weights), product);
    if (stick || !own.inside(r)) continue;
    saved.third[own.of_row(a, r)] = weights.third;
    if (!of_rows) continue;
    saved.centre[own.of_row(a, r)] = product;
    saved.factor[own.of_row(a, r)] = 1.0f;
  }
  device::sync_warp();
  if (stick) {
    float broken[kRows] = {};
    walk(true, nothing, [&](int tile, const float* slice, uint32_t stage) {
      with_logits(true, tile, slice, stage, [&](GroupsOfLogits<M>& z, int j0, int) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          if (l.pair == 0 && own.inside(r)) *saved.carry(a, head, j0, own.rows[r]) = broken[r];
          Logits share;
          stick_weights(z[r / 2], share, broken[r], r % 2, l);
        }
      });
    });
    device::sync_warp();  // carries are read by the lanes of the row
  } else if (!of_rows) {
    RowSums sums[kRows];
    const bool divided = divided_by_sum(form, alpha_less_one), entropy = dalpha != nullptr;
    walk(false, nothing, [&](int tile, const float* slice, uint32_t stage) {
      with_logits(false, tile, slice, stage, [&](const GroupsOfLogits<M>& z, int, int part) {
        GroupsOfLogits<M> dp;
        multiply_values(dp, part, stage);
        with_weight_form(form, [&]<WeightForm kForm>() {
          if constexpr (is_exponential(kForm)) return;
          const auto for_weights = [&](const auto& f) {
            BAMTRAIN_UNROLL
            for (int r = 0; r < kRows; ++r) {
              const LineWeights weights = weights_of(r);
              own.for_row(r, [&](int n, int e) {
                f(sums[r], weights.template of<kForm>(z[r / 2][n][e], alpha_less_one),
                  dp[r / 2][n][e]);
              });
            }
          };
          if (divided || entropy) {
            const float learned = entropy ? alpha_less_one : 0.0f;
            for_weights(
                [&](RowSums& to, const Weight& w, float x) { to.add<false>(w, x, learned); });
          } else {
            for_weights([](RowSums& to, const Weight& w, float x) { to.add_slope(w, x); });
          }
        });
      });
    });
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sums[r].template join<4>();
      if (l.pair != 0 || !own.inside(r)) continue;
      const bool alone = own.keys(a, r) == 1;
      const LineWeights weights = weights_of(r);
      const float centre = weights.nan_or(sums[r].centre());
      const float factor = weights.nan_or(sums[r].factor(form, alpha_less_one));
      numbers.centre(own.rows[r] - i0) = saved.centre[own.of_row(a, r)] = centre;
      saved.factor[own.of_row(a, r)] = factor;
      if (entropy) {
        dalpha[own.of_row(a, r)] = alone ? 0.0f : sums[r].dalpha(alpha_less_one, factor);
      }
    }
    device::sync_warp();
  }

  float sum[M][D / 8][4] = {};
  float rest[kRows] = {};  // of formed biases: the sums of dz
  const auto carried = [&](int r) -> float& { return of_thread[r * kThreads]; };
  const auto dnumber = [&](int r) -> float& { return of_thread[(kRows + r) * kThreads]; };
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) carried(r) = dnumber(r) = 0;
  // p and dz of a part of the warp's keys.
  float *const p_of_head = a.formed.p + own.formed_head(a), *const dz_of_head =
                                                                a.formed.b + own.formed_head(a);
  const auto store = [&](int j0, const auto& p, const auto& dz) {
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int row = own.formed_row(a, r, j0);
      BAMTRAIN_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        const int at = row + l.column(n, 0);
        device::store_two(p_of_head + at, p(r, n, r % 2 * 2), p(r, n, r % 2 * 2 + 1));
        device::store_two(dz_of_head + at, dz(r, n, r % 2 * 2), dz(r, n, r % 2 * 2 + 1));
      }
    }
  };
  const auto clear = [&](int j0) {
    const auto zero = [](int, int, int) { return 0.0f; };
    store(j0, zero, zero);
  };
  const auto clear_tile = [&](int tile) {
    for_parts(false, [&](int part) { clear(tile * kTile + part * kPart); });
  };
  walk(false, clear_tile, [&](int tile, const float* slice_of_tile, uint32_t stage) {
    if (kFormed) {
      for_parts(false, [&](int part) {
        const int j0 = tile * kTile + part * kPart;
        if (!own.warp_sees(j0, kPart)) clear(j0);
      });
    }
    with_logits(false, tile, slice_of_tile, stage, [&](GroupsOfLogits<M>& z, int j0, int part) {
      GroupsOfLogits<M> dz;
      multiply_values(dz, part, stage);
      const float* const slice = own.slice_of(a, slice_of_tile, part);
      if (stick) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          float broken = 0;
          if (own.inside(r)) {
            float* const carry = saved.carry(a, head, j0, own.rows[r]);
            broken = carry[0];
            if (l.pair == 0) carry[1] = carried(r);
          }
          Logits share;
          stick_weights(z[r / 2], share, broken, r % 2, l);
          stick_adjoint(dz[r / 2], z[r / 2], share, carried(r), r % 2, l);
        }
      } else {
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const LineWeights weights = weights_of(r);
            const float centre = numbers.centre(own.rows[r] - i0);
            float of_weights = 1;
            if (kFormed && kForm == WeightForm::entmax && own.inside(r)) {
              of_weights = saved.factor[own.of_row(a, r)];
            }
            if constexpr (kForm == WeightForm::topk) drop_ties(z, weights, own, r, j0, l);
            own.for_row(r, [&](int n, int e) {
              float &x = dz[r / 2][n][e], &logit = z[r / 2][n][e];
              const Weight w = weights.template of<kForm>(logit, alpha_less_one);
              x = w.u * (x - centre);
              if (kFormed) logit = kForm == WeightForm::entmax ? of_weights * w.p : w.p;
            });
          }
        });
        if (of_one || !own.warp_sees_all(j0)) {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const bool one = constant_weights(a, own.keys(a, r));
            own.for_row(r, [&](int n, int e) {
              if (one) dz[r / 2][n][e] = 0;
            });
          }
        }
      }
      if (a.scale_bias) {
        float dt[kRows] = {};
        own.with_biases(a, slice, j0, l, [&](int r, int n, int e, float bias) {
          const float x = dz[r / 2][n][e];
          // Nobody has formed the biases of keys that a row does not see.
          if (!kFormed || x != 0) dt[r] += x * bias;
        });
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) carried(r) += dt[r];
      }
      if (kFormed) {
        const auto elements = [](const GroupsOfLogits<M>& x) {
          return [&x](int r, int n, int e) { return x[r / 2][n][e]; };
        };
        store(j0, elements(z), elements(dz));
        own.for_elements([&](int r, int n, int e) { rest[r] += dz[r / 2][n][e]; });
      }
      if (!kFormed && a.numbers != nullptr) {
        with_formula(a.formula, [&]<class Of>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            float of_number = 0;
            own.for_row(r, [&](int n, int e) {
              const int key = l.column(n, e);
              of_number += dz[r / 2][n][e] *
                           own.by_formula(slice, r, j0, key, [](float row, float other, float d) {
                             return Of::template of_row<GeneralMath>(row, other, d);
                           });
            });
            dnumber(r) += of_number;
          }
        });
      }
      if (fire) {
        const float* const of_part = own.slice_of(a, derivatives, part);
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          FirePlace at = own.place(a, r, j0, l);
          fire_totals.add(at, own.bias_scale(a, r), dz[r / 2], a, own, r, j0, slice, of_part, l);
        }
      }
      if (kFormed && a.scale == nullptr) return;
      uint32_t ds[M][kPart / 16][4];
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) as_operand(ds[m], dz[m]);
      multiply<D>(sum, ds, keys + stage * kTileBytes<D> + part_bytes<D>(part), l);
    });
  });

  if (fire && thread < kFirePartial) {
    const int64_t tile = static_cast<int64_t>(first_head + head) * tiles + i0 / Block::kQueries;
    to_rows.fire_partial[tile * kFirePartial + thread] = fire_totals.of_segment(thread);
  }
  const float root = 1.0f / a.content_divisor;
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const auto& of_row = sum[r / 2];
    const int half = r % 2 * 2;
    // <q, sum dz k> is the content's part of dt.
    const auto* const query = reinterpret_cast<const uint32_t*>(
        shared + static_cast<uint32_t>(own.rows[r] - i0) * kRowBytes<D>);
    float content = 0;
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      const uint32_t two = query[4 * n + l.pair];
      content += device::low_bf16(two) * of_row[n][half];
      content += device::high_bf16(two) * of_row[n][half + 1];
    }
    float dt = carried(r) + root * content, of_number = dnumber(r);
    BAMTRAIN_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
      dt += device::shuffle_xor(device::kWholeWarp, dt, distance);
      of_number += device::shuffle_xor(device::kWholeWarp, of_number, distance);
      if (kFormed) rest[r] += device::shuffle_xor(device::kWholeWarp, rest[r], distance);
    }
    if (!own.inside(r)) continue;
    if (!kFormed) {
      auto* to = reinterpret_cast<uint32_t*>(row_of(dq, b, own.rows[r], h));
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        to[4 * n + l.pair] =
            device::pack_bf16(of_row[n][half] * own.factor[r], of_row[n][half + 1] * own.factor[r]);
      }
    }
    if (l.pair != 0) continue;
    if (kFormed) saved.factor[own.of_row(a, r)] = of_rows ? rest[r] : 0.0f;
    if (a.scale != nullptr) to_rows.scale[own.of_row(a, r)] = dt;
    if (a.numbers != nullptr) to_rows.numbers[own.of_row(a, r)] = own.bias_scale(a, r) * of_number;
    if (fire) {
      const float by_row = own.bias_scale(a, r) * kLn2;
      const int row = own.rows[r] - i0;
      to_rows.fire_u[own.of_row(a, r)] = by_row * fire_totals.u[row];
      to_rows.fire_psi[own.of_row(a, r)] = by_row / fire_totals.inverse[row] * fire_totals.psi[row];
    }
  }
}

}  // namespace bamtrain::kernels
