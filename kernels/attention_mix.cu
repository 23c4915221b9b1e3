// Mixes of heads (HeadMix of ops/attention.h) in plain loops, and what follows either form of them:
// the gradients of the prior's own bias, and the sums of the network's.

#include "attention_content.h"
#include "attention_mix.cuh"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kKeys = 32;  // of one query, that a block takes at a time
constexpr int kMixThreads = 128;

}  // namespace

/// The shared memory of a block: rows of kKeys numbers.
struct MixRows {
  float *scores, *prior, *hidden, *dz, *dhidden;

  template <class A>
  BAMTRAIN_DEVICE MixRows(const AttentionInputs<A>& a, unsigned char* shared) {
    scores = reinterpret_cast<float*>(shared);
    prior = scores + a.H * kKeys;
    hidden = prior + a.H * kKeys;
    dz = hidden + a.mix.hidden * kKeys;
    dhidden = dz + a.H * kKeys;
  }
  static constexpr size_t bytes(int H, int hidden, bool backward) {
    const int rows = backward ? 3 * H + 2 * hidden : 2 * H + hidden;
    return sizeof(float) * static_cast<size_t>(rows * kKeys);
  }
};
// Of sm_86, which has the least.
static_assert(MixRows::bytes(kMostMixedHeads, kDapeMostHidden, true) <= 99 * 1024);

namespace {

/// f(row, key) of every number of `rows` rows.
template <class F>
BAMTRAIN_DEVICE void for_numbers(int rows, const F& f) {
  const int thread = static_cast<int>(device::thread_index().x);
  for (int n = thread; n < rows * kKeys; n += kMixThreads) f(n / kKeys, n % kKeys);
}

/// What the network reads of keys [j0, j0 + kKeys) of query i, 0 of those that it does not see, and
/// its hidden layer before the activation.
template <class A>
BAMTRAIN_DEVICE void form_hidden(const MixRows& x, const AttentionInputs<A>& a, const MixQuery& own,
                                 int j0) {
  const MixInputs& m = a.mix;
  const float* const scores = a.formed.s + own.row;
  device::barrier();  // the keys before are done
  for_numbers(a.H, [&](int h, int n) {
    const int j = j0 + n;
    const bool sees = own.sees(j);
    x.scores[h * kKeys + n] = sees ? scores[h * own.head + j] : 0.0f;
    x.prior[h * kKeys + n] =
        sees ? prior_bias_of(a, own.b, h, own.i, j, FirePoint(a, own.b, own.i, j)).b : 0.0f;
  });
  device::barrier();
  for_numbers(m.hidden, [&](int k, int n) {
    float sum = m.c1[k];
    for (int h = 0; h < a.H; ++h) {
      sum += first_weight(m, a.H, k, false, h) * x.scores[h * kKeys + n];
      sum += first_weight(m, a.H, k, true, h) * x.prior[h * kKeys + n];
    }
    x.hidden[k * kKeys + n] = sum;
  });
  device::barrier();
}

}  // namespace

/// Launch with grid (queries, 1, B), kMixThreads threads and MixRows::bytes.
template <class A>
BAMTRAIN_KERNEL mix_rows(AttentionInputs<A> a) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const MixRows x(a, shared);
  const MixInputs& m = a.mix;
  const MixQuery own(a, static_cast<int>(device::block_index().z),
                     static_cast<int>(device::block_index().x));
  for (int j0 = own.first; j0 <= own.i; j0 += kKeys) {
    form_hidden(x, a, own, j0);
    for_numbers(a.H, [&](int h, int n) {
      if (!own.sees(j0 + n)) return;
      float sum = m.c2[h];
      for (int k = 0; k < m.hidden; ++k) {
        sum += m.w2[h * m.hidden + k] * dape_activation(x.hidden[k * kKeys + n]);
      }
      const float B = keeps_bias(m.form) ? x.prior[h * kKeys + n] : 0.0f;
      a.formed.b[own.row + h * own.head + j0 + n] = B + sum;
    });
  }
}

namespace {

/// Of heads past those of tensor cores, or of fp32.
template <class A>
LaunchStatus launch_mix(void (*kernel)(A), const A& arguments, const MixInputs& m, int H,
                        device::Dim3 grid, bool backward, Stream stream) {
  if (H > kMostMixedHeads) return device::refused("attention: a mix of over 160 heads");
  return device::launch(kernel, grid, {kMixThreads, 1, 1}, MixRows::bytes(H, m.hidden, backward),
                        stream, arguments);
}

/// Which kernels take the mix.
enum class MixPath { plain, tiles, distances };
template <class A>
MixPath mix_path(const AttentionInputs<A>& a) {
  if (!std::is_same_v<A, bf16> || a.H > kMostTiledHeads) return MixPath::plain;
  return a.numbers == nullptr && a.fire.psi == nullptr ? MixPath::distances : MixPath::tiles;
}

/// Of kernels for all sequences.
template <class A>
struct MixArguments {
  AttentionInputs<A> in;
  ContentSums sums;
  float* dtable;
  int64_t dtable_head;
  int shares = 0;
};

template <class Kernel, class A>
LaunchStatus launch_numbers(Kernel kernel, const MixArguments<A>& x, int64_t numbers,
                            Stream stream) {
  return device::launch(kernel, grid_of(blocks_of(numbers, kMixThreads)), {kMixThreads, 1, 1}, 0,
                        stream, x);
}
BAMTRAIN_DEVICE int64_t own_number() {
  return int64_t{device::block_index().x} * kMixThreads + device::thread_index().x;
}

}  // namespace

/// What biases of distance add to the hidden layer, c1 too: of_table. A thread has an element.
template <class A>
BAMTRAIN_KERNEL mix_table(MixArguments<A> x) {
  const AttentionInputs<A>& a = x.in;
  const int64_t n = own_number();
  if (n >= int64_t{a.T} * a.mix.hidden) return;
  const auto k = static_cast<int>(n % a.mix.hidden), d = static_cast<int>(n / a.mix.hidden);
  float sum = a.mix.c1[k];
  for (int h = 0; a.table != nullptr && h < a.H; ++h) {
    sum += first_weight(a.mix, a.H, k, true, h) * a.table[h * a.table_head + d];
  }
  x.sums.of_table[n] = sum;
}

template <class A>
LaunchStatus mix_begin(const AttentionInputs<A>& a, const ContentSums& sums, Stream stream) {
  if (mix_path(a) != MixPath::distances) return {};
  return launch_numbers(mix_table<A>, MixArguments<A>{a, sums, nullptr, 0},
                        int64_t{a.T} * a.mix.hidden, stream);
}

template <class A>
LaunchStatus mix_biases(const AttentionInputs<A>& a, const ContentSums& sums, Stream stream) {
  if constexpr (std::is_same_v<A, bf16>) {
    if (mix_path(a) == MixPath::distances) return mix_biases_by_distance(a, sums, stream);
    if (mix_path(a) == MixPath::tiles) return mix_biases_tiled(a, stream);
  }
  return launch_mix(mix_rows<A>, a, a.mix, a.H, grid_of_rows(a.formed.queries, 1, 1, a.B), false,
                    stream);
}

// --- backward -----------------------------------------------------------------------------------

/// A block adds the gradients of the queries of its slot to what those of the parts before left
/// there. Launch with kMixSlots blocks of kMixThreads threads and MixRows::bytes.
template <class A>
BAMTRAIN_KERNEL mix_rows_gradients(ContentGradients<A> g) {
  BAMTRAIN_DYNAMIC_SHARED(shared);
  const AttentionInputs<A>& a = g.in;
  const MixInputs& m = a.mix;
  const MixRows x(a, shared);
  const auto slot = static_cast<int>(device::block_index().x);
  const auto thread = static_cast<int>(device::thread_index().x);
  const MixElements of(a);
  float* const to = g.sums.of_mix + int64_t{slot} * of.count;
  // An element belongs to one thread.
  for (int n = thread; g.first_of_all && n < of.count; n += kMixThreads) to[n] = 0;
  for (int row = slot; row < a.B * a.formed.queries; row += kMixSlots) {
    const MixQuery own(a, row / a.formed.queries, row % a.formed.queries);
    float* const dz = a.formed.b + own.row;
    for (int j0 = own.first; j0 <= own.i; j0 += kKeys) {
      form_hidden(x, a, own, j0);
      for_numbers(a.H, [&](int h, int n) {
        const int j = j0 + n;
        x.dz[h * kKeys + n] = own.sees(j) ? dz[h * own.head + j] - own.rest(g, h, j) : 0.0f;
      });
      device::barrier();
      for_numbers(m.hidden, [&](int k, int n) {
        float sum = 0;
        for (int h = 0; h < a.H; ++h) {
          sum += m.w2[h * m.hidden + k] * own.of_biases(a, h) * x.dz[h * kKeys + n];
        }
        float& hidden = x.hidden[k * kKeys + n];
        x.dhidden[k * kKeys + n] = dape_slope(hidden) * sum;
        hidden = dape_activation(hidden);
      });
      device::barrier();
      for (int n = thread; n < of.count; n += kMixThreads) {
        const auto dot = [](const float* p, const float* q) {
          float sum = 0;
          for (int key = 0; key < kKeys; ++key) sum += p[key] * (q != nullptr ? q[key] : 1.0f);
          return sum;
        };
        const bool first = n < of.w2;
        const int at = first ? n : n - of.w2;
        if (first && at >= of.c1) {
          to[n] += dot(x.dhidden + (at - of.c1) * kKeys, nullptr);
        } else if (first) {  // rows of scores, then of biases
          to[n] += dot(x.dhidden + at / of.inputs * kKeys, x.scores + at % of.inputs * kKeys);
        } else if (n >= of.c2) {
          to[n] += own.of_biases(a, n - of.c2) * dot(x.dz + (n - of.c2) * kKeys, nullptr);
        } else {
          const int h = at / m.hidden;
          to[n] += own.of_biases(a, h) * dot(x.dz + h * kKeys, x.hidden + at % m.hidden * kKeys);
        }
      }
      for_numbers(a.H, [&](int h, int n) {
        const int j = j0 + n;
        if (!own.sees(j)) return;
        const auto of_input = [&](bool of_biases) {
          float sum = 0;
          for (int k = 0; k < m.hidden; ++k) {
            sum += first_weight(m, a.H, k, of_biases, h) * x.dhidden[k * kKeys + n];
          }
          return sum;
        };
        const float of_logit = x.dz[h * kKeys + n];
        dz[h * own.head + j] = own.of_scores(a, h) * of_logit + of_input(false);
        const float db = keeps_bias(m.form) ? own.of_biases(a, h) * of_logit : 0.0f;
        a.formed.s[own.row + h * own.head + j] = db + of_input(true);
      });
    }
  }
}

/// Of the prior's bias: what belongs to a query, a warp per row.
template <class A>
BAMTRAIN_KERNEL mix_of_queries(ContentGradients<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own(a.formed.first);
  const int i = own.t;
  if (i >= a.end_of_queries()) return;
  const float* const dB = a.formed.s + a.formed.row(static_cast<int64_t>(own.b) * a.H + own.h, i);
  QueryBias sums;
  for (int j = first_of(a, own.b, i) + own.lane; j <= i; j += 32) {
    const Bias bias = prior_bias_of(a, own.b, own.h, i, j, FirePoint(a, own.b, i, j));
    sums.add(a, BiasGradient(bias, dB[j]), i - j);
  }
  sums.join();
  if (own.lane == 0) sums.store(a, g.bias, row_of(a, own.b, own.h, i), false);
}

namespace {

/// Sums of a block that owns 32 of something, a lane each: the warps divide the rest. In the first
/// warp: their sum.
BAMTRAIN_DEVICE float join_warps(float (&sums)[32 * kRowWarps], float sum) {
  const int thread = static_cast<int>(device::thread_index().x);
  sums[thread] = sum;
  device::barrier();
  for (int w = 1; thread < 32 && w < kRowWarps; ++w) sum += sums[32 * w + thread];
  return sum;
}

}  // namespace

/// What belongs to a key of a formula, added to dnumbers. Launch with grid (ceil(end of the part's
/// queries / 32), H, B) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_keys(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, 32 * kRowWarps);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int b = static_cast<int>(device::block_index().z);
  const int h = static_cast<int>(device::block_index().y);
  const int j0 = 32 * static_cast<int>(device::block_index().x), j = j0 + thread % 32;
  const int64_t head = static_cast<int64_t>(b) * a.H + h;
  float sum = 0;
  for (int i = (j0 > a.formed.first ? j0 : a.formed.first) + thread / 32; i < a.end_of_queries();
       i += kRowWarps) {
    if (first_of(a, b, i) > j0 + 31) break;  // nor does any query behind it see one of the keys
    if (j > i || j < first_of(a, b, i)) continue;
    const float dB = a.formed.s[a.formed.row(head, i) + j];
    sum += dB * prior_bias_of(a, b, h, i, j, FirePoint(a, b, i, j)).of_key;
  }
  sum = join_warps(sums, sum);
  if (thread < 32 && j < a.end_of_queries()) g.bias.dnumbers[head * a.T + j] += sum;
}

/// dtable at a distance, added to that of the parts before. Launch with grid (ceil(T / 32), H) and
/// 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_distances(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, 32 * kRowWarps);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int h = static_cast<int>(device::block_index().y);
  const int d0 = 32 * static_cast<int>(device::block_index().x), d = d0 + thread % 32;
  float sum = 0;
  for (int b = 0; b < a.B; ++b) {
    const int64_t head = static_cast<int64_t>(b) * a.H + h;
    for (int i = (d0 > a.formed.first ? d0 : a.formed.first) + thread / 32; i < a.end_of_queries();
         i += kRowWarps) {
      if (i - d >= first_of(a, b, i)) sum += a.formed.s[a.formed.row(head, i) + i - d];
    }
  }
  sum = join_warps(sums, sum);
  if (thread >= 32 || d >= a.T) return;
  float& to = g.bias.dtable[h * g.bias.dtable_head + d];
  to = g.first_of_all ? sum : to + sum;
}

/// Of a tile of queries, the sums of dB and of dB u for each segment of fire. Launch with grid
/// (tiles of queries of the part, H, B) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL mix_of_segments(ContentGradients<A> g) {
  BAMTRAIN_SHARED(float, sums, kRowWarps* kFirePartial);
  const AttentionInputs<A>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x);
  const int warp = thread / 32, lane = thread % 32;
  const int b = static_cast<int>(device::block_index().z);
  const int h = static_cast<int>(device::block_index().y);
  const int i0 = a.formed.first + kTile * static_cast<int>(device::block_index().x);
  const int end = i0 + kTile < a.end_of_queries() ? i0 + kTile : a.end_of_queries();
  const int64_t head = static_cast<int64_t>(b) * a.H + h;
  float* const own = sums + warp * kFirePartial;
  for (int n = lane; n < kFirePartial; n += 32) own[n] = 0;
  device::sync_warp();
  for (int i = i0 + warp; i < end; i += kRowWarps) {
    const float* const dB = a.formed.s + a.formed.row(head, i);
    const int64_t position = a.fire.positions[static_cast<int64_t>(b) * a.T + i];
    const int32_t* const ends = a.fire.ends + position * kFireHidden;
    const int visible = i - first_of(a, b, i) + 1;
    int begin = 0;
    for (int segment = 0; segment < kFireSegments && begin < visible; ++segment) {
      const int last = segment == kFireHidden || ends[segment] > visible ? visible : ends[segment];
      if (last <= begin) continue;
      float of_one = 0, of_psi = 0;
      for (int d = begin + lane; d < last; d += 32) {
        of_one += dB[i - d];
        of_psi += dB[i - d] * a.fire.psi[d];
      }
      of_one = warp_sum(of_one);
      of_psi = warp_sum(of_psi);
      if (lane == 0) {
        own[2 * segment] += of_one;
        own[2 * segment + 1] += a.fire.inverse[position] * of_psi;
      }
      begin = last;
    }
  }
  device::barrier();
  if (thread >= kFirePartial) return;
  float sum = sums[thread];
  for (int w = 1; w < kRowWarps; ++w) sum += sums[w * kFirePartial + thread];
  const int64_t tile = head * attention_tiles(a.T) + i0 / kTile;
  g.of_fire[tile * kFirePartial + thread] = sum;
}

template <class A>
LaunchStatus mix_gradients(const ContentGradients<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  const auto launch_queries = [&](void (*kernel)(ContentGradients<A>)) {
    return launch_rows(kernel, g, a.formed.queries, a.H, a.B, stream);
  };
  LaunchStatus status;
  const MixPath path = mix_path(a);
  if constexpr (std::is_same_v<A, bf16>) {
    if (path == MixPath::distances) return mix_gradients_by_distance(g, stream);
    if (path == MixPath::tiles) status = mix_gradients_tiled(g, stream);
  }
  if (path == MixPath::plain) {
    status = launch_mix(mix_rows_gradients<A>, g, a.mix, a.H, device::Dim3{kMixSlots, 1, 1}, true,
                        stream);
  }
  const bool fire = a.fire.psi != nullptr, numbers = a.numbers != nullptr;
  if (status.ok() && (numbers || fire)) {
    status = launch_queries(mix_of_queries<A>);
  }
  const auto launch = [&](void (*kernel)(ContentGradients<A>), const device::Dim3& grid) {
    if (status.ok()) status = device::launch(kernel, grid, {32 * kRowWarps, 1, 1}, 0, stream, g);
  };
  if (numbers) launch(mix_of_keys<A>, grid_of_rows(a.end_of_queries(), 32, a.H, a.B));
  if (a.table != nullptr) launch(mix_of_distances<A>, grid_of_rows(a.T, 32, a.H, 1));
  if (fire) launch(mix_of_segments<A>, grid_of_rows(a.formed.queries, kTile, a.H, a.B));
  return status;
}

/// Of biases of distance: the shares' sums, in their order, in place of the first. A thread has an
/// element.
template <class A>
BAMTRAIN_KERNEL mix_join_shares(MixArguments<A> x) {
  const int64_t size = int64_t{x.in.T} * (x.in.mix.hidden + x.in.H), n = own_number();
  if (n >= size) return;
  float* const of_shares = x.sums.of_shares + n;
  float sum = of_shares[0];
  for (int share = 1; share < x.shares; ++share) sum += of_shares[share * size];
  of_shares[0] = sum;
}

/// dtable from them. A thread has an element.
template <class A>
BAMTRAIN_KERNEL mix_of_table(MixArguments<A> x) {
  const AttentionInputs<A>& a = x.in;
  const int64_t n = own_number();
  if (n >= int64_t{a.H} * a.T) return;
  const auto d = static_cast<int>(n % a.T), h = static_cast<int>(n / a.T);
  const float* const of_distance = x.sums.of_shares + int64_t{d} * (a.mix.hidden + a.H);
  float sum = keeps_bias(a.mix.form) ? of_distance[a.mix.hidden + h] : 0.0f;
  for (int k = 0; k < a.mix.hidden; ++k) {
    sum += first_weight(a.mix, a.H, k, true, h) * of_distance[k];
  }
  x.dtable[h * x.dtable_head + d] = sum;
}

/// And in the first slot the gradients of W1', c1 and c2: a warp has one of these, of unit k and
/// head h, of unit k, of head h.
template <class A>
BAMTRAIN_KERNEL mix_of_distances_sums(MixArguments<A> x) {
  const AttentionInputs<A>& a = x.in;
  const OwnRow own;
  const MixElements of(a);
  const int hidden = a.mix.hidden, each = hidden + a.H, n = own.t;
  if (n >= hidden * (a.H + 1) + a.H) return;
  const bool of_c2 = n >= hidden * (a.H + 1);
  const int k = n / (a.H + 1), h = of_c2 ? n - hidden * (a.H + 1) : n % (a.H + 1);
  const bool of_c1 = !of_c2 && h == a.H;
  float sum = 0;
  for (int d = own.lane; d < a.T; d += 32) {
    const float at = x.sums.of_shares[int64_t{d} * each + (of_c2 ? hidden + h : k)];
    const float B = a.table != nullptr && h < a.H ? a.table[h * a.table_head + d] : 0.0f;
    sum += of_c1 || of_c2 ? at : at * B;
  }
  sum = warp_sum(sum);
  if (own.lane != 0) return;
  x.sums.of_mix[of_c2 ? of.c2 + h : of_c1 ? of.c1 + k : k * of.inputs + a.H + h] = sum;
}

/// The network's gradients from the slots' sums, in their order. A thread has an element of a slot.
/// `slots_of_biases`: those of W1', c1 and c2.
BAMTRAIN_KERNEL mix_join(MixOutputs g, const float* partial, MixElements of, MixForm form,
                         int slots, int slots_of_biases) {
  const int n = static_cast<int>(own_number());
  if (n >= of.count) return;
  const int H = of.inputs / 2;
  const auto sum_of = [&](int at) {
    const bool of_biases = at < of.c1 ? at % of.inputs >= H : at < of.w2 || at >= of.c2;
    float sum = 0;
    for (int slot = 0; slot < (of_biases ? slots_of_biases : slots); ++slot) {
      sum += partial[int64_t{slot} * of.count + at];
    }
    return sum;
  };
  if (n >= of.c2) {
    g.dc2[n - of.c2] = sum_of(n);
  } else if (n >= of.w2) {
    g.dw2[n - of.w2] = sum_of(n);
  } else if (n >= of.c1) {
    g.dc1[n - of.c1] = sum_of(n);
  } else if (mix_inputs(form, 1) == 2) {
    g.dw1[n] = sum_of(n);
  } else if (n % of.inputs < H) {
    const float of_scores = form == MixForm::bias_only ? 0.0f : sum_of(n);
    g.dw1[n / of.inputs * H + n % of.inputs] = of_scores + sum_of(n + H);
  }
}

template <class A>
LaunchStatus mix_end(const AttentionBackward<A>& g, const ContentSums& sums, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  const MixElements of(a);
  LaunchStatus status;
  const bool distances = mix_path(a) == MixPath::distances;
  if (distances) {
    const MixArguments<A> x = {a, sums, g.dtable, g.dtable_head, mix_shares(a.T)};
    const int each = a.mix.hidden + a.H;
    status = launch_numbers(mix_join_shares<A>, x, int64_t{a.T} * each, stream);
    if (status.ok() && a.table != nullptr) {
      status = launch_numbers(mix_of_table<A>, x, int64_t{a.H} * a.T, stream);
    }
    if (status.ok()) {
      const int warps = a.mix.hidden * (a.H + 1) + a.H;
      status = launch_rows(mix_of_distances_sums<A>, x, warps, 1, 1, stream);
    }
  }
  if (status.ok()) {
    const int slots = distances ? static_cast<int>(mix_slots(a.T)) : kMixSlots;
    status = device::launch(mix_join, grid_of(blocks_of(of.count, kMixThreads)),
                            {kMixThreads, 1, 1}, 0, stream, g.dmix, sums.of_mix, of, a.mix.form,
                            slots, distances ? 1 : kMixSlots);
  }
  if (!status.ok() || a.fire.psi == nullptr) return status;
  return join_fire(g.dfire, g.partial, a.B, a.H, attention_tiles(a.T), stream);
}

#define BAMTRAIN_MIX(A)                                                                    \
  template LaunchStatus mix_begin(const AttentionInputs<A>&, const ContentSums&, Stream);  \
  template LaunchStatus mix_biases(const AttentionInputs<A>&, const ContentSums&, Stream); \
  template LaunchStatus mix_gradients(const ContentGradients<A>&, Stream);                 \
  template LaunchStatus mix_end(const AttentionBackward<A>&, const ContentSums&, Stream);
BAMTRAIN_MIX(float)
BAMTRAIN_MIX(bf16)
#undef BAMTRAIN_MIX

}  // namespace bamtrain::kernels
