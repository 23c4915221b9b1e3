#pragma once
// Attention, backward: what belongs to a query. Of softmax and topk D = <dO, out>; of entmax it
// follows from sums over a row, for which a block walks its tiles of keys once more. Stick-breaking
// walks for what it carries from tile to tile. One kernel, past 400 lines.

#include "attention_backward.cuh"
#include "attention_numbers.cuh"
#include "attention_sticks.cuh"
#include "attention_stream.cuh"

namespace bamtrain::kernels {

/// Keys per tile: of softmax as many as leave registers for dq beside two tiles of logits.
template <class Form>
constexpr int kQueriesKeys = Form::kOnline ? kPart : kTile;
template <int D, class Form>
using BackwardRows = QueryRows<kRowTiles<D, typename Form::Element>, Form, kQueriesKeys<Form>>;
template <int D, class Form>
using BackwardStream = KeyStream<D, Form, BackwardRows<D, Form>, Form::kFire>;

/// Where things are in shared memory, behind Q and dO and the tiles of keys and values.
template <int D, class Form>
struct BackwardFloats {
  using A = typename Form::Element;
  static constexpr int kQueries = kQueryTile<D, A>,
                       kSlices = BackwardStream<D, Form>::kSlicesFloats;
  // What rows have is in registers where these suffice.
  static constexpr bool kRowsInRegisters = Form::kOnline && !Form::kFire && !Form::kFormula;
  static constexpr int kNumbers = kSlices;  // of QueryRows
  static constexpr int kOfRows = kNumbers + (Form::kFormula ? kQueries : 0);
  // The thread's sums for its rows: of dz b; of stick-breaking, which takes no scale, p dP of the
  // keys before; and dn. Here for the registers.
  static constexpr int kOfThreads =
      kOfRows + (kRowsInRegisters ? 0 : NumbersOfRows::kFloats * kQueries);
  static constexpr int kDerivatives =
      kOfThreads + (kRowsInRegisters ? 0 : 4 * kRowTiles<D, A> * kThreads);
  static constexpr int kFire = kDerivatives + kSlices;
  static constexpr int all(bool fire) {
    return fire ? kFire + FireTotals<kQueries>::kFloats : kDerivatives;
  }
};

/// Launch with grid (tiles of queries, heads in flight), kThreads threads and this much dynamic
/// shared memory.
template <int D, class Form>
constexpr size_t attention_backward_queries_shared(bool fire) {
  using A = typename Form::Element;
  using Stream = BackwardStream<D, Form>;
  return 2 * kTileBytes<D, kQueryTile<D, A>, A> + 2 * Stream::kBuffers * Stream::kBytes +
         sizeof(float) * static_cast<size_t>(BackwardFloats<D, Form>::all(fire));
}

/// Blocks on a multiprocessor.
template <int D, class Form>
constexpr int kQueriesBlocks =
    Form::kOnline && !Form::kFire && !Form::kFormula && (D == 96 || D <= 16) ? 3 : 2;

/// dq (B, T, H, D), `to_rows`, dalpha (B, H, T) where it is, and saved.centre, .factor and .carries
/// are written, of the heads of all sequences from first_head on. Formed: of the queries whose
/// bias was formed: the weights and dz are written, 0 where there are none, of the block's keys
/// (see attention_content.cuh), and in saved.factor the sums of dz of softmax and topk, which are
/// zero but for roundings, and 0 of the others; dq is for others to write.
template <int D, class Form>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, kQueriesBlocks<D, Form>)
    attention_backward_queries(typename Form::Inputs a, BackwardSaved<typename Form::Element> saved,
                               Rows<typename Form::Element> dq, RowGradients to_rows, float* dalpha,
                               int first_head) {
  using A = typename Form::Element;
  using Block = BackwardRows<D, Form>;
  using Stream = BackwardStream<D, Form>;
  using Floats = BackwardFloats<D, Form>;
  constexpr int M = Block::kGroups, kRows = Block::kRows;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int head = static_cast<int>(device::block_index().y);  // in flight
  const int b = (first_head + head) / a.H, h = (first_head + head) % a.H, kh = h / (a.H / a.K);
  // The longest rows first.
  const int i0 =
      Block::block_begin(a, static_cast<int>(device::grid_size().x - 1 - device::block_index().x));
  const bool fire = Form::bias(a) == BiasSource::fire;

  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress outputs = queries + kTileBytes<D, kQueryTile<D, A>, A>;  // dO
  const SharedAddress keys = outputs + kTileBytes<D, kQueryTile<D, A>, A>;
  const SharedAddress values = keys + Stream::kBuffers * Stream::kBytes;
  float* const floats = reinterpret_cast<float*>(shared + 2 * kTileBytes<D, kQueryTile<D, A>, A> +
                                                 2 * Stream::kBuffers * Stream::kBytes);
  const Stream stream = {keys, values, floats, floats + Floats::kDerivatives, kh};
  const NumbersOfRows numbers(floats + Floats::kOfRows, kQueryTile<D, A>);
  float* const of_thread = floats + Floats::kOfThreads + thread;
  const FireTotals<kQueryTile<D, A>> fire_totals(floats + Floats::kFire);

  const Block own(a, b, h, i0, 1.0f / a.content_divisor, floats + Floats::kNumbers, l);
  const WeightForm form = Form::weights(a.normalizer, h);
  const bool stick = Form::kSticks && form == WeightForm::stick_breaking;

  Stream::template copy<kQueryTile<D, A>>(queries, a.q, b, h, i0, a.T);
  Stream::template copy<kQueryTile<D, A>>(outputs, saved.dout, b, h, i0, a.T);
  device::copy_async_commit();
  if (fire) {
    fire_totals.clear(thread);
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) fire_totals.clear_row(a, own, r, l);
  }

  // f(tile) for each tile that is live; of formed biases otherwise(tile) for others.
  LiveTiles<4 * M, A> live(a, saved.rows, b, h, i0, l.warp);
  const auto walk = [&](bool leftwards, const auto& otherwise, const auto& f) {
    const auto next = [&](int tile) {
      do {
        tile += leftwards ? -1 : 1;
      } while (!Form::kOnline && !Form::kFormed && tile >= own.first_tile &&
               tile <= own.last_tile && !live.any(tile));
      return tile;
    };
    stream.walk(
        own, a, next(leftwards ? own.last_tile + 1 : own.first_tile - 1), true, next,
        [&](const StreamedTile& of) {
          if (Form::kOnline || live.own(of.tile)) {
            f(of);
          } else if (Form::kFormed) {
            otherwise(of.tile);
          }
        },
        [] { return false; });
  };
  const auto nothing = [](int) {};
  // Of row r, which the lanes of the row share.
  float offset[kRows] = {}, centre[kRows] = {};  // of LineWeights, and D, if in registers
  const auto weights_of = [&](int r) {
    return Form::kOnline ? LineWeights() : numbers.weights(own.rows[r] - i0);
  };
  const auto centre_of = [&](int r) {
    return Floats::kRowsInRegisters ? centre[r] : numbers.centre(own.rows[r] - i0);
  };
  const float alpha_less_one = Form::alpha_less_one(a.normalizer, h);
  const bool takes_logits = LineWeights::takes_logits(form, alpha_less_one, Form::kExact);
  const auto line_of = [&](int r) {
    if (Floats::kRowsInRegisters) return WeightLine{kLog2e, offset[r]};
    // With fire this would spill registers.
    if (Form::kOnline && !Form::kFire) {
      return WeightLine{kLog2e, numbers.weights(own.rows[r] - i0).offset};
    }
    return numbers.line(own.rows[r] - i0, takes_logits);
  };
  // f(z, j0, part) with line_of(r) of the logits of each part of a tile that the warp sees.
  const auto with_logits = [&](bool leftwards, const StreamedTile& of, const auto& f) {
    stream.with_logits(own, a, queries, of, leftwards, line_of, l, f);
  };

  // Rows of which one key alone has weight are not at the diagonal alone.
  const bool of_one = form == WeightForm::topk && a.normalizer.keys.number <= 1;
  const bool of_rows = is_exponential(form);
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    RowWeights weights;
    float product = 0;
    if (!stick && own.inside(r)) {
      if constexpr (Form::kOnline) {
        weights.level = saved.rows.level[own.of_row(a, r)];
      } else {
        weights = RowWeights(a.normalizer, saved.rows, h, own.of_row(a, r));
      }
      if (of_rows) product = row_product_of_lane<D>(saved, own, r, l);
    }
    product += device::shuffle_xor(device::kWholeWarp, product, 1);
    product += device::shuffle_xor(device::kWholeWarp, product, 2);
    if constexpr (Floats::kRowsInRegisters) {
      offset[r] = LineWeights(form, weights, Form::kExact).offset;
      centre[r] = product;
    }
    if (l.pair != 0) continue;
    if constexpr (!Floats::kRowsInRegisters) {
      numbers.set(own.rows[r] - i0,
                  stick ? LineWeights() : LineWeights(form, weights, Form::kExact), product);
    }
    if (stick || !own.inside(r)) continue;
    if (!Form::kOnline) saved.third[own.of_row(a, r)] = weights.third;
    if (!of_rows) continue;
    saved.centre[own.of_row(a, r)] = product;
    if (!Form::kOnline) saved.factor[own.of_row(a, r)] = 1.0f;
  }
  device::sync_warp();
  if (stick) {
    float broken[kRows] = {};
    walk(true, nothing, [&](const StreamedTile& of) {
      with_logits(true, of, [&](GroupsOfLogits<M>& z, int j0, int) {
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
    walk(false, nothing, [&](const StreamedTile& of) {
      with_logits(false, of, [&](const GroupsOfLogits<M>& z, int, int part) {
        GroupsOfLogits<M> dp;
        stream.multiply_values(dp, outputs, of, part, l);
        with_weight_form(form, [&]<WeightForm kForm>() {
          if constexpr (is_exponential(kForm)) return;
          const auto for_weights = [&](const auto& f) {
            BAMTRAIN_UNROLL
            for (int r = 0; r < kRows; ++r) {
              const LineWeights weights = weights_of(r);
              own.for_row(r, [&](int n, int e) {
                f(sums[r], weights.template of<kForm, Form::kExact>(z[r / 2][n][e], alpha_less_one),
                  dp[r / 2][n][e]);
              });
            }
          };
          if (divided || entropy) {
            const float learned = entropy ? alpha_less_one : 0.0f;
            for_weights([&](RowSums& to, const Weight& w, float x) {
              to.add<Form::kExact>(w, x, learned);
            });
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
  float in_registers[2 * kRows];
  const auto sum_of_row = [&](int n) -> float& {
    return Floats::kRowsInRegisters ? in_registers[n] : of_thread[n * kThreads];
  };
  const auto carried = [&](int r) -> float& { return sum_of_row(r); };
  const auto dnumber = [&](int r) -> float& { return sum_of_row(kRows + r); };
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
  walk(false, clear_tile, [&](const StreamedTile& of) {
    if (Form::kFormed) {
      for_parts(false, [&](int part) {
        const int j0 = of.tile * kTile + part * kPart;
        if (!own.warp_sees(j0, kPart)) clear(j0);
      });
    }
    with_logits(false, of, [&](GroupsOfLogits<M>& z, int j0, int part) {
      GroupsOfLogits<M> dz;
      stream.multiply_values(dz, outputs, of, part, l);
      const float* const slice = own.slice_of(a, stream.slice(of), part);
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
            const float centre_of_row = centre_of(r);
            float of_weights = 1;
            if (Form::kFormed && kForm == WeightForm::entmax && own.inside(r)) {
              of_weights = saved.factor[own.of_row(a, r)];
            }
            if constexpr (kForm == WeightForm::topk) drop_ties(z, weights, own, a, r, j0, l);
            own.for_row(r, [&](int n, int e) {
              float &x = dz[r / 2][n][e], &logit = z[r / 2][n][e];
              const Weight w = weights.template of<kForm, Form::kExact>(logit, alpha_less_one);
              x = w.u * (x - centre_of_row);
              if (Form::kFormed) logit = kForm == WeightForm::entmax ? of_weights * w.p : w.p;
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
      if (Form::scales_bias(a)) {
        float dt[kRows] = {};
        own.with_biases(a, slice, j0, l, [&](int r, int n, int e, float bias) {
          const float x = dz[r / 2][n][e];
          // Nobody has formed the biases of keys that a row does not see.
          if (!Form::kFormed || x != 0) dt[r] += x * bias;
        });
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) carried(r) += dt[r] * (own.in_base_2(a) ? kLn2 : 1.0f);
      }
      if (Form::kFormed) {
        const auto elements = [](const GroupsOfLogits<M>& x) {
          return [&x](int r, int n, int e) { return x[r / 2][n][e]; };
        };
        store(j0, elements(z), elements(dz));
        own.for_elements([&](int r, int n, int e) { rest[r] += dz[r / 2][n][e]; });
      }
      if (Form::bias(a) == BiasSource::formula) {
        float of_number[kRows] = {};
        Form::with_formula(a, [&]<class Of>() {
          own.for_elements([&](int r, int n, int e) {
            const int key = l.column(n, e);
            of_number[r] += dz[r / 2][n][e] *
                            own.by_formula(slice, r, j0, key, [](float row, float other, float d) {
                              return Of::template of_row<typename Block::Math>(row, other, d);
                            });
          });
        });
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) dnumber(r) += of_number[r];
      }
      if (fire) {
        const float* const of_part = own.slice_of(a, stream.derivative(of), part);
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          FirePlace at = own.place(a, r, j0, l);
          fire_totals.add(at, own.bias_scale(a, r), dz[r / 2], a, own, r, j0, slice, of_part, l);
          if constexpr (Block::kKeepsPlaces) own.places[r] = at;
        }
      }
      if (Form::kFormed && !Form::scales(a)) return;
      Operand<A, kColumns> ds[M];
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) as_operand(ds[m], dz[m]);
      stream.add_products(sum, ds, keys, stream.buffer(of), part, l);
    });
  });

  if (fire && thread < kFirePartial) {
    const int64_t tile =
        (static_cast<int64_t>(b) * a.H + h) * device::grid_size().x + i0 / Block::kQueries;
    to_rows.fire_partial[tile * kFirePartial + thread] = fire_totals.of_segment(thread);
  }
  const float root = 1.0f / a.content_divisor;
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const auto& of_row = sum[r / 2];
    const int half = r % 2 * 2;
    // <q, sum dz k> is the content's part of dt.
    const auto* const query = reinterpret_cast<const A*>(
        shared + static_cast<uint32_t>(own.rows[r] - i0) * kRowBytes<D, A>);
    float content = 0;
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      const TwoFloats two = load_pair(query, n, l);
      content += two.x * of_row[n][half];
      content += two.y * of_row[n][half + 1];
    }
    float dt = carried(r) + root * content, of_number = dnumber(r);
    BAMTRAIN_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
      dt += device::shuffle_xor(device::kWholeWarp, dt, distance);
      of_number += device::shuffle_xor(device::kWholeWarp, of_number, distance);
      if (Form::kFormed) rest[r] += device::shuffle_xor(device::kWholeWarp, rest[r], distance);
    }
    if (!own.inside(r)) continue;
    if (!Form::kFormed) {
      store_row<D>(dq, own, r, of_row, own.factor[r], l);
    }
    if (l.pair != 0) continue;
    if (Form::kFormed) saved.factor[own.of_row(a, r)] = of_rows ? rest[r] : 0.0f;
    if (Form::scales(a)) to_rows.scale[own.of_row(a, r)] = dt;
    if (Form::bias(a) == BiasSource::formula) {
      to_rows.numbers[own.of_row(a, r)] = own.bias_scale(a, r) * of_number;
    }
    if (fire) {
      const float by_row = own.bias_scale(a, r);
      const int row = own.rows[r] - i0;
      to_rows.fire_u[own.of_row(a, r)] = by_row * fire_totals.u[row];
      to_rows.fire_psi[own.of_row(a, r)] = by_row / fire_totals.inverse[row] * fire_totals.psi[row];
    }
  }
}

}  // namespace bamtrain::kernels
