#pragma once
// The general path, forward: a block searches level and threshold of its rows by passes over the
// tiles of keys, in which the products are formed anew, and then walks the tiles once more for the
// output. Tiles in which a pass finds nothing that matters are not visited again: where attention
// is sparse, passes are short.

#include "attention_general.cuh"

namespace bamtrain::kernels {

/// Which tiles of keys the next pass visits, a bit for each warp: those of two passes, for the
/// first tiles of a block. Those further on are always visited.
struct Marks {
  static constexpr int kWords = 128, kTiles = 32 * kWords;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kBytes = 2 * kWarps * kWords * sizeof(uint32_t);

  uint32_t* words;  // (2, kWarps, kWords)

  BAMTRAIN_DEVICE bool warp(int pass, int w, int tile) const {
    return tile >= kTiles ||
           (words[(pass % 2 * kWarps + w) * kWords + tile / 32] >> (tile % 32) & 1) != 0;
  }
  BAMTRAIN_DEVICE bool any(int pass, int tile) const {
    return warp(pass, 0, tile) || warp(pass, 1, tile) || warp(pass, 2, tile) || warp(pass, 3, tile);
  }
  /// By one lane of the warp.
  BAMTRAIN_DEVICE void set(int pass, int w, int tile) const {
    if (tile >= kTiles) return;
    words[(pass % 2 * kWarps + w) * kWords + tile / 32] |= uint32_t{1} << (tile % 32);
  }
  BAMTRAIN_DEVICE void fill(int pass, uint32_t word, int thread) const {
    for (int n = thread; n < kWarps * kWords; n += kThreads) {
      words[pass % 2 * kWarps * kWords + n] = word;
    }
  }
};

/// Launch with grid (tiles of queries, H, B), kThreads threads and this much dynamic shared memory.
template <int D>
constexpr size_t attention_general_forward_shared() {
  return (1 + 2 * kGeneralStages<D>)*kTileBytes<D> + 2 * kThreads * sizeof(float) + Marks::kBytes +
         4 * sizeof(int);
}

/// out (B, T, H, D) and `saved` are written.
template <int D>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kThreads, 2)
    attention_general_queries_forward(AttentionInputs<bf16> a, Rows<bf16> out, SavedRows saved) {
  constexpr int kStages = kGeneralStages<D>;
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const Lane l;
  const int thread = 32 * l.warp + l.lane;
  const int h = static_cast<int>(device::block_index().y);
  const int b = static_cast<int>(device::block_index().z);
  const int tiles = static_cast<int>(device::grid_size().x);
  const int i0 = kTile * (tiles - 1 - static_cast<int>(device::block_index().x));
  const GeneralRows own(a, b, h, i0, l);
  const int kh = h / (a.H / a.K), count = own.last_tile - own.first_tile + 1;
  const SharedAddress queries = device::shared_address(shared);
  const SharedAddress keys = queries + kTileBytes<D>;  // kStages of them
  const SharedAddress values = keys + kStages * kTileBytes<D>;
  float* const slices =
      reinterpret_cast<float*>(shared + (1 + 2 * kStages) * kTileBytes<D>);  // two
  const Marks marks{reinterpret_cast<uint32_t*>(slices + 2 * kThreads)};
  int* const votes = reinterpret_cast<int*>(marks.words) + Marks::kBytes / sizeof(int);

  const WeightForm form = weight_form(a.normalizer, h);
  const bool stick = form == WeightForm::stick_breaking;
  copy_tile<D>(queries, a.q, b, h, i0, a.T);
  device::copy_async_commit();
  marks.fill(0, ~uint32_t{0}, thread);
  device::barrier();

  // f(tile, slice, stage), tiles counted from the block's first, for each that a warp has marked,
  // while any warp returns true. To the left for stick-breaking.
  int pass = 0;
  const auto walk = [&](bool with_values, const auto& f) {
    const auto next = [&](int tile) {
      do {
        tile += stick ? -1 : 1;
      } while (tile >= 0 && tile < count && !marks.any(pass, tile));
      return tile;
    };
    const auto copy = [&](int tile, uint32_t stage) {
      const int j0 = (own.first_tile + tile) * kTile;
      copy_tile<D>(keys + stage * kTileBytes<D>, a.k, b, kh, j0, a.T);
      if (with_values) copy_tile<D>(values + stage * kTileBytes<D>, a.v, b, kh, j0, a.T);
      device::copy_async_commit();
    };
    const auto inside = [&](int tile) { return tile >= 0 && tile < count; };
    int tile = next(stick ? count : -1);
    uint32_t stage = 0;
    if (inside(tile)) copy(tile, 0);
    while (inside(tile)) {
      const int after = next(tile);
      float* const slice = slices + stage % 2 * kThreads;
      slice[thread] = own.slice_entry(a, (own.first_tile + tile) * kTile, thread);
      if (kStages > 1 && inside(after)) copy(after, (stage + 1) % kStages);
      if (kStages > 1 && inside(after)) {
        device::copy_async_wait<1>();
      } else {
        device::copy_async_wait<0>();
      }
      device::barrier();
      const bool more = f(tile, slice, stage % kStages);
      if (l.lane == 0) votes[l.warp] = more;
      device::barrier();
      if (votes[0] + votes[1] + votes[2] + votes[3] == 0) break;
      ++stage;
      if (kStages == 1 && inside(after)) copy(after, 0);
      tile = after;
    }
    device::copy_async_wait<0>();
    device::barrier();
  };
  const auto logits_of = [&](Logits& z, int tile, int part, const float* slice, uint32_t stage) {
    const int j0 = (own.first_tile + tile) * kTile + part * kPart;
    multiply_part<D>(z, queries, keys + stage * kTileBytes<D> + part_bytes<D>(part), l);
    own.logits(z, a, own.slice_of(a, slice, part), j0, l);
    return j0;
  };

  RowSearch search[2];
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    search[r] = RowSearch(a.normalizer, form, h, own.rows[r], own.keys(r), a.T);
  }
  while (!stick) {
    marks.fill(pass + 1, 0, thread);
    device::barrier();
    walk(false, [&](int tile, const float* slice, uint32_t stage) {
      if (!marks.warp(pass, l.warp, tile)) return true;
      bool alive = false;
      for_parts(false, [&](int part) {
        Logits z;
        const int j0 = logits_of(z, tile, part, slice, stage);
        BAMTRAIN_UNROLL
        for (int r = 0; r < 2; ++r) {
          float largest = kMinusInfinity;
          own.for_row(r, [&](int n, int e) { largest = fmaxf(largest, z[n][e]); });
          alive = search[r].alive(largest) || alive;
          search[r].accumulate([&](const auto& f) {
            own.for_row(r, [&](int n, int e) { f(z[n][e], j0 + l.column(n, e)); });
          });
        }
      });
      const bool marked = device::ballot(device::kWholeWarp, alive) != 0;
      if (marked && l.lane == 0) marks.set(pass + 1, l.warp, tile);
      return true;
    });
    bool done = true;
    BAMTRAIN_UNROLL
    for (int r = 0; r < 2; ++r) {
      search[r].join<4>();
      search[r].advance();
      done = done && search[r].done();
    }
    const bool all = device::ballot(device::kWholeWarp, !done) == 0;
    if (l.lane == 0) votes[l.warp] = all;
    device::barrier();
    ++pass;
    if (votes[0] + votes[1] + votes[2] + votes[3] == 4) break;
  }

  RowWeights weights[2];
  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    weights[r] = search[r].weights();
    if (!own.inside(r) || l.pair != 0 || stick) continue;
    saved.level[own.of_row(a, r)] = search[r].level;
    if (saved.threshold != nullptr) saved.threshold[own.of_row(a, r)] = search[r].threshold;
    if (saved.last != nullptr) saved.last[own.of_row(a, r)] = search[r].last;
  }
  const LiveRows live(a, saved, b, h, i0);
  int32_t* const live_words_of_warp =
      l.warp < live.groups ? live.words + l.warp * live.per_group : nullptr;
  if (live_words_of_warp != nullptr) {
    for (int64_t n = l.lane; n < live.per_group; n += 32) live_words_of_warp[n] = 0;
  }
  device::sync_warp();

  float sum_out[1][D / 8][4] = {};
  float total[2] = {}, broken[2] = {};
  walk(true, [&](int tile, const float* slice, uint32_t stage) {
    if (!marks.warp(pass, l.warp, tile)) return true;
    bool marked = false;
    for_parts(stick, [&](int part) {
      Logits z;
      const int j0 = logits_of(z, tile, part, slice, stage);
      if (stick) {
        Logits share;
        stick_weights(z, share, broken[0], 0, l);
        stick_weights(z, share, broken[1], 1, l);
      } else {
        with_weight_form(form, [&]<WeightForm kForm>() {
          own.for_elements([&](int n, int e) {
            z[n][e] = weights[e / 2].template of<kForm, false>(z[n][e], j0 + l.column(n, e)).p;
          });
        });
      }
      const float nothing = stick ? kLeastWeight : 0.0f;
      bool weighty = false;
      own.for_elements([&](int n, int e) {
        total[e / 2] += z[n][e];
        weighty = weighty || !(z[n][e] <= nothing);  // NaN is weight too
      });
      if (device::ballot(device::kWholeWarp, weighty) == 0) return;
      marked = true;
      uint32_t p[1][kPart / 16][4];
      as_operand(p[0], z);
      multiply<D>(sum_out, p, values + stage * kTileBytes<D> + part_bytes<D>(part), l);
    });
    if (marked && live_words_of_warp != nullptr && l.lane == 0) {
      const int of_all = own.first_tile + tile;
      live_words_of_warp[of_all / 32] = static_cast<int32_t>(
          static_cast<uint32_t>(live_words_of_warp[of_all / 32]) | uint32_t{1} << (of_all % 32));
    }
    const bool rest =
        (own.inside(0) && broken[0] < kMostBroken) || (own.inside(1) && broken[1] < kMostBroken);
    return !stick || device::ballot(device::kWholeWarp, rest) != 0;
  });

  BAMTRAIN_UNROLL
  for (int r = 0; r < 2; ++r) {
    total[r] += device::shuffle_xor(device::kWholeWarp, total[r], 1);
    total[r] += device::shuffle_xor(device::kWholeWarp, total[r], 2);
    if (!own.inside(r)) continue;
    const float factor = divided_by_sum(form, weights[r].a) ? 1.0f / total[r] : 1.0f;
    auto* to = reinterpret_cast<uint32_t*>(row_of(out, b, own.rows[r], h));
    BAMTRAIN_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      to[4 * n + l.pair] =
          device::pack_bf16(sum_out[0][n][2 * r] * factor, sum_out[0][n][2 * r + 1] * factor);
    }
  }
}

}  // namespace bamtrain::kernels
