#pragma once
// The general path, backward: dk, dv, and db by distance or by key, of any normalizer whose weights
// follow from numbers of the row. As in the fused kernel a warp owns 16 keys and forms the
// transposes of weights and dz, which are operands as they are. Stick-breaking, whose weights
// follow from each other along a row, has attention_general_keys_sticks.cuh.

#include "attention_backward_keys.cuh"
#include "attention_general.cuh"

namespace bamtrain::kernels {

/// What a query has of weights and dz, in shared memory: see LineWeights, GeneralRows,
/// GeneralSaved.
struct alignas(16) QueryNumbers {
  float by, offset;  // of what is made weights, by <q, k> + offset + of_bias b
  float centre, factor;
};
struct alignas(16) MoreQueryNumbers {
  LineWeights weights;
  float of_weights;  // what they are multiplied by
  float u, of_bias;  // of_bias: u times the slope of `weights`
  float number;
  int first;
  int one;  // key alone has weight: constant_weights
  int unused[2];
};

template <int D>
constexpr size_t attention_general_keys_shared() {
  constexpr int Q = kBackwardQueries<D>;
  return 2 * kTileBytes<D> + 4 * kTileBytes<D, Q> +
         Q * (sizeof(QueryNumbers) + sizeof(MoreQueryNumbers) + sizeof(FirePlace)) +
         sizeof(float) * (kSlice + kTile * (Q + 3));
}

/// Numbers of query i of (b, h), or of none past T: its weights are 0.
BAMTRAIN_DEVICE void load_query(QueryNumbers& x, MoreQueryNumbers& more,
                                const AttentionInputs<bf16>& a, const GeneralSaved& saved, int b,
                                int h, int i, WeightForm form, float root, double origin) {
  x = {root, 0.0f, 0.0f, root};
  more = {{}, 0.0f, 1.0f, 1.0f, 0.0f, i + 1, 0, {}};
  if (i >= a.T) return;
  const int64_t row = (static_cast<int64_t>(b) * a.H + h) * a.T + i;
  const float t = a.scale != nullptr ? a.scale[row] : 1.0f;
  RowWeights weights;
  weights.level = saved.rows.level[row];
  weights.third = saved.third[row];
  if (saved.rows.threshold != nullptr) weights.threshold = saved.rows.threshold[row];
  if (a.normalizer.kind == NormalizerKind::entmax) weights.a = alpha_of(a.normalizer, h) - 1.0f;
  more.weights = LineWeights(form, weights);
  const WeightLine line = more.weights.line(LineWeights::takes_logits(form, weights.a));
  x = {root * t * line.slope, line.offset, saved.centre[row], root * t};
  more.of_weights = saved.factor[row];
  if (a.scale_bias) more.u = t;
  more.of_bias = more.u * line.slope;
  if (a.numbers != nullptr) more.number = static_cast<float>(a.numbers[row] - origin);
  more.first = a.first_key[static_cast<int64_t>(b) * a.T + i];
  more.one = constant_weights(a, i - more.first + 1);
}

/// dk and dv (B, T, K, D) are written; with numbers the keys' part is added to dnumbers (B, H, T),
/// which has the queries'; with a table partial (B, H, parts, slot_floats) is written too, as by
/// attention_backward_keys. Launch with grid (parts, key heads, 1), kThreads threads and this much
/// dynamic shared memory; the key heads are those of all sequences from first_head on.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_general_keys(AttentionInputs<bf16> a, GeneralSaved saved, Rows<bf16> dk,
                           Rows<bf16> dv, float* dnumbers, float* partial, int64_t slot_floats,
                           int first_head) {
  constexpr int Q = kBackwardQueries<D>, kDbRow = Q + 3;
  using Tile = float[Q / 8][4];
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane, group = a.H / a.K, tiles = (a.T + kTile - 1) / kTile;
  const int part = static_cast<int>(device::block_index().x);
  const int parts = static_cast<int>(device::grid_size().x);
  const int head = static_cast<int>(device::block_index().y);
  const int b = (first_head + head) / a.K, kh = (first_head + head) % a.K;
  const int own_key = l.warp * kWarpRows + l.row;  // in the tile; and the one 8 further
  const SharedAddress keys = device::shared_address(shared);
  const SharedAddress values = keys + kTileBytes<D>;
  const SharedAddress queries = values + kTileBytes<D>;          // two stages
  const SharedAddress outputs = queries + 2 * kTileBytes<D, Q>;  // dO, two stages
  unsigned char* const behind = shared + 2 * kTileBytes<D> + 4 * kTileBytes<D, Q>;
  auto* const numbers = reinterpret_cast<QueryNumbers*>(behind);
  auto* const more_numbers = reinterpret_cast<MoreQueryNumbers*>(numbers + Q);
  auto* const places = reinterpret_cast<FirePlace*>(more_numbers + Q);
  float* const slice = reinterpret_cast<float*>(places + Q);  // of the table or of psi
  float* const db = slice + kSlice;                           // (kTile, kDbRow)
  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D>;
  const float root = 1.0f / a.content_divisor;
  const BiasSource bias_of = bias_source(a);
  const bool table = bias_of == BiasSource::table, fire = bias_of == BiasSource::fire;

  if (table) {
    for (int g = 0; g < group; ++g) {
      float* slot =
          partial + ((static_cast<int64_t>(b) * a.H + kh * group + g) * parts + part) * slot_floats;
      for (int64_t n = thread; n < slot_floats; n += kThreads) slot[n] = 0;
    }
  }

  // f(n, e, key, query) of each element of a warp's tile: places in the tiles.
  const auto for_elements = [&](const auto& f) {
    BAMTRAIN_UNROLL
    for (int n = 0; n < Q / 8; ++n) {
      BAMTRAIN_UNROLL
      for (int e = 0; e < 4; ++e) f(n, e, own_key + e / 2 * 8, l.column(n, e));
    }
  };

  for (int tile = part; tile < tiles; tile += parts) {
    const int j0 = tile * kTile, end = end_of_queries(first_key, j0, a.T);
    // Everyone is done with the keys before these: the last barrier of the loop over queries.
    copy_tile_by_rows<D>(keys, a.k, row_of(a.k, b, 0, kh), j0, a.T);
    copy_tile_by_rows<D>(values, a.v, row_of(a.v, b, 0, kh), j0, a.T);
    device::copy_async_commit();
    float sum_k[1][D / 8][4] = {}, sum_v[1][D / 8][4] = {};

    for (int g = 0; g < group; ++g) {
      const int h = kh * group + g;
      const WeightForm form = weight_form(a.normalizer, h);
      const float alpha_less_one =
          a.normalizer.kind == NormalizerKind::entmax ? alpha_of(a.normalizer, h) - 1.0f : 0.0f;
      const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;
      float* slot = table ? partial + (row_of_head / a.T * parts + part) * slot_floats : nullptr;
      const LiveGroups groups(a, saved.rows, b, h, tile);
      const auto next = [&](int i0) {
        do {
          i0 += Q;
        } while (i0 < end && !groups.any(i0, Q / kLiveRows));
        return i0;
      };
      const bf16 *const q = row_of(a.q, b, 0, h), *const dout = row_of(saved.dout, b, 0, h);
      const auto copy = [&](int i0, uint32_t stage) {
        copy_tile_by_rows<D, Q>(queries + stage * kTileBytes<D, Q>, a.q, q, i0, a.T);
        copy_tile_by_rows<D, Q>(outputs + stage * kTileBytes<D, Q>, saved.dout, dout, i0, a.T);
        device::copy_async_commit();
      };
      double key_number[2] = {};  // n_j of the thread's two keys
      float dkey_number[2] = {};
      if (a.numbers != nullptr) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          const int j = j0 + own_key + 8 * r;
          key_number[r] = a.numbers[row_of_head + (j < a.T ? j : a.T - 1)];
        }
      }
      int i0 = next(j0 - Q);
      uint32_t stage = 0;
      if (i0 < end) copy(i0, 0);
      while (i0 < end) {
        const int after = next(i0);
        const double origin = a.numbers != nullptr && is_relative(a.formula)
                                  ? a.numbers[row_of_head + i0 / kQueryTile<D> * kQueryTile<D>]
                                  : 0.0;
        float key[2] = {};
        if (a.numbers != nullptr) {
          BAMTRAIN_UNROLL
          for (int r = 0; r < 2; ++r) key[r] = static_cast<float>(key_number[r] - origin);
        }
        if (thread < Q) {
          load_query(numbers[thread], more_numbers[thread], a, saved, b, h, i0 + thread, form, root,
                     origin);
        }
        if ((table || fire) && thread < Q + kTile) {
          const int d = i0 - j0 + thread - (kTile - 1);
          const float* const values_of = table ? a.table + h * a.table_head : a.fire.psi;
          slice[thread] = d >= 0 && d < a.T ? values_of[d] : 0.0f;
        }
        if (fire && thread < 4 * Q) {
          const int i = i0 + thread / 4;
          const FirePlace place(a, b, h, i, i - j0, thread % 4);
          if (thread % 4 == 0) places[thread / 4] = place;
        }
        if (after < end) {
          copy(after, 1 - stage);
          device::copy_async_wait<1>();
        } else {
          device::copy_async_wait<0>();
        }
        device::barrier();

        // Transposed: rows are keys, columns queries.
        float p_tile[1][Q / 8][4] = {}, dz_tile[1][Q / 8][4] = {};
        // Not unrolled, for the registers: the next step's operands would be loaded early.
        BAMTRAIN_NO_UNROLL
        for (int step = 0; step < D / 16; ++step) {
          uint32_t row[1][4];
          load_a<D>(row[0], keys + warp_rows, step, l);
          multiply_transposed<D>(p_tile, row, queries + stage * kTileBytes<D, Q>, step, l);
          load_a<D>(row[0], values + warp_rows, step, l);
          multiply_transposed<D>(dz_tile, row, outputs + stage * kTileBytes<D, Q>, step, l);
        }
        Tile &z = p_tile[0], &dz = dz_tile[0];
        for_elements([&](int n, int e, int, int query) {
          z[n][e] = fmaf(numbers[query].by, z[n][e], numbers[query].offset);
        });
        const auto add_bias = [&](const auto& bias) {
          for_elements([&](int n, int e, int own, int query) {
            z[n][e] = fmaf(more_numbers[query].of_bias, bias(n, e, own, query), z[n][e]);
          });
        };
        if (table) {
          add_bias([&](int, int, int own, int query) { return slice[query - own + kTile - 1]; });
        } else if (fire) {
          Tile biases = {};
          BAMTRAIN_UNROLL
          for (int n = 0; n < Q / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int c = 0; c < 2; ++c) {
              const int query = l.column(n, c), d = i0 + query - j0 - own_key;
              FirePlace place = places[query];
              walk_segments(place, a, b, h, i0 + query, d - 8, [&](const FirePlace& at, int high) {
                BAMTRAIN_UNROLL
                for (int r = 0; r < 2; ++r) {
                  const float psi = slice[query - own_key - 8 * r + kTile - 1];
                  if (d - 8 * r < high) biases[n][2 * r + c] = at.factor * psi + at.offset;
                }
              });
            }
          }
          device::sync_warp();  // before ldmatrix
          add_bias([&](int n, int e, int, int) { return kLn2 * biases[n][e]; });
        } else if (bias_of == BiasSource::formula) {
          with_formula(a.formula, [&]<class Of>() {
            add_bias([&](int, int e, int own, int query) {
              return Of::template bias<GeneralMath>(more_numbers[query].number, key[e / 2],
                                                    distance_of(i0 + query - j0 - own));
            });
          });
        }
        const bool all_seen =
            j0 + kTile - 1 <= i0 && i0 + Q <= a.T && more_numbers[Q - 1].first <= j0;
        if (!all_seen) {
          for_elements([&](int n, int e, int own, int query) {
            const int j = j0 + own, i = i0 + query;
            if (j > i || j < more_numbers[query].first || i >= a.T) z[n][e] = kMinusInfinity;
          });
        }
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int n = 0; n < Q / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int c = 0; c < 2; ++c) {
              const int query = l.column(n, c);
              const float centre = numbers[query].centre;
              LineWeights weights;
              float of_weights = 1;
              if (kForm == WeightForm::topk || kForm == WeightForm::entmax) {
                weights = more_numbers[query].weights;
                of_weights = more_numbers[query].of_weights;
              }
              if (kForm == WeightForm::topk && weights.cuts_ties(i0 + query, j0 + kTile - 1)) {
                BAMTRAIN_UNROLL
                for (int e = c; e < 4; e += 2) {
                  if (weights.drops_tie(z[n][e], j0 + own_key + e / 2 * 8))
                    z[n][e] = kMinusInfinity;
                }
              }
              BAMTRAIN_UNROLL
              for (int e = c; e < 4; e += 2) {
                const Weight w = weights.template of<kForm>(z[n][e], alpha_less_one);
                z[n][e] = kForm == WeightForm::entmax ? of_weights * w.p : w.p;
                dz[n][e] = w.u * (dz[n][e] - centre);
              }
            }
          }
        });
        // Rows of which one key alone has weight: near the diagonal, or all of them.
        if (!all_seen || a.normalizer.kind == NormalizerKind::topk) {
          for_elements([&](int n, int e, int, int query) {
            if (more_numbers[query].one != 0) dz[n][e] = 0;
          });
        }
        if (table) {
          for_elements([&](int n, int e, int own, int query) {
            db[own * kDbRow + query] = more_numbers[query].u * dz[n][e];
          });
        }
        if (a.numbers != nullptr) {
          with_formula(a.formula, [&]<class Of>() {
            for_elements([&](int n, int e, int own, int query) {
              const float slope = Of::template of_key<GeneralMath>(
                  more_numbers[query].number, key[e / 2], distance_of(i0 + query - j0 - own));
              dkey_number[e / 2] += more_numbers[query].u * dz[n][e] * slope;
            });
          });
        }
        uint32_t operand[1][Q / 16][4];
        as_operand(operand[0], z);
        multiply<D>(sum_v, operand, outputs + stage * kTileBytes<D, Q>, l);
        for_elements([&](int n, int e, int, int query) { dz[n][e] *= numbers[query].factor; });
        as_operand(operand[0], dz);
        multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q>, l);
        device::barrier();
        if (table && thread < Q + kTile - 1) {
          // Thread n sums distance i0 - j0 + n - 63: element (key, n - 63 + key).
          const int shift = thread - (kTile - 1);
          float sum = slot[i0 - j0 + thread];
          for (int own = shift < 0 ? -shift : 0; own < kTile && own + shift < Q; ++own) {
            sum += db[own * kDbRow + own + shift];
          }
          slot[i0 - j0 + thread] = sum;
        }
        stage = 1 - stage;
        i0 = after;
      }

      if (a.numbers != nullptr) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          dkey_number[r] += device::shuffle_xor(device::kWholeWarp, dkey_number[r], 1);
          dkey_number[r] += device::shuffle_xor(device::kWholeWarp, dkey_number[r], 2);
          const int j = j0 + own_key + 8 * r;
          if (l.pair == 0 && j < a.T) dnumbers[row_of_head + j] += dkey_number[r];
        }
      }
    }
    device::copy_async_wait<0>();
    device::barrier();

    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int j = j0 + own_key + 8 * r;
      if (j >= a.T) continue;
      auto* to_k = reinterpret_cast<uint32_t*>(row_of(dk, b, j, kh));
      auto* to_v = reinterpret_cast<uint32_t*>(row_of(dv, b, j, kh));
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        to_k[4 * n + l.pair] = device::pack_bf16(sum_k[0][n][2 * r], sum_k[0][n][2 * r + 1]);
        to_v[4 * n + l.pair] = device::pack_bf16(sum_v[0][n][2 * r], sum_v[0][n][2 * r + 1]);
      }
    }
  }
}

}  // namespace bamtrain::kernels
