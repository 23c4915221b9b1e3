#pragma once
// Forward, of any normalizer: a block searches level and threshold of its rows by passes over the
// tiles of keys, in which the products are formed anew, and then walks the tiles once more for the
// output. Tiles in which a pass finds nothing that matters are not visited again: where attention
// is sparse, passes are short. A warp whose rows have all they seek waits for the others.

#include "attention_numbers.cuh"
#include "attention_sticks.cuh"
#include "attention_stream.cuh"

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

template <int D, class Form>
using SearchedStream = KeyStream<D, Form, QueryRows<1, Form>>;

/// The values' tiles, or while these are not needed the lists of logits.
template <int D>
constexpr size_t kValueBytes = std::max<size_t>(kStages<D, AnyForm>* kTileBytes<D>,
                                                2 * LogitList::kFloats * sizeof(float));

/// Launch with grid (tiles of these queries, H, B), kThreads threads and this much
/// dynamic shared memory.
template <int D>
constexpr size_t attention_searched_shared() {
  return kTileBytes<D> + kStages<D, AnyForm> * kTileBytes<D> + kValueBytes<D> +
         (SearchedStream<D, AnyForm>::kSlicesFloats + (1 + NumbersOfRows::kFloats) * kTile) *
             sizeof(float) +
         2 * kThreads * sizeof(Selection) + Marks::kBytes + 4 * sizeof(int);
}

/// out (B, T, H, D) and `saved` are written, of the queries whose bias was formed or of all.
template <int D, class Form>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_searched_queries(AttentionInputs<bf16> a, Rows<bf16> out, SavedRows saved) {
  using Block = QueryRows<1, Form>;
  using Stream = SearchedStream<D, Form>;
  constexpr int kRows = Block::kRows;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z), kh = h / (a.H / a.K);
  const int i0 =
      Block::block_begin(a, static_cast<int>(device::grid_size().x - 1 - device::block_index().x));
  constexpr size_t kKeysAt = kTileBytes<D>;
  constexpr size_t kValuesAt = kKeysAt + Stream::kBuffers * Stream::kBytes;
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress values = queries + static_cast<uint32_t>(kValuesAt);
  float* const lists = reinterpret_cast<float*>(shared + kValuesAt);
  float* const slices = reinterpret_cast<float*>(shared + kValuesAt + kValueBytes<D>);
  const Stream stream = {queries + static_cast<uint32_t>(kKeysAt), values, slices, nullptr, kh};
  float* const row_numbers = slices + Stream::kSlicesFloats;
  const NumbersOfRows numbers(row_numbers + kTile, kTile);
  auto* const selections =
      reinterpret_cast<Selection*>(row_numbers + (1 + NumbersOfRows::kFloats) * kTile);
  const Marks marks{reinterpret_cast<Marks::OfWarps*>(selections + kRows * kThreads)};
  int* const votes = reinterpret_cast<int*>(marks.words) + Marks::kBytes / sizeof(int);

  const Block own(a, b, h, i0, 1.0f / a.content_divisor, row_numbers, l);
  const WeightForm form = Form::weights(a.normalizer, h);
  const bool stick = form == WeightForm::stick_breaking;
  copy_tile_by_rows<D, Block::kQueries>(queries, a.q, row_of(a.q, b, 0, h), i0, a.T);
  device::copy_async_commit();
  marks.set_all(0, l.warp, l.lane);
  device::barrier();

  // f(tile) for each tile that a warp has marked, from the diagonal to the left, while any warp
  // returns true. Marks count tiles from the block's first.
  int pass = 0;
  const auto walk = [&](bool with_values, const auto& f) {
    const auto next = [&](int tile) {
      do {
        --tile;
      } while (tile >= own.first_tile && !marks.any(pass, tile - own.first_tile));
      return tile;
    };
    stream.walk(
        own, a, next(own.last_tile + 1), with_values, next,
        [&](const StreamedTile& of) {
          bool more = true;
          if (marks.warp(pass, l.warp, of.tile - own.first_tile) &&
              own.warp_sees(of.tile * kTile, kTile)) {
            more = f(of);
          }
          if (stick && l.lane == 0) votes[l.warp] = more;
        },
        [&] { return stick && votes[0] + votes[1] + votes[2] + votes[3] == 0; });
  };
  bool takes_logits = false;  // what weights are made of: LineWeights
  const auto line_of = [&](int r) { return numbers.line(own.rows[r] - i0, takes_logits); };
  // f(z, j0, part) for each part of a tile that the warp sees, with the line of `numbers` of
  // logits.
  const auto with_logits = [&](const StreamedTile& of, const auto& f) {
    stream.with_logits(own, a, queries, of, true, line_of, l, f);
  };

  RowSearch search[kRows];
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    search[r] = RowSearch(a.normalizer, form, h, own.rows[r], own.keys(a, r), a.T,
                          selections + r * kThreads + thread,
                          {lists + r * LogitList::kFloats + thread, l.lane});
  }
  // f(search) of each row. They take turns in search[0], for half the code.
  const auto for_searches = [&](const auto& f) {
    BAMTRAIN_NO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      f(search[0]);
      const RowSearch first = search[0];
      BAMTRAIN_UNROLL
      for (int n = 1; n < kRows; ++n) search[n - 1] = search[n];
      search[kRows - 1] = first;
    }
  };
  bool warp_done = stick;
  while (!stick) {
    marks.begin(pass + 1, l.warp, warp_done, l.lane);
    device::sync_warp();
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (l.pair == 0) numbers.set_line(own.rows[r] - i0, search[r].line());
    }
    device::sync_warp();
    walk(false, [&](const StreamedTile& of) {
      const int tile = of.tile - own.first_tile;
      if (warp_done) return true;
      bool alive = false;
      with_logits(of, [&](const GroupsOfLogits<1>& z, int j0, int part) {
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const bool of_row = search[r].template accumulate<kForm, false>(
                [&](const auto& f) {
                  own.for_row(r, [&](int n, int e) { f(z[0][n][e], j0 + l.column(n, e)); });
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
      for_searches([&](RowSearch& of_row) {
        of_row.template join<4>();
        if (!of_list || of_row.listed()) of_row.template advance<false>(turn, of_list);
        if (turn == 1 && form == WeightForm::topk) of_row.begin_with_groups();
        listed = listed || of_row.listed();
        done = done && of_row.done();
      });
      warp_done = device::ballot(device::kWholeWarp, !done) == 0;
      if (device::ballot(device::kWholeWarp, listed) == 0) break;
      with_weight_form(form, [&]<WeightForm kForm>() {
        for_searches([](RowSearch& of_row) {
          if (of_row.listed()) of_row.template accumulate_listed<kForm>();
        });
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
  const LiveRows live(a, saved, b, h, i0 + own.group_row(l, 0), 1);  // of the warp
  for (int n = l.lane; n < live.groups * live.per_group; n += 32) live.words[n] = 0;
  device::barrier();  // values come where the lists are

  const auto weights_of = [&](int r) { return numbers.weights(own.rows[r] - i0); };
  int live_at = 0;          // of the words
  uint32_t live_tiles = 0;  // there
  const auto store_live = [&] {
    if (l.lane != 0 || live.groups == 0 || live_tiles == 0) return;
    live.words[live_at] = static_cast<int32_t>(live_tiles);
  };
  float sum_out[1][D / 8][4] = {};
  float total[kRows] = {};  // of weights that are divided by it; or what sticks have broken off
  float smallest[kRows] = {INFINITY, INFINITY};  // of the logits that topk keeps
  walk(true, [&](const StreamedTile& of) {
    bool marked = false;
    with_logits(of, [&](GroupsOfLogits<1>& z, int j0, int part) {
      if (stick) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          Logits share;
          stick_weights(z[0], share, total[r], r, l);
          own.for_row(r, [&](int n, int e) {
            if (z[0][n][e] <= kLeastWeight) z[0][n][e] = 0;
          });
        }
      } else {
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const LineWeights weights = weights_of(r);
            if constexpr (kForm == WeightForm::topk) {
              drop_ties(z, weights, own, r, j0, l);
              own.for_row(r, [&](int n, int e) {
                const float x = z[0][n][e];
                if (seeks_smallest && x >= weights.threshold) smallest[r] = fminf(smallest[r], x);
              });
            }
            own.for_row(r, [&](int n, int e) {
              float& x = z[0][n][e];
              x = weights.template of<kForm>(x, alpha_less_one).p;
              if (kForm != WeightForm::entmax_1_5 && kForm != WeightForm::entmax_2) total[r] += x;
            });
          }
        });
      }
      uint32_t p[1][kPart / 16][4], any = 0;
      as_operand(p[0], z[0]);
      BAMTRAIN_UNROLL
      for (int s = 0; s < kPart / 16; ++s) any |= p[0][s][0] | p[0][s][1] | p[0][s][2] | p[0][s][3];
      if (device::ballot(device::kWholeWarp, any != 0) == 0) return;
      marked = true;
      stream.add_products(sum_out, p, values, stream.buffer(of), part, l);
    });
    if (of.tile / 32 != live_at) {
      store_live();
      live_at = of.tile / 32;
      live_tiles = 0;
    }
    if (marked) live_tiles |= uint32_t{1} << (of.tile % 32);
    bool rest = false;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) rest = rest || (own.inside(r) && total[r] < kMostBroken);
    return !stick || device::ballot(device::kWholeWarp, rest) != 0;
  });

  store_live();
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    BAMTRAIN_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
      total[r] += device::shuffle_xor(device::kWholeWarp, total[r], distance);
      smallest[r] =
          fminf(smallest[r], device::shuffle_xor(device::kWholeWarp, smallest[r], distance));
    }
    RowWeights found;
    found.a = alpha_less_one;
    if (!stick && own.inside(r)) found.level = saved.level[own.of_row(a, r)];
    device::sync_warp();  // the level is read by the lanes of the row before one of them writes it
    if (!own.inside(r)) continue;
    const float factor = stick ? 1.0f : found.nan_or(found.factor_of(form, total[r]));
    if (!stick && l.pair == 0) {
      saved.level[own.of_row(a, r)] = found.level_of(form, total[r]);
      if (seeks_smallest) saved.threshold[own.of_row(a, r)] = found.nan_or(smallest[r]);
    }
    store_row<D>(out, own, r, sum_out[0], factor, l);
  }
}

}  // namespace bamtrain::kernels
