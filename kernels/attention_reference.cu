// A warp owns a row of an output: its lanes divide the other rows among themselves, then the
// columns of the sum, one row after another. Nothing is kept between rows, nothing is tiled.

#include "arguments.h"
#include "attention_bias.cuh"
#include "attention_checks.h"
#include "attention_reference.h"
#include "device.cuh"
#include "reductions.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kWarps = 4;  // of a block
constexpr int kColumns = kReferenceLongestRow / 32;

/// The row of a (B, T, heads) or (B, heads, T) array that the warp owns. Launch with grid
/// (ceil(T / kWarps), heads, B) and 32 kWarps threads.
struct OwnRow {
  int b, t, h, lane;

  BAMTRAIN_DEVICE OwnRow() {
    const int thread = static_cast<int>(device::thread_index().x);
    b = static_cast<int>(device::block_index().z);
    t = static_cast<int>(device::block_index().x) * kWarps + thread / 32;
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

/// What the backward pass needs of a query and a key that it sees: p, and the gradients with
/// respect to s, b, t, S_j - S_i and u of fire; and u.
struct Gradient {
  float p, ds, db, dt, dx, du, u;
};

template <class A>
BAMTRAIN_DEVICE Gradient gradient_of(const AttentionBackward<A>& g, int b, int h, int i, int j) {
  const AttentionInputs<A>& a = g.in;
  const bool alone = first_of(a, b, i) == i;
  const Logit l = logit_of(a, b, h, i, j);
  const float dp = dot(at(g.dout, b, i, h), at(a.v, b, j, h / (a.H / a.K)), a.D);
  Gradient x;
  x.p = alone ? 1.0f : expf(l.z - g.lse[row_of(a, b, h, i)]);
  const float dz = alone ? 0.0f : x.p * (dp - g.row_product[row_of(a, b, h, i)]);
  x.ds = l.t * dz;
  x.db = a.scale_bias ? l.t * dz : dz;
  x.dt = a.scale_bias ? dz * (l.s + l.bias.b) : dz * l.s;
  x.dx = x.db * l.bias.derivative;
  x.du = x.db * l.bias.slope;
  x.u = l.bias.u;
  return x;
}

/// sum[n] += weight * x[lane + 32 n].
template <class A>
BAMTRAIN_DEVICE void add_row(float (&sum)[kColumns], float weight, const A* x, int D, int lane) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    if (lane + 32 * n < D) sum[n] += weight * load_one(x + lane + 32 * n);
  }
}
/// x[lane + 32 n] = factor * sum[n].
template <class A>
BAMTRAIN_DEVICE void store_row(A* x, float factor, const float (&sum)[kColumns], int D, int lane) {
  BAMTRAIN_UNROLL
  for (int n = 0; n < kColumns; ++n) {
    if (lane + 32 * n < D) store_one(x + lane + 32 * n, factor * sum[n]);
  }
}

const char* reference_refusal(int D, const char* common) {
  if (common != nullptr) return common;
  return D < 1 || D > kReferenceLongestRow ? "attention: the head dimension is not in 1 .. 256"
                                           : nullptr;
}

/// Launches a kernel with a warp for each of `heads` x `sequences` x `rows` rows.
template <class Arguments>
LaunchStatus launch_rows(void (*kernel)(Arguments), const Arguments& arguments, int rows, int heads,
                         int sequences, Stream stream) {
  return device::launch(kernel, grid_of_rows(rows, kWarps, heads, sequences), {32 * kWarps, 1, 1},
                        0, stream, arguments);
}

}  // namespace

// --- forward ------------------------------------------------------------------------------------

/// out and lse: the largest logit of the row, then exp(z - largest) and its sums.
template <class A>
BAMTRAIN_KERNEL attention_reference_rows(AttentionForward<A> f) {
  const AttentionInputs<A>& a = f.in;
  const OwnRow own;
  if (own.t >= a.T) return;  // the whole warp
  const int i = own.t, first = first_of(a, own.b, i);
  float largest = -INFINITY;
  for (int j = first + own.lane; j <= i; j += 32) {
    largest = fmaxf(largest, logit_of(a, own.b, own.h, i, j).z);
  }
  largest = warp_max(largest);
  float sum = 0, out[kColumns] = {};
  for (int j0 = first; j0 <= i; j0 += 32) {
    const int j = j0 + own.lane;
    const float p = j <= i ? expf(logit_of(a, own.b, own.h, i, j).z - largest) : 0.0f;
    sum += p;
    for (int n = 0; n < 32 && j0 + n <= i; ++n) {
      const float weight = device::shuffle(device::kWholeWarp, p, n);
      add_row(out, weight, at(a.v, own.b, j0 + n, own.h / (a.H / a.K)), a.D, own.lane);
    }
  }
  sum = warp_sum(sum);
  store_row(at(f.out, own.b, i, own.h), 1.0f / sum, out, a.D, own.lane);
  if (own.lane == 0) f.lse[row_of(a, own.b, own.h, i)] = largest + logf(sum);
}

template <class A>
LaunchStatus attention_reference_forward(const AttentionForward<A>& f, Stream stream) {
  const AttentionInputs<A>& a = f.in;
  if (const char* why = reference_refusal(a.D, refusal(f))) return device::refused(why);
  return launch_rows(attention_reference_rows<A>, f, a.T, a.H, a.B, stream);
}

// --- backward -----------------------------------------------------------------------------------

/// row_product: <dO_i, O_i>.
template <class A>
BAMTRAIN_KERNEL attention_reference_products(AttentionBackward<A> g) {
  const OwnRow own;
  if (own.t >= g.in.T) return;
  const A* out = at(g.out, own.b, own.t, own.h);
  const A* dout = at(g.dout, own.b, own.t, own.h);
  float sum = 0;
  for (int c = own.lane; c < g.in.D; c += 32) sum += load_one(out + c) * load_one(dout + c);
  sum = warp_sum(sum);
  if (own.lane == 0) g.row_product[row_of(g.in, own.b, own.h, own.t)] = sum;
}

/// dq, dscale, the query's part of dsums, dfire_u and dfire_psi of a query.
template <class A>
BAMTRAIN_KERNEL attention_reference_queries(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const int i = own.t;
  float dt = 0, dx = 0, of_u = 0, of_psi = 0, dq[kColumns] = {};
  for (int j0 = first_of(a, own.b, i); j0 <= i; j0 += 32) {
    const int j = j0 + own.lane;
    Gradient x = {};
    if (j <= i) x = gradient_of(g, own.b, own.h, i, j);
    dt += x.dt;
    dx += x.dx;
    if (a.fire.psi != nullptr && j <= i) {
      of_u += x.du * x.u;
      of_psi += x.du * a.fire.psi_dc[i - j];
    }
    for (int n = 0; n < 32 && j0 + n <= i; ++n) {
      const float weight = device::shuffle(device::kWholeWarp, x.ds, n);
      add_row(dq, weight, at(a.k, own.b, j0 + n, own.h / (a.H / a.K)), a.D, own.lane);
    }
  }
  dt = warp_sum(dt);
  dx = warp_sum(dx);
  of_u = warp_sum(of_u);
  of_psi = warp_sum(of_psi);
  store_row(at(g.dq, own.b, i, own.h), 1.0f / a.content_divisor, dq, a.D, own.lane);
  if (a.scale != nullptr && own.lane == 0) g.dscale[row_of(a, own.b, own.h, i)] = dt;
  if (a.sums != nullptr && own.lane == 0) g.dsums[row_of(a, own.b, own.h, i)] = -dx;
  if (a.fire.psi != nullptr && own.lane == 0) {
    g.dfire_u[row_of(a, own.b, own.h, i)] = of_u;
    g.dfire_psi[row_of(a, own.b, own.h, i)] = of_psi;
  }
}

/// dk and dv of a key, over all the query heads that read it; the key's part is added to dsums of
/// each, which has the queries'.
template <class A>
BAMTRAIN_KERNEL attention_reference_keys(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const int j = own.t, group = a.H / a.K;
  float dk[kColumns] = {}, dv[kColumns] = {};
  for (int h = own.h * group; h < (own.h + 1) * group; ++h) {
    float dx = 0;
    // First keys never fall: the queries that see this key follow one another.
    for (int i0 = j; i0 < a.T && first_of(a, own.b, i0) <= j; i0 += 32) {
      const int i = i0 + own.lane;
      Gradient x = {};
      if (i < a.T && first_of(a, own.b, i) <= j) x = gradient_of(g, own.b, h, i, j);
      dx += x.dx;
      for (int n = 0; n < 32 && i0 + n < a.T; ++n) {
        const float to_k = device::shuffle(device::kWholeWarp, x.ds, n);
        const float to_v = device::shuffle(device::kWholeWarp, x.p, n);
        add_row(dk, to_k, at(a.q, own.b, i0 + n, h), a.D, own.lane);
        add_row(dv, to_v, at(g.dout, own.b, i0 + n, h), a.D, own.lane);
      }
    }
    dx = warp_sum(dx);
    if (a.sums != nullptr && own.lane == 0) g.dsums[row_of(a, own.b, h, j)] += dx;
  }
  store_row(at(g.dk, own.b, j, own.h), 1.0f / a.content_divisor, dk, a.D, own.lane);
  store_row(at(g.dv, own.b, j, own.h), 1.0f, dv, a.D, own.lane);
}

/// dtable at distance t of a head: along the diagonals of all sequences. Launch with B = 1.
template <class A>
BAMTRAIN_KERNEL attention_reference_diagonals(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const int d = own.t;
  float sum = 0;
  for (int b = 0; b < a.B; ++b) {
    for (int i = d + own.lane; i < a.T; i += 32) {
      if (first_of(a, b, i) <= i - d) sum += gradient_of(g, b, own.h, i, i - d).db;
    }
  }
  sum = warp_sum(sum);
  if (own.lane == 0) g.dtable[own.h * g.dtable_head + d] = sum;
}

/// dfire of a head and a segment: over the distances of each query that lie in it.
template <class A>
BAMTRAIN_KERNEL attention_reference_segments(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  const int segment = own.t;
  if (segment >= kFireSegments) return;
  double of_one = 0, of_u = 0;
  for (int b = 0; b < a.B; ++b) {
    for (int i = 0; i < a.T; ++i) {
      const int64_t position = a.fire.positions[static_cast<int64_t>(b) * a.T + i];
      const int32_t* const ends = a.fire.ends + position * kFireHidden;
      const int visible = i - first_of(a, b, i) + 1;
      const int end = segment == kFireHidden || ends[segment] > visible ? visible : ends[segment];
      for (int d = (segment == 0 ? 0 : ends[segment - 1]) + own.lane; d < end; d += 32) {
        const Gradient x = gradient_of(g, b, own.h, i, i - d);
        of_one += static_cast<double>(x.db);
        of_u += static_cast<double>(x.db * x.u);
      }
    }
  }
  of_one = warp_sum(of_one);
  of_u = warp_sum(of_u);
  if (own.lane != 0) return;
  double* const to = g.dfire + own.h * int64_t{kFirePartial} + 2 * segment;
  to[0] = of_one;
  to[1] = of_u;
}

template <class A>
LaunchStatus attention_reference_backward(const AttentionBackward<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  if (const char* why = reference_refusal(a.D, refusal(g))) return device::refused(why);
  LaunchStatus status = launch_rows(attention_reference_products<A>, g, a.T, a.H, a.B, stream);
  if (status.ok()) status = launch_rows(attention_reference_queries<A>, g, a.T, a.H, a.B, stream);
  if (status.ok()) status = launch_rows(attention_reference_keys<A>, g, a.T, a.K, a.B, stream);
  if (status.ok() && a.table != nullptr) {
    status = launch_rows(attention_reference_diagonals<A>, g, a.T, a.H, 1, stream);
  }
  if (status.ok() && a.fire.psi != nullptr) {
    status = launch_rows(attention_reference_segments<A>, g, kFireSegments, a.H, 1, stream);
  }
  return status;
}

template LaunchStatus attention_reference_forward(const AttentionForward<float>&, Stream);
template LaunchStatus attention_reference_backward(const AttentionBackward<float>&, Stream);

}  // namespace bamtrain::kernels
