#include "counting_sort.cuh"
#include "embedding.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

static_assert(kEmbeddingSortTile == kSortTile && kEmbeddingDigits == kSortDigits);
static_assert(kEmbeddingMaxRows == 1 << 2 * kSortBits);

namespace {

template <class... T>
const char* embedding_refusal(int64_t N, int C, const T*... addresses) {
  if (N <= 0 || C <= 0) return "embedding: a size is not positive";
  if (C % 8 != 0) return "embedding: C is no multiple of 8";
  if (!aligned(addresses...)) return "embedding: an address is not aligned to 16 bytes";
  return nullptr;
}

}  // namespace

// --- forward ------------------------------------------------------------------------------------

constexpr int kEmbeddingWarps = 8;  // per block, one row each

template <class A, bool kPositions>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kEmbeddingWarps)
    embed_rows(A* out, const int32_t* tokens, const A* __restrict__ table, float scale,
               const int32_t* positions, const float* __restrict__ position_table, int64_t N,
               int C) {
  constexpr int kBatch = 4;  // vectors in flight
  const int thread = static_cast<int>(device::thread_index().x);
  const int64_t row = static_cast<int64_t>(device::block_index().x) * kEmbeddingWarps + thread / 32;
  if (row >= N) return;
  const A* from = table + int64_t{tokens[row]} * C;
  const float* extra = kPositions ? position_table + int64_t{positions[row]} * C : nullptr;
  constexpr int kStep = 32 * kVector<A>;
  for (int c = thread % 32 * kVector<A>; c < C; c += kBatch * kStep) {
    float x[kBatch][kVector<A>] = {}, p[kBatch][kVector<A>] = {};
    BAMTRAIN_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      if (c + k * kStep >= C) break;
      load_vector(x[k], from + c + k * kStep);
      if (kPositions) load_vector(p[k], extra + c + k * kStep);
    }
    BAMTRAIN_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      if (c + k * kStep >= C) break;
      BAMTRAIN_UNROLL
      for (int n = 0; n < kVector<A>; ++n) {
        x[k][n] *= scale;
        if (kPositions) x[k][n] += p[k][n];
      }
      store_vector(out + row * C + c + k * kStep, x[k]);
    }
  }
}

template <class A>
device::LaunchStatus embedding_forward(const EmbeddingForward<A>& f, device::Stream stream) {
  if (const char* why = embedding_refusal(f.N, f.C, f.out, f.table, f.position_table)) {
    return device::refused(why);
  }
  const int64_t blocks = blocks_of(f.N, kEmbeddingWarps);
  if (blocks > kMaxBlocks) return device::refused("embedding: N is too large");
  const auto start = [&](auto kernel) {
    return device::launch(kernel, grid_of(blocks), {32 * kEmbeddingWarps, 1, 1}, 0, stream, f.out,
                          f.tokens, f.table, f.scale, f.positions, f.position_table, f.N, f.C);
  };
  return f.position_table != nullptr ? start(embed_rows<A, true>) : start(embed_rows<A, false>);
}

// --- backward -----------------------------------------------------------------------------------

constexpr int kPieceThreads = 128;  // at most

/// Adds up the rows of one piece of the sorted list, run by run, one thread per vector of columns.
/// The sum of a run that begins in the piece goes to the table, times `scale`; no other block
/// writes that row. The sum of a run that began earlier goes unscaled to the piece's slot
/// (pieces, C). Grid: pieces x `parts`, the blocks that share a row.
template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kPieceThreads)
    add_pieces(float* dtable, float scale, float* slots, const A* __restrict__ dout,
               SortedKeys sorted, int64_t N, int C, uint32_t parts) {
  constexpr int kBatch = 4;                             // rows in flight
  BAMTRAIN_SHARED(int32_t, keys, kEmbeddingPiece + 2);  // with the neighbours on both sides
  BAMTRAIN_SHARED(int32_t, rows, kEmbeddingPiece);
  const int threads = static_cast<int>(device::block_size().x);
  const int thread = static_cast<int>(device::thread_index().x);
  const int64_t piece = device::block_index().x / parts;
  const int64_t begin = piece * kEmbeddingPiece;
  for (int i = thread; i < kEmbeddingPiece + 2; i += threads) {
    const int64_t at = begin + i - 1;
    keys[i] = at >= 0 && at < N ? sorted.key[at] : -1;
  }
  for (int i = thread; i < kEmbeddingPiece; i += threads) {
    rows[i] = begin + i < N ? sorted.origin[begin + i] : -1;
  }
  device::barrier();
  const int part = static_cast<int>(device::block_index().x % parts);
  const int column = (part * threads + thread) * kVector<A>;
  if (column >= C) return;

  float sum[kVector<A>] = {};
  for (int first = 0; first < kEmbeddingPiece && rows[first] >= 0; first += kBatch) {
    float x[kBatch][kVector<A>] = {}, before[kBatch][kVector<A>] = {};
    BAMTRAIN_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k, key = keys[i + 1];
      if (rows[i] < 0) break;
      load_vector(x[k], dout + int64_t{rows[i]} * C + column);
      const bool last = i == kEmbeddingPiece - 1 || keys[i + 2] != key;
      if (last && key != keys[0]) load_vector(before[k], dtable + int64_t{key} * C + column);
    }
    BAMTRAIN_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      const int i = first + k, key = keys[i + 1];
      if (rows[i] < 0) break;
      BAMTRAIN_UNROLL
      for (int n = 0; n < kVector<A>; ++n) sum[n] += x[k][n];
      if (i < kEmbeddingPiece - 1 && keys[i + 2] == key) continue;
      const bool began_here = key != keys[0];
      float* to = began_here ? dtable + int64_t{key} * C : slots + piece * C;
      BAMTRAIN_UNROLL
      for (int n = 0; n < kVector<A>; n += 4) {
        float total[4];
        BAMTRAIN_UNROLL
        for (int m = 0; m < 4; ++m) {
          total[m] = began_here ? before[k][n + m] + scale * sum[n + m] : sum[n + m];
          sum[n + m] = 0;
        }
        store_vector(to + column + n, total);
      }
    }
  }
}

constexpr int kSlotWarps = 8;
constexpr int kSlotCandidates = 8;  // pieces that a block examines
constexpr int kSlotColumns = 128;   // columns per block: four per lane

/// The first piece after `piece` that does not start with `key`, given that the next one does. All
/// lanes of a warp call with the same arguments.
BAMTRAIN_DEVICE int run_end(const int32_t* keys, int piece, int pieces, int32_t key) {
  const int lane = static_cast<int>(device::thread_index().x) % 32;
  int low = piece + 1, high = pieces, step = 1;  // low is in the run, high is not
  while (high - low > 1) {
    const int64_t probe = low + int64_t{lane + 1} * step;
    const bool in_run = probe < high && keys[probe * kEmbeddingPiece] == key;
    const int hits = bits_set(device::ballot(device::kWholeWarp, in_run));
    low += hits * step;
    if (hits < 32 && low + step < high) high = low + step;
    step = (high - low + 31) / 32;
  }
  return high;
}

/// Adds the slots to the table, times `scale`. A run that continues past the piece in which it
/// began is added by one block per 128 columns, whose warps share its slots.
template <int kWarps>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kWarps)
    add_slots(float* dtable, float scale, const float* slots, const int32_t* keys, int pieces,
              int C) {
  BAMTRAIN_SHARED(Words, shared, kWarps * kSlotColumns / 4);
  float* const sums = reinterpret_cast<float*>(shared);
  const int thread = static_cast<int>(device::thread_index().x);
  const int warp = thread / 32, lane = thread % 32;
  const int candidate = static_cast<int>(device::block_index().x) * kSlotCandidates + lane;
  const int column = static_cast<int>(device::block_index().y) * kSlotColumns + 4 * lane;
  bool goes_on = false;
  int32_t last = 0;
  if (lane < kSlotCandidates && candidate + 1 < pieces) {
    const int64_t next = int64_t{candidate + 1} * kEmbeddingPiece;
    last = keys[next - 1];
    goes_on = keys[next] == last && (candidate == 0 || keys[next - kEmbeddingPiece - 1] != last);
  }
  const uint32_t found = device::ballot(device::kWholeWarp, goes_on);  // the same in all warps
  for (int l = 0; l < kSlotCandidates; ++l) {
    if ((found >> l & 1) == 0) continue;
    const int piece = candidate - lane + l;
    const int32_t key = device::shuffle(device::kWholeWarp, last, l);
    const int end = run_end(keys, piece, pieces, key);
    const int share = (end - piece - 1 + kWarps - 1) / kWarps;
    const int own = piece + 1 + warp * share, own_end = own + share < end ? own + share : end;
    float sum[4] = {};
    if (column < C) {
      for (int p = own; p < own_end; ++p) {
        float x[4];
        load_vector(x, slots + int64_t{p} * C + column);
        BAMTRAIN_UNROLL
        for (int n = 0; n < 4; ++n) sum[n] += x[n];
      }
    }
    store_vector(sums + warp * kSlotColumns + 4 * lane, sum);
    device::barrier();
    const int c = static_cast<int>(device::block_index().y) * kSlotColumns + thread;
    if (thread < kSlotColumns && c < C) {
      float total = sums[thread];
      BAMTRAIN_UNROLL
      for (int w = 1; w < kWarps; ++w) total += sums[w * kSlotColumns + thread];
      dtable[int64_t{key} * C + c] += scale * total;
    }
    device::barrier();
  }
}

namespace {

/// table (limit, C) += scale times the rows of dout, each at its index.
template <class A>
device::LaunchStatus add_rows(float* table, float scale, const int32_t* index, int limit,
                              const EmbeddingBackward<A>& g, device::Stream stream) {
  const int64_t pieces = embedding_pieces(g.N);
  auto* slots = static_cast<float*>(g.scratch);
  auto* lists = reinterpret_cast<int32_t*>(slots + pieces * g.C);
  const SortedKeys sorted{lists, lists + g.N}, between{lists + 2 * g.N, lists + 3 * g.N};
  device::LaunchStatus status =
      sort_keys(sorted, between, index, g.N, limit, lists + 4 * g.N, stream);
  if (!status.ok()) return status;
  const int64_t vectors = g.C / kVector<A>;
  const int64_t threads = vectors < kPieceThreads ? blocks_of(vectors, 32) * 32 : kPieceThreads;
  const int64_t parts = blocks_of(vectors, threads);
  status =
      device::launch(add_pieces<A>, grid_of(pieces * parts), {static_cast<uint32_t>(threads), 1, 1},
                     0, stream, table, scale, slots, g.dout, sorted, g.N, g.C, parts);
  if (!status.ok() || pieces == 1) return status;
  device::Dim3 grid = grid_of(blocks_of(pieces - 1, kSlotCandidates));
  grid.y = static_cast<uint32_t>(blocks_of(g.C, kSlotColumns));
  return device::launch(add_slots<kSlotWarps>, grid, {32 * kSlotWarps, 1, 1}, 0, stream, table,
                        scale, slots, sorted.key, pieces, g.C);
}

}  // namespace

template <class A>
device::LaunchStatus embedding_backward(const EmbeddingBackward<A>& g, device::Stream stream) {
  if (const char* why = embedding_refusal(g.N, g.C, g.dtable, g.dposition_table, g.dout,
                                          static_cast<const float*>(g.scratch))) {
    return device::refused(why);
  }
  if (g.N > kEmbeddingMaxN) return device::refused("embedding: N exceeds 2^24");
  if (g.C > 1 << 16) return device::refused("embedding: C exceeds 2^16");
  const bool positions = g.dposition_table != nullptr;
  if (g.V <= 0 || (positions && g.T <= 0)) {
    return device::refused("embedding: a size is not positive");
  }
  if (g.V > kEmbeddingMaxRows || (positions && g.T > kEmbeddingMaxRows)) {
    return device::refused("embedding: a table has more than 2^18 rows");
  }
  const device::LaunchStatus status = add_rows(g.dtable, g.scale, g.tokens, g.V, g, stream);
  if (!status.ok() || !positions) return status;
  return add_rows(g.dposition_table, 1.0f, g.positions, g.T, g, stream);
}

template device::LaunchStatus embedding_forward(const EmbeddingForward<float>&, device::Stream);
template device::LaunchStatus embedding_forward(const EmbeddingForward<bf16>&, device::Stream);
template device::LaunchStatus embedding_backward(const EmbeddingBackward<float>&, device::Stream);
template device::LaunchStatus embedding_backward(const EmbeddingBackward<bf16>&, device::Stream);

}  // namespace bamtrain::kernels
