// Mixes of heads (HeadMix of ops/attention.h) in plain loops, and what follows every form of them:
// the sums of the network's gradients, and of biases of distance those of the table.

#include "attention_content.h"
#include "attention_mix.cuh"
#include "attention_mix_prior.cuh"
#include "reductions.cuh"
#include "vectors.cuh"

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
  for (int j0 = own.first; j0 <= own.last; j0 += kKeys) {
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
  if (!std::is_same_v<A, bf16> || a.H > kMostTiledHeads || !a.causal) return MixPath::plain;
  return a.numbers == nullptr && a.fire.psi == nullptr ? MixPath::distances : MixPath::tiles;
}

/// Of kernels of biases of distance on tensor cores, for all sequences.
struct MixArguments {
  AttentionInputs<bf16> in;
  ContentSums sums;
  float* dtable;
  int64_t dtable_head;
  int shares = 0;
};

LaunchStatus launch_numbers(void (*kernel)(MixArguments), const MixArguments& x, int64_t numbers,
                            Stream stream) {
  return device::launch(kernel, grid_of(blocks_of(numbers, kMixThreads)), {kMixThreads, 1, 1}, 0,
                        stream, x);
}
/// Of biases, as tensor cores would read it: a weight that is shared with scores is one number.
BAMTRAIN_DEVICE float rounded_weight(const MixInputs& m, int H, int k, int h) {
  return rounded_to<bf16>(first_weight(m, H, k, true, h));
}
BAMTRAIN_DEVICE int64_t own_number() {
  return int64_t{device::block_index().x} * kMixThreads + device::thread_index().x;
}

}  // namespace

/// What biases of distance add to the hidden layer, c1 too: of_table. A thread has an element.
BAMTRAIN_KERNEL mix_table(MixArguments x) {
  const AttentionInputs<bf16>& a = x.in;
  const int64_t n = own_number();
  if (n >= int64_t{a.T} * a.mix.hidden) return;
  const auto k = static_cast<int>(n % a.mix.hidden), d = static_cast<int>(n / a.mix.hidden);
  float sum = a.mix.c1[k];
  for (int h = 0; a.table != nullptr && h < a.H; ++h) {
    sum += rounded_weight(a.mix, a.H, k, h) * a.table[h * a.table_head + d];
  }
  x.sums.of_table[n] = sum;
}

template <class A>
LaunchStatus mix_begin(const AttentionInputs<A>& a, const ContentSums& sums, Stream stream) {
  if constexpr (std::is_same_v<A, bf16>) {
    if (mix_path(a) == MixPath::distances) {
      return launch_numbers(mix_table, {a, sums, nullptr, 0}, int64_t{a.T} * a.mix.hidden, stream);
    }
  }
  return {};
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
    for (int j0 = own.first; j0 <= own.last; j0 += kKeys) {
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

template <class A>
LaunchStatus mix_gradients(const ContentGradients<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
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
  return status.ok() ? mix_gradients_of_prior(g, stream) : status;
}

/// Of biases of distance: the shares' sums, in their order, in place of the first. A thread has an
/// element.
BAMTRAIN_KERNEL mix_join_shares(MixArguments x) {
  const int64_t size = int64_t{x.in.T} * (x.in.mix.hidden + x.in.H), n = own_number();
  if (n >= size) return;
  float* const of_shares = x.sums.of_shares + n;
  *of_shares = sum_in_order(of_shares, x.shares, size);
}

/// dtable from them. A thread has an element.
BAMTRAIN_KERNEL mix_of_table(MixArguments x) {
  const AttentionInputs<bf16>& a = x.in;
  const int64_t n = own_number();
  if (n >= int64_t{a.H} * a.T) return;
  const auto d = static_cast<int>(n % a.T), h = static_cast<int>(n / a.T);
  const float* const of_distance = x.sums.of_shares + int64_t{d} * (a.mix.hidden + a.H);
  float sum = keeps_bias(a.mix.form) ? of_distance[a.mix.hidden + h] : 0.0f;
  for (int k = 0; k < a.mix.hidden; ++k) {
    sum += rounded_weight(a.mix, a.H, k, h) * of_distance[k];
  }
  x.dtable[h * x.dtable_head + d] = sum;
}

/// And in the first slot the gradients of W1', c1 and c2; and added what w2 has of the layer of
/// biases alone. A warp has an element: of unit k and head h, of unit k, of head h.
BAMTRAIN_KERNEL mix_of_distances_sums(MixArguments x) {
  const AttentionInputs<bf16>& a = x.in;
  const OwnRow own;
  const MixElements of(a);
  const int hidden = a.mix.hidden, of_unit = 2 * a.H + 1, n = own.t;
  if (n >= hidden * of_unit + a.H) return;
  const bool of_c2 = n >= hidden * of_unit, of_c1 = !of_c2 && n % of_unit == 2 * a.H;
  const bool of_w2 = !of_c2 && !of_c1 && n % of_unit >= a.H;
  const int k = n / of_unit, h = of_c2 ? n - hidden * of_unit : n % of_unit % a.H;
  float sum = 0;
  for (int d = own.lane; d < a.T; d += 32) {
    const float* const at = x.sums.of_shares + int64_t{d} * (hidden + a.H);
    float times = 1;
    if (of_w2) {
      times = dape_activation(x.sums.of_table[int64_t{d} * hidden + k]);
    } else if (!of_c1 && !of_c2) {
      times = a.table != nullptr ? a.table[h * a.table_head + d] : 0.0f;
    }
    sum += at[of_c2 || of_w2 ? hidden + h : k] * times;
  }
  sum = warp_sum(sum);
  if (own.lane != 0) return;
  float* const slot = x.sums.of_mix;
  if (of_w2) {
    slot[of.w2 + h * hidden + k] += sum;
  } else {
    slot[of_c2 ? of.c2 + h : of_c1 ? of.c1 + k : k * of.inputs + a.H + h] = sum;
  }
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
    return sum_in_order(partial + at, of_biases ? slots_of_biases : slots, of.count);
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

namespace {

LaunchStatus join_distances(const MixArguments& x, Stream stream) {
  const AttentionInputs<bf16>& a = x.in;
  const int each = a.mix.hidden + a.H, warps = a.mix.hidden * (2 * a.H + 1) + a.H;
  LaunchStatus status = launch_numbers(mix_join_shares, x, int64_t{a.T} * each, stream);
  if (status.ok() && a.table != nullptr) {
    status = launch_numbers(mix_of_table, x, int64_t{a.H} * a.T, stream);
  }
  return status.ok() ? launch_rows(mix_of_distances_sums, x, warps, 1, 1, stream) : status;
}

}  // namespace

template <class A>
LaunchStatus mix_end(const AttentionBackward<A>& g, const ContentSums& sums, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  const MixElements of(a);
  LaunchStatus status;
  const bool distances = mix_path(a) == MixPath::distances;
  if constexpr (std::is_same_v<A, bf16>) {
    if (distances)
      status = join_distances({a, sums, g.dtable, g.dtable_head, mix_shares(a.T)}, stream);
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
