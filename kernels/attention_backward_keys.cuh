#pragma once
// Attention, backward: dk, dv, and db by distance or by key, of any normalizer whose weights follow
// from numbers of the row. A warp owns 16 keys and forms the transposes of weights and dz, which
// are operands as they are. Stick-breaking, whose weights follow from each other along a row, has
// attention_backward_keys_sticks.cuh.

#include "attention_backward.cuh"

namespace bamtrain::kernels {

/// Queries per tile here: registers hold dk and dv of 16 keys beside two tiles of logits.
template <int D>
constexpr int kBackwardQueries = D > 96 ? 16 : 32;

/// What queries have of weights and dz, in shared memory; of two neighbours it is read at once. See
/// LineWeights, QueryRows, BackwardSaved.
template <int Q>
struct QueryNumbers {
  float by[Q], offset[Q];  // of what is made weights, by <q, k> + offset + of_bias b; of softmax
                           // `by` follows from t
  float centre[Q], t[Q];
  float number[Q];        // of a formula
  int first[Q], last[Q];  // keys that it sees
  int one[Q];             // whether one key alone has weight: constant_weights
};
/// Of one query, what forms that are chosen at run time need.
struct alignas(16) MoreQueryNumbers {
  LineWeights weights;
  float of_weights;  // what they are multiplied by
  float of_bias;     // u times the slope of `weights`
};

/// Floats from one row of db in shared memory to the next. Odd: threads whose diagonals begin in
/// different rows read different banks, and of a warp's stores no more than two meet.
template <int D>
constexpr int kDbRow = kBackwardQueries<D> + 3;

template <int D, class Form>
constexpr size_t attention_backward_keys_shared() {
  using A = typename Form::Element;
  constexpr int Q = kBackwardQueries<D>;
  constexpr size_t kBiases = kSlice + (Form::kTable ? kTile * kDbRow<D> : 0);
  return 2 * kTileBytes<D, kTile, A> + 4 * kTileBytes<D, Q, A> + sizeof(QueryNumbers<Q>) +
         Q * ((Form::kOnline ? 0 : sizeof(MoreQueryNumbers)) + sizeof(FirePlace)) +
         (Form::kTable || Form::kFire ? sizeof(float) * kBiases : 0);
}

/// Blocks on a multiprocessor: the most that registers allow without spilling.
template <int D, class Form>
constexpr int kKeysBlocks = !Form::kOnline || Form::kFormula || D > 64           ? 2
                            : D == 64 && Form::kUnscaledBias && !Form::kUnscaled ? 2
                            : D > 16 || Form::kFire                              ? 3
                                                                                 : 4;

/// The `at`-th numbers are of query i of (b, h), or of none past T: its weights are 0.
template <class Form, int Q>
BAMTRAIN_DEVICE void load_query(QueryNumbers<Q>& x, int at, MoreQueryNumbers& more,
                                const typename Form::Inputs& a, const auto& saved, int b, int h,
                                int i, float root, double origin) {
  x.by[at] = x.offset[at] = x.centre[at] = x.number[at] = 0;
  x.t[at] = 1;
  x.first[at] = i + 1;
  x.last[at] = i;
  x.one[at] = 0;
  if (!Form::kOnline) more = {{}, 0.0f, 1.0f};
  if (i >= a.T) return;
  const int64_t row = (static_cast<int64_t>(b) * a.H + h) * a.T + i;
  const float t = Form::scales(a) ? a.scale[row] : 1.0f;
  const WeightForm form = Form::weights(a.normalizer, h);
  RowWeights weights;
  weights.level = saved.rows.level[row];
  if (!Form::kOnline) {
    weights.third = saved.third[row];
    if (saved.rows.threshold != nullptr) weights.threshold = saved.rows.threshold[row];
    weights.a = Form::alpha_less_one(a.normalizer, h);
  }
  const LineWeights of_row(form, weights, Form::kExact);
  const WeightLine line = of_row.line(LineWeights::takes_logits(form, weights.a, Form::kExact));
  if (!Form::kOnline) x.by[at] = root * t * line.slope;
  x.offset[at] = line.offset;
  x.centre[at] = saved.centre[row];
  if (!Form::kUnscaled) x.t[at] = t;
  if (!Form::kOnline) {
    more = {of_row, saved.factor[row], Form::scales_bias(a) ? t * line.slope : line.slope};
  }
  if (Form::bias(a) == BiasSource::formula) {
    x.number[at] = static_cast<float>(a.numbers[row] - origin);
  }
  const int first = a.first_key[static_cast<int64_t>(b) * a.T + i];
  const int last = last_of<Form>(a, b, i);
  x.first[at] = first;
  if (!Form::kCausal) x.last[at] = last;
  x.one[at] = constant_weights(a, last - first + 1);
}

/// dk and dv (B, T, K, D) are written; with numbers the keys' part is added to dnumbers (B, H, T),
/// which has the queries'; with a table partial (B, H, parts, slot_floats) is written too, entry
/// kTile - 1 + d of a slot for the d-th distance; slot_floats is attention_partial_table. Launch
/// with grid (parts, key heads, 1): a block takes every parts-th tile of keys, so that the partial
/// tables are few and each has one owner; kThreads threads and this much dynamic shared memory; the
/// key heads are those of all sequences from first_head on.
template <int D, class Form>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kKeysBlocks<D, Form>)
    attention_backward_keys(typename Form::Inputs a, BackwardSaved<typename Form::Element> saved,
                            Rows<typename Form::Element> dk, Rows<typename Form::Element> dv,
                            float* dnumbers, float* partial, int64_t slot_floats, int first_head) {
  using A = typename Form::Element;
  using Math = DeviceMath<Form::kExact>;
  constexpr int Q = kBackwardQueries<D>;
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
  const SharedAddress values = keys + kTileBytes<D, kTile, A>;
  const SharedAddress queries = values + kTileBytes<D, kTile, A>;   // two stages
  const SharedAddress outputs = queries + 2 * kTileBytes<D, Q, A>;  // dO, two stages
  unsigned char* const behind = shared + 2 * kTileBytes<D, kTile, A> + 4 * kTileBytes<D, Q, A>;
  auto& numbers = *reinterpret_cast<QueryNumbers<Q>*>(behind);
  auto* const more_numbers = reinterpret_cast<MoreQueryNumbers*>(behind + sizeof(numbers));
  auto* const places = reinterpret_cast<FirePlace*>(more_numbers + (Form::kOnline ? 0 : Q));
  float* const slice = reinterpret_cast<float*>(places + Q);  // of the table or of psi
  float* const db = slice + kSlice;                           // (kTile, kDbRow<D>)
  const int32_t* first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const uint32_t warp_rows = static_cast<uint32_t>(l.warp * kWarpRows) * kRowBytes<D, A>;
  const float root = 1.0f / a.content_divisor;
  const BiasSource bias_of = Form::bias(a);
  const bool table = bias_of == BiasSource::table, fire = bias_of == BiasSource::fire;
  const bool formula = bias_of == BiasSource::formula;

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
    copy_tile<D>(keys, a.k, b, kh, j0, a.T);
    copy_tile<D>(values, a.v, b, kh, j0, a.T);
    device::copy_async_commit();
    float sum_k[1][D / 8][4] = {}, sum_v[1][D / 8][4] = {};

    for (int g = 0; g < group; ++g) {
      const int h = kh * group + g;
      const WeightForm form = Form::weights(a.normalizer, h);
      const float alpha_less_one = Form::alpha_less_one(a.normalizer, h);
      const int64_t row_of_head = (static_cast<int64_t>(b) * a.H + h) * a.T;
      float* slot = table ? partial + (row_of_head / a.T * parts + part) * slot_floats : nullptr;
      const LiveGroups groups(a, saved.rows, b, h, tile);
      const auto next = [&](int i0) {
        do {
          i0 += Q;
        } while (!Form::kOnline && i0 < end && !groups.any(i0, Q / kLiveRows));
        return i0;
      };
      const A *const q = row_of(a.q, b, 0, h), *const dout = row_of(saved.dout, b, 0, h);
      const auto copy = [&](int i0, uint32_t stage) {
        if constexpr (Form::kOnline) {
          copy_tile<D, Q>(queries + stage * kTileBytes<D, Q, A>, a.q, b, h, i0, a.T);
          copy_tile<D, Q>(outputs + stage * kTileBytes<D, Q, A>, saved.dout, b, h, i0, a.T);
        } else {
          copy_tile_by_rows<D, Q>(queries + stage * kTileBytes<D, Q, A>, a.q, q, i0, a.T);
          copy_tile_by_rows<D, Q>(outputs + stage * kTileBytes<D, Q, A>, saved.dout, dout, i0, a.T);
        }
        device::copy_async_commit();
      };
      double key_number[2] = {};  // n_j of the thread's two keys
      float dkey_number[2] = {};
      if (formula) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          const int j = j0 + own_key + 8 * r;
          key_number[r] = a.numbers[row_of_head + (j < a.T ? j : a.T - 1)];
        }
      }
      // Rows see each other or neither does: first_key[j0] is the first query that sees key j0.
      int i0 = next((Form::kCausal || a.causal ? j0 : first_key[j0] / Q * Q) - Q);
      uint32_t stage = 0;
      if (i0 < end) copy(i0, 0);
      while (i0 < end) {
        const int after = next(i0);
        const double origin =
            formula && is_relative(a.formula)
                ? a.numbers[row_of_head + i0 / kQueryTile<D, A> * kQueryTile<D, A>]
                : 0.0;
        float key[2] = {};
        if (formula) {
          BAMTRAIN_UNROLL
          for (int r = 0; r < 2; ++r) key[r] = static_cast<float>(key_number[r] - origin);
        }
        if (thread < Q) {
          load_query<Form>(numbers, thread, more_numbers[thread], a, saved, b, h, i0 + thread, root,
                           origin);
        }
        if ((table || fire) && thread < Q + kTile) {
          const int d = i0 - j0 + thread - (kTile - 1);
          const float* const values_of = table ? a.table + h * a.table_head : a.fire.psi;
          slice[thread] = d >= -distances_behind<Form>(a) && d < a.T ? values_of[d] : 0.0f;
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
          multiply_step<D, A>(
              p_tile, [&](int) { return keys + warp_rows; }, queries + stage * kTileBytes<D, Q, A>,
              step, l);
          multiply_step<D, A>(
              dz_tile, [&](int) { return values + warp_rows; },
              outputs + stage * kTileBytes<D, Q, A>, step, l);
        }
        Tile &z = p_tile[0], &dz = dz_tile[0];
        float t[Q / 8][2], u[Q / 8][2];  // of the queries
        BAMTRAIN_UNROLL
        for (int n = 0; n < Q / 8; ++n) {
          BAMTRAIN_UNROLL
          for (int c = 0; c < 2; ++c) {
            t[n][c] = Form::kUnscaled ? 1.0f : numbers.t[l.column(n, c)];
            u[n][c] = Form::kUnscaledBias || !Form::scales_bias(a) ? 1.0f : t[n][c];
          }
        }
        for_elements([&](int n, int e, int, int query) {
          const float by = Form::kOnline ? kLog2e * root * t[n][e % 2] : numbers.by[query];
          z[n][e] = fmaf(by, z[n][e], numbers.offset[query]);
        });
        const auto add_bias = [&](const auto& bias) {
          for_elements([&](int n, int e, int own, int query) {
            const float by = Form::kOnline ? kLog2e * u[n][e % 2] : more_numbers[query].of_bias;
            z[n][e] = fmaf(by, bias(n, e, own, query), z[n][e]);
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
          add_bias([&](int n, int e, int, int) { return biases[n][e]; });
        } else if (formula) {
          Form::with_formula(a, [&]<class Of>() {
            add_bias([&](int, int e, int own, int query) {
              return Of::template bias<Math>(numbers.number[query], key[e / 2],
                                             distance_of(i0 + query - j0 - own));
            });
          });
        }
        const auto last_of = [&](int query) {
          return Form::kCausal ? i0 + query : numbers.last[query];
        };
        const bool all_seen =
            j0 + kTile - 1 <= last_of(0) && i0 + Q <= a.T && numbers.first[Q - 1] <= j0;
        if (!all_seen) {
          for_elements([&](int n, int e, int own, int query) {
            const int j = j0 + own;
            const bool sees = j <= last_of(query) && j >= numbers.first[query];
            if (!sees || i0 + query >= a.T) z[n][e] = kMinusInfinity;
          });
        }
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int n = 0; n < Q / 8; ++n) {
            BAMTRAIN_UNROLL
            for (int c = 0; c < 2; ++c) {
              const int query = l.column(n, c);
              const float centre = numbers.centre[query];
              LineWeights weights;
              float of_weights = 1;
              if (Form::kExact || kForm == WeightForm::topk || kForm == WeightForm::entmax) {
                weights = more_numbers[query].weights;
                of_weights = more_numbers[query].of_weights;
              }
              if (kForm == WeightForm::topk && weights.cuts_ties(last_of(query), j0 + kTile - 1)) {
                BAMTRAIN_UNROLL
                for (int e = c; e < 4; e += 2) {
                  if (weights.drops_tie(z[n][e], j0 + own_key + e / 2 * 8))
                    z[n][e] = kMinusInfinity;
                }
              }
              BAMTRAIN_UNROLL
              for (int e = c; e < 4; e += 2) {
                const Weight w = weights.template of<kForm, Form::kExact>(z[n][e], alpha_less_one);
                z[n][e] = kForm == WeightForm::entmax ? of_weights * w.p : w.p;
                dz[n][e] = w.u * (dz[n][e] - centre);
              }
            }
          }
        });
        // Rows of which one key alone has weight: near the diagonal, or all of them.
        if (!all_seen || form == WeightForm::topk) {
          for_elements([&](int n, int e, int, int query) {
            if (numbers.one[query] != 0) dz[n][e] = 0;
          });
        }
        if (table) {
          for_elements([&](int n, int e, int own, int query) {
            db[own * kDbRow<D> + query] = u[n][e % 2] * dz[n][e];
          });
        }
        if (formula) {
          Form::with_formula(a, [&]<class Of>() {
            for_elements([&](int n, int e, int own, int query) {
              const float slope = Of::template of_key<Math>(numbers.number[query], key[e / 2],
                                                            distance_of(i0 + query - j0 - own));
              dkey_number[e / 2] += u[n][e % 2] * dz[n][e] * slope;
            });
          });
        }
        Operand<A, Q / 8> operand[1];
        as_operand(operand[0], z);
        multiply<D>(sum_v, operand, outputs + stage * kTileBytes<D, Q, A>, l);
        if (!Form::kUnscaled) {
          for_elements([&](int n, int e, int, int) { dz[n][e] *= t[n][e % 2]; });
        }
        as_operand(operand[0], dz);
        multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q, A>, l);
        device::barrier();
        if (table && thread < Q + kTile - 1) {
          // Thread n sums distance i0 - j0 + n - 63: element (key, n - 63 + key).
          const int shift = thread - (kTile - 1);
          float& of_distance = slot[distances_behind<Form>(a) + i0 - j0 + thread];
          float sum = of_distance;
          for (int own = shift < 0 ? -shift : 0; own < kTile && own + shift < Q; ++own) {
            sum += db[own * kDbRow<D> + own + shift];
          }
          of_distance = sum;
        }
        stage = 1 - stage;
        i0 = after;
      }

      if (formula) {
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
      A *const to_k = row_of(dk, b, j, kh), *const to_v = row_of(dv, b, j, kh);
      BAMTRAIN_UNROLL
      for (int n = 0; n < D / 8; ++n) {
        store_pair(to_k, n, l, sum_k[0][n][2 * r] * root, sum_k[0][n][2 * r + 1] * root);
        store_pair(to_v, n, l, sum_v[0][n][2 * r], sum_v[0][n][2 * r + 1]);
      }
    }
  }
}

}  // namespace bamtrain::kernels
