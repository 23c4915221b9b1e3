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

// Of formed biases one group, for the registers: those of the search are many.
template <int D, class Form>
using SearchedRows = QueryRows<Form::kFormed ? 1 : kRowTiles<D, typename Form::Element>, Form>;
template <int D, class Form>
using SearchedStream = KeyStream<D, Form, SearchedRows<D, Form>>;

/// The values' tiles, or while these are not needed the lists of logits.
template <int D, class A>
constexpr size_t kValueBytes = std::max<size_t>(kStages<D, AnyFormOf<A>>* kTileBytes<D, kTile, A>,
                                                2 * kRowTiles<D, A> * LogitList::kFloats *
                                                    sizeof(float));

/// Launch with grid (tiles of these queries, of formed biases of 64, H, B), kThreads threads and
/// this much dynamic shared memory.
template <int D, class A>
constexpr size_t attention_searched_shared() {
  constexpr int kQueries = kQueryTile<D, A>;
  return kTileBytes<D, kQueries, A> + kStages<D, AnyFormOf<A>> * kTileBytes<D, kTile, A> +
         kValueBytes<D, A> +
         (SearchedStream<D, AnyFormOf<A>>::kSlicesFloats +
          (1 + NumbersOfRows::kFloats) * kQueries) *
             sizeof(float) +
         2 * kRowTiles<D, A> * kThreads * sizeof(Selection) + Marks::kBytes + 4 * sizeof(int);
}

/// out (B, T, H, D) and `saved` are written, of the queries whose bias was formed or of all.
template <int D, class Form>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_searched_queries(typename Form::Inputs a, Rows<typename Form::Element> out,
                               SavedRows saved) {
  using A = typename Form::Element;
  using Block = SearchedRows<D, Form>;
  using Stream = SearchedStream<D, Form>;
  constexpr int M = Block::kGroups, kRows = Block::kRows;
  constexpr bool kLists = !Form::kExact;  // of logits: they hold what is a rounding of bf16 apart
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z), kh = h / (a.H / a.K);
  const int i0 =
      Block::block_begin(a, static_cast<int>(device::grid_size().x - 1 - device::block_index().x));
  constexpr size_t kKeysAt = kTileBytes<D, kQueryTile<D, A>, A>;
  constexpr size_t kValuesAt = kKeysAt + Stream::kBuffers * Stream::kBytes;
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress values = queries + static_cast<uint32_t>(kValuesAt);
  float* const lists = reinterpret_cast<float*>(shared + kValuesAt);
  float* const slices = reinterpret_cast<float*>(shared + kValuesAt + kValueBytes<D, A>);
  const Stream stream = {queries + static_cast<uint32_t>(kKeysAt), values, slices, nullptr, kh};
  float* const row_numbers = slices + Stream::kSlicesFloats;
  const NumbersOfRows numbers(row_numbers + kQueryTile<D, A>, kQueryTile<D, A>);
  auto* const selections =
      reinterpret_cast<Selection*>(row_numbers + (1 + NumbersOfRows::kFloats) * kQueryTile<D, A>);
  const Marks marks{reinterpret_cast<Marks::OfWarps*>(selections + kRows * kThreads)};
  int* const votes = reinterpret_cast<int*>(marks.words) + Marks::kBytes / sizeof(int);

  const Block own(a, b, h, i0, 1.0f / a.content_divisor, row_numbers, l);
  const WeightForm form = Form::weights(a.normalizer, h);
  const bool stick = Form::kSticks && form == WeightForm::stick_breaking;
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
    search[r] = RowSearch(
        a.normalizer, form, h, own.last(a, r), own.keys(a, r), a.T,
        selections + r * kThreads + thread,
        kLists ? LogitList{lists + r * LogitList::kFloats + thread, l.lane} : LogitList{});
  }
  bool warp_done = stick;
  while (!stick) {
    marks.begin(pass + 1, l.warp, warp_done, l.lane);
    device::sync_warp();
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (l.pair == 0) numbers.set_line(own.rows[r] - i0, kLists ? search[r].line() : WeightLine{});
    }
    device::sync_warp();
    walk(false, [&](const StreamedTile& of) {
      const int tile = of.tile - own.first_tile;
      if (warp_done) return true;
      bool alive = false;
      with_logits(of, [&](const GroupsOfLogits<M>& z, int j0, int part) {
        with_weight_form(form, [&]<WeightForm kForm>() {
          BAMTRAIN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const bool of_row = search[r].template accumulate<kForm, Form::kExact>(
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
        if (!of_list || search[r].listed()) search[r].template advance<Form::kExact>(turn, of_list);
        if (kLists && turn == 1 && form == WeightForm::topk) search[r].begin_with_groups();
        listed = listed || search[r].listed();
        done = done && search[r].done();
      }
      warp_done = device::ballot(device::kWholeWarp, !done) == 0;
      if (!kLists || device::ballot(device::kWholeWarp, listed) == 0) break;
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
  takes_logits = LineWeights::takes_logits(form, alpha_less_one, Form::kExact);
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
    numbers.set(own.rows[r] - i0, LineWeights(form, weights, Form::kExact), 0.0f);
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

  // In place of what the search worked in, for the registers. Of row r: the smallest logit that has
  // weight, and the total of weights that are divided by it, or what sticks have broken off. Of
  // group `lane`: the tiles with weight in the word live_at.
  float* const of_thread = reinterpret_cast<float*>(selections) + thread;
  auto* const live_of_thread = reinterpret_cast<uint32_t*>(of_thread + 2 * kRows * kThreads);
  uint32_t &live_at = live_of_thread[0], &live_tiles = live_of_thread[kThreads];
  static_assert((2 * kRows + 2) * sizeof(float) <= kRows * sizeof(Selection));
  const auto smallest = [&](int r) -> float& { return of_thread[r * kThreads]; };
  const auto total = [&](int r) -> float& { return of_thread[(kRows + r) * kThreads]; };
  device::barrier();
  live_at = live_tiles = 0;
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    smallest(r) = INFINITY;
    total(r) = 0;
  }

  const auto weights_of = [&](int r) { return numbers.weights(own.rows[r] - i0); };
  const auto store_live = [&] {
    const LiveRows live = live_of_warp();
    if (l.lane >= live.groups || live_tiles == 0) return;
    live.words[l.lane * live.per_group + static_cast<int>(live_at)] =
        static_cast<int32_t>(live_tiles);
  };
  float sum_out[M][D / 8][4] = {};
  walk(true, [&](const StreamedTile& of) {
    uint32_t marked = 0;  // a bit for each group
    with_logits(of, [&](GroupsOfLogits<M>& z, int j0, int part) {
      if (stick) {
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRows; ++r) {
          Logits share;
          stick_weights(z[r / 2], share, total(r), r % 2, l);
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
              drop_ties(z, weights, own, a, r, j0, l);
              if (seeks_smallest) {
                float lowest = smallest(r);
                own.for_row(r, [&](int n, int e) {
                  const float x = z[r / 2][n][e];
                  lowest = x >= weights.threshold ? fminf(lowest, x) : lowest;
                });
                smallest(r) = lowest;
              }
            }
            float sum = 0;
            own.for_row(r, [&](int n, int e) {
              float& x = z[r / 2][n][e];
              x = weights.template of<kForm, Form::kExact>(x, alpha_less_one).p;
              sum += x;
            });
            if (kForm != WeightForm::entmax_1_5 && kForm != WeightForm::entmax_2) total(r) += sum;
          }
        });
      }
      Operand<A, kColumns> p[M];
      uint32_t weighty = 0;
      BAMTRAIN_UNROLL
      for (int m = 0; m < M; ++m) {
        as_operand(p[m], z[m]);
        uint32_t any = 0;
        BAMTRAIN_UNROLL
        for (const auto& x : p[m])
          any |= bits_of(x[0]) | bits_of(x[1]) | bits_of(x[2]) | bits_of(x[3]);
        if (device::ballot(device::kWholeWarp, any != 0) != 0) weighty |= 1u << m;
      }
      if (weighty == 0) return;
      marked |= weighty;
      stream.add_products(sum_out, p, values, stream.buffer(of), part, l);
    });
    if (const auto word = static_cast<uint32_t>(of.tile / 32); word != live_at) {
      store_live();
      live_at = word;
      live_tiles = 0;
    }
    live_tiles |= (marked >> l.lane & 1) << (of.tile % 32);
    bool rest = false;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRows; ++r) rest = rest || (own.inside(r) && total(r) < kMostBroken);
    return !stick || device::ballot(device::kWholeWarp, rest) != 0;
  });

  store_live();
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float sum = total(r), lowest = smallest(r);
    BAMTRAIN_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
      sum += device::shuffle_xor(device::kWholeWarp, sum, distance);
      lowest = fminf(lowest, device::shuffle_xor(device::kWholeWarp, lowest, distance));
    }
    RowWeights found;
    found.a = alpha_less_one;
    if (!stick && own.inside(r)) found.level = saved.level[own.of_row(a, r)];
    device::sync_warp();  // the level is read by the lanes of the row before one of them writes it
    if (!own.inside(r)) continue;
    const float factor = stick ? 1.0f : found.nan_or(found.factor_of(form, sum));
    if (!stick && l.pair == 0) {
      saved.level[own.of_row(a, r)] = found.level_of(form, sum);
      if (seeks_smallest) saved.threshold[own.of_row(a, r)] = found.nan_or(lowest);
    }
    store_row<D>(out, own, r, sum_out[r / 2], factor, l);
  }
}

}  // namespace bamtrain::kernels
