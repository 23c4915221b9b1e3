#pragma once
// What the plain attention kernels share: rows, logits and sums.

#include "arguments.h"
#include "attention_bias.cuh"
#include "attention_checks.h"
#include "attention_reference.h"
#include "attention_search.cuh"
#include "device.cuh"
#include "reductions.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

constexpr int kRowWarps = 4;  // of a block
constexpr int kRowColumns = kReferenceLongestRow / 32;

/// The row of a (B, T, heads) or (B, heads, T) array that the warp owns. Launch with grid
/// (ceil(T / kRowWarps), heads, B) and 32 kRowWarps threads.
struct OwnRow {
  int b, t, h, lane;

  /// `begin`: of the first row.
  BAMTRAIN_DEVICE explicit OwnRow(int begin = 0) {
    const int thread = static_cast<int>(device::thread_index().x);
    b = static_cast<int>(device::block_index().z);
    t = begin + static_cast<int>(device::block_index().x) * kRowWarps + thread / 32;
    h = static_cast<int>(device::block_index().y);
    lane = thread % 32;
  }
};

template <class Element>
BAMTRAIN_DEVICE Element* at(const Rows<Element>& x, int b, int t, int h) {
  return x.data + b * x.batch + t * x.row + h * x.head;
}

/// Where (b, h, t) is in a (B, H, T) array.
template <class A>
BAMTRAIN_DEVICE int64_t row_of(const AttentionInputs<A>& a, int b, int h, int t) {
  return (static_cast<int64_t>(b) * a.H + h) * a.T + t;
}
template <class A>
BAMTRAIN_DEVICE int first_of(const AttentionInputs<A>& a, int b, int i) {
  return a.first_key[static_cast<int64_t>(b) * a.T + i];
}

template <class A>
BAMTRAIN_DEVICE int last_of(const AttentionInputs<A>& a, int b, int i) {
  return a.causal ? i : a.last_key[static_cast<int64_t>(b) * a.T + i];
}
/// The first of `a`'s queries whose row sees key j; the others follow it up to where first_of() is
/// past j. A row that does not see j if there is no such query.
template <class A>
BAMTRAIN_DEVICE int first_query(const AttentionInputs<A>& a, int b, int j) {
  const int first = a.causal ? j : first_of(a, b, j);
  return first > a.formed.first ? first : a.formed.first;
}

template <class A>
BAMTRAIN_DEVICE float dot(const A* x, const A* y, int D) {
  float sum = 0;
  for (int c = 0; c < D; ++c) sum += load_one(x + c) * load_one(y + c);
  return sum;
}

/// One logit: z = t s + b or t (s + b).
struct Logit {
  float s, t, z;
  Bias bias;
};

template <class A>
BAMTRAIN_DEVICE Logit logit_of(const AttentionInputs<A>& a, int b, int h, int i, int j) {
  Logit l;
  l.s = dot(at(a.q, b, i, h), at(a.k, b, j, h / (a.H / a.K)), a.D) / a.content_divisor;
  l.bias = bias_of(a, b, h, i, j);
  l.t = a.scale != nullptr ? a.scale[row_of(a, b, h, i)] : 1.0f;
  l.z = a.scale_bias ? l.t * (l.s + l.bias.b) : l.t * l.s + l.bias.b;
  return l;
}

/// For any normalizer but stick-breaking.
BAMTRAIN_DEVICE Weight weight_of(const NormalizerInputs& n, const RowWeights& row, int h, float z,
                                 int j) {
  Weight w = {};
  with_weight_form(weight_form(n, h), [&]<WeightForm kForm>() { w = row.of<kForm, true>(z, j); });
  return w;
}

/// One pass of a row's search, by a warp; `passes`: with those before. See RowSearch::accumulate.
template <class ForLogits>
BAMTRAIN_DEVICE void pass_over(RowSearch& search, WeightForm form, int passes,
                               const ForLogits& for_logits) {
  with_weight_form(
      form, [&]<WeightForm kForm>() { search.template accumulate<kForm, true>(for_logits); });
  search.template join<32>();
  search.template advance<true>(passes);
}

/// The sum of x over the lanes up to the own.
BAMTRAIN_DEVICE float sum_up_to(float x, int lane) {
  BAMTRAIN_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const float other = device::shuffle_up(device::kWholeWarp, x, distance);
    if (lane >= distance) x += other;
  }
  return x;
}

/// f(j0, j, share, p) for the keys of row i but its own, from the last to the first, a key per lane
/// of a warp: j = j0 - lane, below `first` without weight. logit(j): z.
template <class Logits, class F>
BAMTRAIN_DEVICE void break_stick(int first, int i, int lane, const Logits& logit, const F& f) {
  float broken = 0;
  for (int j0 = i - 1; j0 >= first; j0 -= 32) {
    const int j = j0 - lane;
    const float z = j >= first ? logit(j) : 0.0f;
    const Stick stick = j >= first ? stick_of<true>(z) : Stick{0.0f, 0.0f};
    const float sum = sum_up_to(stick.rest, lane);
    f(j0, j, stick.share, j >= first ? expf(z - (broken + sum)) : 0.0f);
    broken += device::shuffle(device::kWholeWarp, sum, 31);
  }
}

/// sum[n] += weight * x[lane + 32 n].
template <class A>
BAMTRAIN_DEVICE void add_row(float (&sum)[kRowColumns], float weight, const A* x, int D, int lane) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < kRowColumns; ++n) {
    if (lane + 32 * n < D) sum[n] += weight * load_one(x + lane + 32 * n);
  }
}
/// x[lane + 32 n] = factor * sum[n].
template <class A>
BAMTRAIN_DEVICE void store_row(A* x, float factor, const float (&sum)[kRowColumns], int D,
                               int lane) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < kRowColumns; ++n) {
    if (lane + 32 * n < D) store_one(x + lane + 32 * n, factor * sum[n]);
  }
}

/// Launches a kernel with a warp for each of `heads` x `sequences` x `rows` rows.
template <class Arguments>
device::LaunchStatus launch_rows(void (*kernel)(Arguments), const Arguments& arguments, int rows,
                                 int heads, int sequences, device::Stream stream) {
  return device::launch(kernel, grid_of_rows(rows, kRowWarps, heads, sequences),
                        {32 * kRowWarps, 1, 1}, 0, stream, arguments);
}

}  // namespace bamtrain::kernels
