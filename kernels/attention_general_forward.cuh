#pragma once
// The general path, forward: a block searches level and threshold of its rows by passes over the
// tiles of keys, in which the products are formed anew, and then walks the tiles once more for the
// output. Tiles in which a pass finds nothing that matters are not visited again: where attention
// is sparse, passes are short. A warp whose rows have all they seek waits for the others.

#include "attention_general_sticks.cuh"

namespace bamtrain::kernels {

/// Which tiles of keys the next pass visits, a bit for each warp: those of two passes, for the
/// first tiles of a block. Those further on are always visited.
struct Marks {
  static constexpr int kWords = 64, kTiles = 32 * kWords;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kBytes = 2 * kWarps * kWords * sizeof(uint32_t);

  /// The words of a tile, of each warp.
  struct alignas(16) OfWarps {
    uint32_t word[kWarps];
  };
  OfWarps* words;  // (2, kWords)

  BAMTRAIN_DEVICE OfWarps* of_pass(int pass) const { return words + pass % 2 * kWords; }
  /// Whether warp w visits the tile, and whether any does.
  BAMTRAIN_DEVICE bool warp(int pass, int w, int tile) const {
    return tile >= kTiles || (of_pass(pass)[tile / 32].word[w] >> (tile % 32) & 1) != 0;
  }
  BAMTRAIN_DEVICE bool any(int pass, int tile) const {
    if (tile >= kTiles) return true;
    const OfWarps of = of_pass(pass)[tile / 32];
    return ((of.word[0] | of.word[1] | of.word[2] | of.word[3]) >> (tile % 32) & 1) != 0;
  }
  /// By one lane of the warp.
  BAMTRAIN_DEVICE void set(int pass, int w, int tile) const {
    if (tile < kTiles) of_pass(pass)[tile / 32].word[w] |= uint32_t{1} << (tile % 32);
  }
  /// By all lanes of warp w: no tile, or those of the pass before.
  BAMTRAIN_DEVICE void begin(int pass, int w, bool as_before, int lane) const {
    for (int n = lane; n < kWords; n += 32) {
      of_pass(pass)[n].word[w] = as_before ? of_pass(pass + 1)[n].word[w] : 0;
    }
  }
  BAMTRAIN_DEVICE void set_all(int pass, int w, int lane) const {
    for (int n = lane; n < kWords; n += 32) of_pass(pass)[n].word[w] = ~uint32_t{0};
  }
};

/// The values' tiles, or while these are not needed the lists of logits.
template <int D>
constexpr size_t kValueBytes = std::max<size_t>(kGeneralStages<D>* kTileBytes<D>,
                                                2 * kRowTiles<D> * LogitList::kFloats *
                                                    sizeof(float));

/// Launch with grid (tiles of these queries, of formed biases of 64, H, B), kThreads threads and
/// this much dynamic shared memory.
template <int D>
constexpr size_t attention_general_forward_shared() {
  return kTileBytes<D, kQueryTile<D>> + kGeneralStages<D> * kTileBytes<D> + kValueBytes<D> +
         (2 * GeneralRows<kRowTiles<D>>::kSliceFloats +
          (1 + NumbersOfRows::kFloats) * kQueryTile<D>)*sizeof(float) +
         2 * kRowTiles<D> * kThreads * sizeof(Selection) + Marks::kBytes + 4 * sizeof(int);
}

/// out (B, T, H, D) and `saved` are written, of the queries whose bias was formed or of all.
template <int D, bool kFormed>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_general_queries_forward(AttentionInputs<bf16> a, Rows<bf16> out, SavedRows saved) {
  // Of formed biases one group, for the registers: those of the search are many.
  constexpr int kStages = kGeneralStages<D>, M = kFormed ? 1 : kRowTiles<D>, kRows = 2 * M;
  using Block = GeneralRows<M, kFormed>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  const int tiles = static_cast<int>(device::grid_size().x);
  const int i0 = Block::block_begin(a, tiles - 1 - static_cast<int>(device::block_index().x));
  constexpr size_t kValuesAt = kTileBytes<D, kQueryTile<D>> + kStages * kTileBytes<D>;
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress keys = queries + kTileBytes<D, kQueryTile<D>>;  // kStages of them
  const SharedAddress values = queries + static_cast<uint32_t>(kValuesAt);
  float* const lists = reinterpret_cast<float*>(shared + kValuesAt);
  float* const slices = reinterpret_cast<float*>(shared + kValuesAt + kValueBytes<D>);  // two
  float* const row_sums = slices + 2 * Block::kSliceFloats;
  const NumbersOfRows numbers(row_sums + kQueryTile<D>, kQueryTile<D>);
  auto* const selections =
      reinterpret_cast<Selection*>(row_sums + (1 + NumbersOfRows::kFloats) * kQueryTile<D>);
  const Marks marks{reinterpret_cast<Marks::OfWarps*>(selections + kRows * kThreads)};
  int* const votes = reinterpret_cast<int*>(marks.words) + Marks::kBytes / sizeof(int);

  const Block own(a, b, h, i0, kQueryTile<D>, 1.0f / a.content_divisor, row_sums, l);
  const int kh = h / (a.H / a.K), count = own.last_tile - own.first_tile + 1;
  const WeightForm form = weight_form(a.normalizer, h);
  const bool stick = form == WeightForm::stick_breaking;
  const bf16 *const k = row_of(a.k, b, 0, kh), *const v = row_of(a.v, b, 0, kh);
  copy_tile_by_rows<D, Block::kQueries>(queries, a.q, row_of(a.q, b, 0, h), i0, a.T);
  device::copy_async_commit();
  marks.set_all(0, l.warp, l.lane);
  device::barrier();

  // f(tile, slice, stage), tiles counted from the block's first, for each that a warp has marked,
  // from the diagonal to the left, while any warp returns true.
  int pass = 0;
  const auto walk = [&](bool with_values, const auto& f) {
    const auto next = [&](int tile) {
      do {
        --tile;
      } while (tile >= 0 && !marks.any(pass, tile));
      return tile;
    };
    const auto copy = [&](int tile, uint32_t stage) {
      const int j0 = (own.first_tile + tile) * kTile;
      copy_tile_by_rows<D>(keys + stage * kTileBytes<D>, a.k, k, j0, a.T);
      if (with_values) copy_tile_by_rows<D>(values + stage * kTileBytes<D>, a.v, v, j0, a.T);
      device::copy_async_commit();
    };
    int tile = next(count);
    uint32_t stage = 0;
    if (tile >= 0) copy(tile, 0);
    while (tile >= 0) {
      const int after = next(tile), j0 = (own.first_tile + tile) * kTile;
      float* const slice = slices + stage % 2 * Block::kSliceFloats;
      own.fill_slice(slice, a, j0, thread);
      if (kStages > 1 && after >= 0) {
        copy(after, (stage + 1) % kStages);
        device::copy_async_wait<1>();
      } else {
        device::copy_async_wait<0>();
      }
      device::barrier();
      bool more = true;
      if (marks.warp(pass, l.warp, tile) && own.warp_sees(j0, kTile)) {
        more = f(tile, slice, stage % kStages);
      }
      if (stick && l.lane == 0) votes[l.warp] = more;
      device::barrier();
      if (stick && votes[0] + votes[1] + votes[2] + votes[3] == 0) break;
      ++stage;
      if (kStages == 1 && after >= 0) copy(after, 0);
      tile = after;
    }
    device::copy_async_wait<0>();
    device::barrier();
  };
  bool takes_logits = false;  // what weights are made of: LineWeights
  const auto line_of = [&](int r) { return numbers.line(own.rows[r] - i0, takes_logits); };
  // f(z, j0, part) for each part of a tile that the warp sees, with the line of `numbers` of
  // logits.
  const auto with_logits = [&](int tile, const float* slice, uint32_t stage, const auto& f) {
    for_parts(true, [&](int part) {
      const int j0 = (own.first_tile + tile) * kTile + part * kPart;
      if (!own.warp_sees(j0, kPart)) return;
      GroupsOfLogits<M> z;
      multiply_part<D>(z, queries, keys + stage * kTileBytes<D> + part_bytes<D>(part), l);
      own.logits(z, line_of, a, own.slice_of(a, slice, part), j0, l);
      f(z, j0, part);
    });
  };

  RowSearch search[kRows];
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    search[r] = RowSearch(a.normalizer, form, h, own.rows[r], own.keys(a, r), a.T,
                          selections + r * kThreads + thread,
                          {lists + r * LogitList::kFloats + thread, l.lane});
  }
  bool warp_done = stick;
  while (!stick) {
    marks.begin(pass + 1, l.warp, warp_done, l.lane);
    device::sync_warp();
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (l.pair == 0) numbers.set_line(own.rows[r] - i0, search[r].line());
    }
    device::sync_warp();
    walk(false, [&](int tile, const float* slice, uint32_t stage) {
      if (warp_done) return true;
      bool alive = false;
      with_logits(tile, slice, stage, [&](const GroupsOfLogits<M>& z, int j0, int part) {
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const bool of_row = search[r].template accumulate<kForm, false>(
                [&](const auto& f) {
                  own.for_row(r, [&](int n, int e) { f(z[r / 2][n][e], j0 + l.column(n, e)); });
                },
                pass + 1, kParts * tile + part);
            alive = alive || of_row;
          }
        });
      });
      const bool marked = device::ballot(device::kWholeWarp, alive) != 0;
      if (marked && l.lane == 0) marks.set(pass + 1, l.warp, tile);
      return true;
    });
    bool of_list = false;
    for (int turn = pass + 1;; ++turn, of_list = true) {  // first the pass, then what lists settle
      bool listed = false, done = true;
      BAMTRAIN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        search[r].template join<4>();
        if (!of_list || search[r].listed()) search[r].template advance<false>(turn, of_list);
        if (turn == 1 && form == WeightForm::topk) search[r].begin_with_groups();
        listed = listed || search[r].listed();
        done = done && search[r].done();
      }
      warp_done = device::ballot(device::kWholeWarp, !done) == 0;
      if (device::ballot(device::kWholeWarp, listed) == 0) break;
      with_weight_form(form, [&]<WeightForm kForm>() {
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          if (search[r].listed()) search[r].template accumulate_listed<kForm>();
        }
      });
    }
    if (l.lane == 0) votes[l.warp] = warp_done;
    device::barrier();
    ++pass;
    if (votes[0] + votes[1] + votes[2] + votes[3] == 4) break;
  }

  const float alpha_less_one = search[0].weights().a;
  takes_logits = LineWeights::takes_logits(form, alpha_less_one);
  bool seeks_smallest = false;  // of the logits that topk keeps
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (form == WeightForm::topk && !search[r].find_smallest()) seeks_smallest = true;
    if (l.pair != 0) continue;
    if (stick) {
      numbers.set(own.rows[r] - i0, LineWeights(), 0.0f);
      continue;
    }
    const RowWeights weights = search[r].weights();
    numbers.set(own.rows[r] - i0, LineWeights(form, weights), 0.0f);
    if (!own.inside(r)) continue;
    saved.level[own.of_row(a, r)] = weights.level;
    if (saved.threshold != nullptr) {
      saved.threshold[own.of_row(a, r)] = weights.nan_or(weights.threshold);
    }
    if (form == WeightForm::topk) saved.last[own.of_row(a, r)] = weights.last();
  }
  seeks_smallest = device::ballot(device::kWholeWarp, seeks_smallest) != 0;
  const auto live_of_warp = [&] { return LiveRows(a, saved, b, h, i0 + own.group_row(l, 0), M); };
  {
    const LiveRows live = live_of_warp();
    for (int n = l.lane; n < live.groups * live.per_group; n += 32) live.words[n] = 0;
  }
  device::sync_warp();

  // In place of what the search worked in.
  float* const smallest_of_thread = reinterpret_cast<float*>(selections) + thread;
  device::barrier();
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (seeks_smallest) smallest_of_thread[r * kThreads] = INFINITY;
  }

  const auto weights_of = [&](int r) { return numbers.weights(own.rows[r] - i0); };
  int live_at = 0;          // of the words
  uint32_t live_tiles = 0;  // there, of group `lane`
  const auto store_live = [&] {
    const LiveRows live = live_of_warp();
    if (l.lane >= live.groups || live_tiles == 0) return;
    live.words[l.lane * live.per_group + live_at] = static_cast<int32_t>(live_tiles);
  };
  float sum_out[M][D / 8][4] = {};
  float total[kRows] = {};  // of weights that are divided by it; or what sticks have broken off
  walk(true, [&](int tile, const float* slice, uint32_t stage) {
    uint32_t marked = 0;  // a bit for each group
    with_logits(tile, slice, stage, [&](GroupsOfLogits<M>& z, int j0, int part) {
      if (stick) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          Logits share;
          stick_weights(z[r / 2], share, total[r], r % 2, l);
          own.for_row(r, [&](int n, int e) {
            if (z[r / 2][n][e] <= kLeastWeight) z[r / 2][n][e] = 0;
          });
        }
      } else {
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const LineWeights weights = weights_of(r);
            if constexpr (kForm == WeightForm::topk) {
              drop_ties(z, weights, own, r, j0, l);
              if (seeks_smallest) {
                float smallest = smallest_of_thread[r * kThreads];
                own.for_row(r, [&](int n, int e) {
                  const float x = z[r / 2][n][e];
                  smallest = x >= weights.threshold ? fminf(smallest, x) : smallest;
                });
                smallest_of_thread[r * kThreads] = smallest;
              }
            }
            own.for_row(r, [&](int n, int e) {
              float& x = z[r / 2][n][e];
              x = weights.template of<kForm>(x, alpha_less_one).p;
              if (kForm != WeightForm::entmax_1_5 && kForm != WeightForm::entmax_2) total[r] += x;
            });
          }
        });
      }
      uint32_t p[M][kPart / 16][4], weighty = 0;
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) {
        as_operand(p[m], z[m]);
        uint32_t any = 0;
        BAMTRAIN_UNROLL
        for (int s = 0; s < kPart / 16; ++s)
          any |= p[m][s][0] | p[m][s][1] | p[m][s][2] | p[m][s][3];
        if (device::ballot(device::kWholeWarp, any != 0) != 0) weighty |= 1u << m;
      }
      if (weighty == 0) return;
      marked |= weighty;
      multiply<D>(sum_out, p, values + stage * kTileBytes<D> + part_bytes<D>(part), l);
    });
    const int of_all = own.first_tile + tile;
    if (of_all / 32 != live_at) {
      store_live();
      live_at = of_all / 32;
      live_tiles = 0;
    }
    live_tiles |= (marked >> l.lane & 1) << (of_all % 32);
    bool rest = false;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) rest = rest || (own.inside(r) && total[r] < kMostBroken);
    return !stick || device::ballot(device::kWholeWarp, rest) != 0;
  });

  store_live();
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    total[r] += device::shuffle_xor(device::kWholeWarp, total[r], 1);
    total[r] += device::shuffle_xor(device::kWholeWarp, total[r], 2);
    float smallest = seeks_smallest ? smallest_of_thread[r * kThreads] : 0.0f;
    smallest = fminf(smallest, device::shuffle_xor(device::kWholeWarp, smallest, 1));
    smallest = fminf(smallest, device::shuffle_xor(device::kWholeWarp, smallest, 2));
    RowWeights found;
    found.a = alpha_less_one;
    if (!stick && own.inside(r)) found.level = saved.level[own.of_row(a, r)];
    device::sync_warp();  // the level is read by the lanes of the row before one of them writes it
    if (!own.inside(r)) continue;
    const float factor = stick ? 1.0f : found.nan_or(found.factor_of(form, total[r]));
    if (!stick && l.pair == 0) {
      saved.level[own.of_row(a, r)] = found.level_of(form, total[r]);
      if (seeks_smallest) saved.threshold[own.of_row(a, r)] = found.nan_or(smallest);
    }
    auto* to = reinterpret_cast<uint32_t*>(row_of(out, b, own.rows[r], h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] = device::pack_bf16(sum_out[r / 2][n][r % 2 * 2] * factor,
                                             sum_out[r / 2][n][r % 2 * 2 + 1] * factor);
    }
  }
}

}  // namespace bamtrain::kernels
