// Biases that read queries and keys: in plain loops, a warp per row as in attention_reference.cu;
// and what has neither tiles nor parts.

#include "attention_content.h"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

/// Launched with a part's queries as rows: OwnRow::t counts them.
template <class A>
BAMTRAIN_DEVICE int query_of(const AttentionInputs<A>& a, const OwnRow& own) {
  return a.formed.first + own.t;
}
template <class A>
BAMTRAIN_DEVICE float scale_of(const AttentionInputs<A>& a, int b, int h, int i, bool wanted) {
  return wanted && a.scale != nullptr ? a.scale[row_of(a, b, h, i)] : 1.0f;
}
template <class A>
BAMTRAIN_DEVICE int64_t formed_row(const AttentionInputs<A>& a, int b, int h, int i) {
  return a.formed.row(static_cast<int64_t>(b) * a.H + h, i);
}

/// Where distance 0 of head h is, in an array of sums by distance.
template <class A>
BAMTRAIN_DEVICE float* by_distance(const AttentionInputs<A>& a, float* sums, int h) {
  return sums + static_cast<int64_t>(h) * a.distances() + a.distances_behind();
}

/// Of kernels for all sequences.
template <class A>
struct ContentArguments {
  AttentionInputs<A> in;
  ContentSums sums;
  BiasOutputs g;
};

}  // namespace

/// <u, k> / sqrt(D) of every key of every head.
template <class A>
BAMTRAIN_KERNEL relative_of_keys(ContentArguments<A> x) {
  const AttentionInputs<A>& a = x.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const A* const key = at(a.k, own.b, own.t, own.h / (a.H / a.K));
  float sum = 0;
  for (int c = own.lane; c < a.D; c += 32) sum += a.relative.u[own.h * a.D + c] * load_one(key + c);
  sum = warp_sum(sum);
  if (own.lane == 0) {
    x.sums.of_keys[row_of(a, own.b, own.h, own.t)] = sum / sqrtf(static_cast<float>(a.D));
  }
}

/// <w, r> / sqrt(D) of every distance of every head. Rows are distances.
template <class A>
BAMTRAIN_KERNEL relative_of_distances(ContentArguments<A> x) {
  const AttentionInputs<A>& a = x.in;
  const OwnRow own;
  if (own.t >= a.distances()) return;
  const int d = own.t - a.distances_behind();
  const float* const w = a.relative.w + own.h * a.D;
  const float* const r = a.relative.r + (static_cast<int64_t>(d) * a.H + own.h) * a.D;
  float sum = 0;
  for (int c = own.lane; c < a.D; c += 32) sum += w[c] * r[c];
  sum = warp_sum(sum);
  if (own.lane == 0) {
    by_distance(a, x.sums.of_distances, own.h)[d] = sum / sqrtf(static_cast<float>(a.D));
  }
}

template <class A>
LaunchStatus content_begin(const AttentionInputs<A>& a, const ContentSums& sums, Stream stream) {
  if (a.mix.w1 != nullptr) return mix_begin(a, sums, stream);
  if (a.relative.r == nullptr) return {};
  const ContentArguments<A> x = {a, sums, {}};
  const LaunchStatus keys = launch_rows(relative_of_keys<A>, x, a.T, a.H, a.B, stream);
  return keys.ok() ? launch_rows(relative_of_distances<A>, x, a.distances(), a.H, 1, stream) : keys;
}

/// b of the part.
template <class A>
BAMTRAIN_KERNEL relative_biases_of_rows(ContentArguments<A> x) {
  const AttentionInputs<A>& a = x.in;
  const OwnRow own;
  const int i = query_of(a, own);
  if (i >= a.end_of_queries()) return;
  const A* const query = at(a.q, own.b, i, own.h);
  const float *const of_keys = x.sums.of_keys + row_of(a, own.b, own.h, 0),
                     *const of_distances = by_distance(a, x.sums.of_distances, own.h);
  float* const b = a.formed.b + formed_row(a, own.b, own.h, i);
  const int last = last_of(a, own.b, i);
  for (int j = first_of(a, own.b, i) + own.lane; j <= last; j += 32) {
    const float* const r = a.relative.r + (static_cast<int64_t>(i - j) * a.H + own.h) * a.D;
    float sum = 0;
    for (int c = 0; c < a.D; ++c) sum += load_one(query + c) * r[c];
    b[j] = sum / sqrtf(static_cast<float>(a.D)) + of_keys[j] + of_distances[i - j];
  }
}

/// Scores of the part, <q, k> / content_divisor.
template <class A>
BAMTRAIN_KERNEL scores_of_rows(AttentionInputs<A> a) {
  const OwnRow own;
  const int i = query_of(a, own);
  if (i >= a.end_of_queries()) return;
  float* const to = a.formed.s + formed_row(a, own.b, own.h, i);
  const int last = last_of(a, own.b, i);
  for (int j = first_of(a, own.b, i) + own.lane; j <= last; j += 32) {
    to[j] = dot(at(a.q, own.b, i, own.h), at(a.k, own.b, j, own.h / (a.H / a.K)), a.D) /
            a.content_divisor;
  }
}

template <class A>
LaunchStatus content_biases_reference(const AttentionInputs<A>& a, const ContentSums& sums,
                                      Stream stream) {
  if (a.relative.r == nullptr) {
    const LaunchStatus scores =
        launch_rows(scores_of_rows<A>, a, a.formed.queries, a.H, a.B, stream);
    return scores.ok() ? biases_of_scores(a, sums, stream) : scores;
  }
  return launch_rows(relative_biases_of_rows<A>, ContentArguments<A>{a, sums, {}}, a.formed.queries,
                     a.H, a.B, stream);
}

// --- backward -----------------------------------------------------------------------------------

/// dq of the part.
template <class A>
BAMTRAIN_KERNEL content_queries_of_rows(ContentGradients<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  const int i = query_of(a, own);
  if (i >= a.end_of_queries()) return;
  const float* const dz = a.formed.b + formed_row(a, own.b, own.h, i);
  const ContextualInputs& e = a.contextual;
  const float t = scale_of(a, own.b, own.h, i, !reads_scores(a)) / a.content_divisor;
  const float u = scale_of(a, own.b, own.h, i, a.scale_bias) / sqrtf(static_cast<float>(a.D));
  float sum[kRowColumns] = {};
  const int last = last_of(a, own.b, i);
  for (int j = first_of(a, own.b, i); j <= last; ++j) {
    add_row(sum, t * dz[j], at(a.k, own.b, j, own.h / (a.H / a.K)), a.D, own.lane);
    if (a.relative.r == nullptr) continue;
    add_row(sum, u * dz[j], a.relative.r + (static_cast<int64_t>(i - j) * a.H + own.h) * a.D, a.D,
            own.lane);
  }
  for (int n = 0; n < e.count; ++n) {
    const float of_position = g.sums.of_positions[row_of(a, own.b, own.h, i) * e.count + n];
    BAMTRAIN_UNROLL
    for (int m = 0; m < kRowColumns; ++m) {
      const int c = own.lane + 32 * m;
      if (c < a.D) sum[m] += of_position * e.positions[c * e.count + n];
    }
  }
  store_row(at(g.dq, own.b, i, own.h), 1.0f, sum, a.D, own.lane);
}

/// dk and dv of a key from the part, added in fp32 to those of the parts before.
template <class A>
BAMTRAIN_KERNEL content_keys_of_rows(ContentGradients<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const int j = own.t, group = a.H / a.K;
  const int64_t sums = (static_cast<int64_t>(j) * a.K + own.h) * a.D;
  const bool relative = a.relative.r != nullptr;
  float dk[kRowColumns] = {}, dv[kRowColumns] = {};
  if (!g.first) {
    add_row(dk, 1.0f, g.sums.dk + sums, a.D, own.lane);
    add_row(dv, 1.0f, g.sums.dv + sums, a.D, own.lane);
  }
  for (int h = own.h * group; h < (own.h + 1) * group; ++h) {
    float of_key = 0;
    for (int i = first_query(a, own.b, j); i < a.end_of_queries() && first_of(a, own.b, i) <= j;
         ++i) {
      const int64_t at_key = formed_row(a, own.b, h, i) + j;
      const float dz = a.formed.b[at_key];
      add_row(dk, scale_of(a, own.b, h, i, relative) / a.content_divisor * dz, at(a.q, own.b, i, h),
              a.D, own.lane);
      add_row(dv, a.formed.p[at_key], at(g.dout, own.b, i, h), a.D, own.lane);
      of_key += scale_of(a, own.b, h, i, a.scale_bias) * dz;
    }
    if (!relative) continue;
    add_row(dk, of_key / sqrtf(static_cast<float>(a.D)), a.relative.u + h * a.D, a.D, own.lane);
    if (own.lane != 0) continue;
    float& to = g.sums.db_of_keys[row_of(a, own.b, h, j)];
    to = g.first ? of_key : to + of_key;
  }
  if (!g.last) {
    store_row(g.sums.dk + sums, 1.0f, dk, a.D, own.lane);
    store_row(g.sums.dv + sums, 1.0f, dv, a.D, own.lane);
    return;
  }
  store_row(at(g.dk, own.b, j, own.h), 1.0f, dk, a.D, own.lane);
  store_row(at(g.dv, own.b, j, own.h), 1.0f, dv, a.D, own.lane);
}

/// dr of a distance from the part, added to that of the parts before, and the sum of db.
template <class A>
BAMTRAIN_KERNEL relative_distances_of_rows(ContentGradients<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.distances()) return;
  const int d = own.t - a.distances_behind(), h = own.h;
  const float root = 1.0f / sqrtf(static_cast<float>(a.D));
  float* const to = g.bias.dr + (static_cast<int64_t>(d) * a.H + h) * a.D;
  float sum[kRowColumns] = {}, of_distance = 0;
  if (!g.first_of_all) add_row(sum, 1.0f, to, a.D, own.lane);
  for (int b = 0; b < a.B; ++b) {
    for (int i = d > a.formed.first ? d : a.formed.first; i < a.end_of_queries(); ++i) {
      if (first_of(a, b, i) > i - d || i - d > last_of(a, b, i)) continue;
      const float db =
          scale_of(a, b, h, i, a.scale_bias) * a.formed.b[formed_row(a, b, h, i) + i - d];
      add_row(sum, root * db, at(a.q, b, i, h), a.D, own.lane);
      of_distance += db;
    }
  }
  add_row(sum, root * of_distance, a.relative.w + h * a.D, a.D, own.lane);
  store_row(to, 1.0f, sum, a.D, own.lane);
  if (own.lane != 0) return;
  float& all = by_distance(a, g.sums.db_of_distances, h)[d];
  all = g.first_of_all ? of_distance : all + of_distance;
}

template <class A>
LaunchStatus content_gradients_reference(const ContentGradients<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  LaunchStatus status = a.relative.r != nullptr ? launch_rows(relative_distances_of_rows<A>, g,
                                                              a.distances(), a.H, 1, stream)
                                                : gradients_of_scores(g, stream);
  if (status.ok()) {
    status = launch_rows(content_queries_of_rows<A>, g, a.formed.queries, a.H, a.B, stream);
  }
  return status.ok() ? launch_rows(content_keys_of_rows<A>, g, a.T, a.K, a.B, stream) : status;
}

/// du of a head from the keys' sums of db, dw from the distances': a column per lane, the rows
/// among the warps. Launch with grid (ceil(D / 32), H) and 32 kRowWarps threads.
template <class A>
BAMTRAIN_KERNEL relative_of_heads(ContentArguments<A> x) {
  BAMTRAIN_SHARED(float, sums, 2 * 32 * kRowWarps);
  const AttentionInputs<A>& a = x.in;
  const int thread = static_cast<int>(device::thread_index().x), warp = thread / 32;
  const int h = static_cast<int>(device::block_index().y);
  const int c = 32 * static_cast<int>(device::block_index().x) + thread % 32;
  float du = 0, dw = 0;
  for (int t = warp; t < a.T && c < a.D; t += kRowWarps) {
    for (int b = 0; b < a.B; ++b) {
      du += x.sums.db_of_keys[row_of(a, b, h, t)] * load_one(at(a.k, b, t, h / (a.H / a.K)) + c);
    }
  }
  for (int n = warp; n < a.distances() && c < a.D; n += kRowWarps) {
    const int d = n - a.distances_behind();
    dw += by_distance(a, x.sums.db_of_distances, h)[d] *
          a.relative.r[(static_cast<int64_t>(d) * a.H + h) * a.D + c];
  }
  sums[thread] = du;
  sums[32 * kRowWarps + thread] = dw;
  device::barrier();
  if (warp != 0 || c >= a.D) return;
  for (int n = 1; n < kRowWarps; ++n) {
    du += sums[32 * n + thread];
    dw += sums[32 * (kRowWarps + n) + thread];
  }
  const float root = 1.0f / sqrtf(static_cast<float>(a.D));
  x.g.du[h * a.D + c] = root * du;
  x.g.dw[h * a.D + c] = root * dw;
}

template <class A>
LaunchStatus content_end(const AttentionBackward<A>& g, const ContentSums& sums, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  if (a.mix.w1 != nullptr) return mix_end(g, sums, stream);
  if (a.relative.r == nullptr) return contextual_end(a, g, sums, stream);
  return device::launch(relative_of_heads<A>,
                        {static_cast<uint32_t>(blocks_of(a.D, 32)), static_cast<uint32_t>(a.H), 1},
                        {32 * kRowWarps, 1, 1}, 0, stream, ContentArguments<A>{a, sums, g});
}

#define BAMTRAIN_CONTENT(A)                                                                     \
  template LaunchStatus content_begin(const AttentionInputs<A>&, const ContentSums&, Stream);   \
  template LaunchStatus content_end(const AttentionBackward<A>&, const ContentSums&, Stream);   \
  template LaunchStatus content_biases_reference(const AttentionInputs<A>&, const ContentSums&, \
                                                 Stream);
BAMTRAIN_CONTENT(float)
BAMTRAIN_CONTENT(bf16)
#undef BAMTRAIN_CONTENT
template LaunchStatus content_gradients_reference(const ContentGradients<float>&, Stream);
template LaunchStatus content_gradients_reference(const ContentGradients<bf16>&, Stream);

}  // namespace bamtrain::kernels
