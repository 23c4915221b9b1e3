// A warp owns a row of an output: its lanes divide the other rows among themselves, then the
// columns of the sum, one row after another. Nothing is kept between rows, nothing is tiled.
// Stick-breaking is in attention_reference_sticks.cu.

#include "attention_content.h"
#include "attention_reference.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

/// RowSums::factor of each row, which lies behind D.
template <class A>
BAMTRAIN_DEVICE float* factors_of(const AttentionBackward<A>& g) {
  return g.row_product + static_cast<int64_t>(g.in.B) * g.in.H * g.in.T;
}

/// Whether D is that of sums over the row, and not <dO, out>: of normalizers with a threshold; and
/// where out is rounded to bf16, which what is summed over rows of dz would keep.
template <class A>
BAMTRAIN_HD bool by_sums(const AttentionInputs<A>& a) {
  return !traits_of(a.normalizer.kind).of_level() || !std::is_same_v<A, float>;
}

/// What the backward pass needs of a query and a key that it sees: p, the gradients with respect
/// to z, s, b and t, and what that of b gives back.
struct Gradient {
  float p, dz, ds, db, dt;
  BiasGradient bias;
};

template <class A>
BAMTRAIN_DEVICE Gradient gradient_of(const AttentionBackward<A>& g, int b, int h, int i, int j) {
  const AttentionInputs<A>& a = g.in;
  const NormalizerTraits traits = traits_of(a.normalizer.kind);
  const bool alone = first_of(a, b, i) == last_of(a, b, i) && traits.constant_alone();
  const int64_t row = row_of(a, b, h, i);
  const Logit l = logit_of(a, b, h, i, j);
  const float dp = dot(at(g.dout, b, i, h), at(a.v, b, j, h / (a.H / a.K)), a.D);
  const Weight w = weight_of(a.normalizer, RowWeights(a.normalizer, g.saved, h, row), h, l.z, j);
  Gradient x;
  x.p = alone ? 1.0f : w.p;
  if (!alone && by_sums(a)) x.p *= factors_of(g)[row];
  const float dz = alone ? 0.0f : w.u * (dp - g.row_product[row]);
  x.dz = dz;
  x.ds = l.t * dz;
  x.db = a.scale_bias ? l.t * dz : dz;
  x.dt = a.scale_bias ? dz * (l.s + l.bias.b) : dz * l.s;
  x.bias = BiasGradient(l.bias, x.db);
  return x;
}

constexpr const char* kNoSticks = "attention: plain loops of stick-breaking are fp32 alone";

const char* reference_refusal(int D, const char* common) {
  if (common != nullptr) return common;
  return D < 1 || D > kReferenceLongestRow ? "attention: the head dimension is not in 1 .. 256"
                                           : nullptr;
}

}  // namespace

// --- forward ------------------------------------------------------------------------------------

/// out and lse: the largest logit of the row, then exp(z - largest) and its sums.
template <class A>
BAMTRAIN_KERNEL attention_reference_rows(AttentionForward<A> f) {
  const AttentionInputs<A>& a = f.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;  // the whole warp
  const int i = own.t, first = first_of(a, own.b, i), last = last_of(a, own.b, i);
  float largest = -INFINITY;
  for (int j = first + own.lane; j <= last; j += 32) {
    largest = fmaxf(largest, logit_of(a, own.b, own.h, i, j).z);
  }
  largest = warp_max(largest);
  float sum = 0, out[kRowColumns] = {};
  for (int j0 = first; j0 <= last; j0 += 32) {
    const int j = j0 + own.lane;
    const float p = j <= last ? expf(logit_of(a, own.b, own.h, i, j).z - largest) : 0.0f;
    sum += p;
    for (int n = 0; n < 32 && j0 + n <= last; ++n) {
      const float weight = device::shuffle(device::kWholeWarp, p, n);
      add_row(out, weight, at(a.v, own.b, j0 + n, own.h / (a.H / a.K)), a.D, own.lane);
    }
  }
  sum = warp_sum(sum);
  store_row(at(f.out, own.b, i, own.h), 1.0f / sum, out, a.D, own.lane);
  if (own.lane == 0) f.saved.level[row_of(a, own.b, own.h, i)] = largest + logf(sum);
}

/// The same of any normalizer but stick-breaking: by passes over the row.
template <class A>
BAMTRAIN_KERNEL attention_reference_searched(AttentionForward<A> f) {
  const AttentionInputs<A>& a = f.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;
  const int i = own.t, first = first_of(a, own.b, i), last = last_of(a, own.b, i);
  const int64_t row = row_of(a, own.b, own.h, i);
  Selection selection;
  RowSearch search(a.normalizer, weight_form(a.normalizer, own.h), own.h, last, last - first + 1,
                   a.T, &selection);
  for (int passes = 1; !search.done(); ++passes) {
    pass_over(search, weight_form(a.normalizer, own.h), passes, [&](const auto& add) {
      for (int j = first + own.lane; j <= last; j += 32) {
        add(logit_of(a, own.b, own.h, i, j).z, j);
      }
    });
  }
  const RowWeights weights = search.weights();
  const NormalizerTraits traits = traits_of(a.normalizer.kind);
  float smallest = INFINITY;  // of the logits that topk keeps
  float sum = 0, out[kRowColumns] = {};
  for (int j0 = first; j0 <= last; j0 += 32) {
    const int j = j0 + own.lane;
    float p = 0;
    if (j <= last) {
      const float z = logit_of(a, own.b, own.h, i, j).z;
      p = weight_of(a.normalizer, weights, own.h, z, j).p;
      if (traits.last && !weights.drops(z, j)) smallest = fminf(smallest, z);
    }
    sum += p;
    for (int n = 0; n < 32 && j0 + n <= last; ++n) {
      const float weight = device::shuffle(device::kWholeWarp, p, n);
      add_row(out, weight, at(a.v, own.b, j0 + n, own.h / (a.H / a.K)), a.D, own.lane);
    }
  }
  sum = warp_sum(sum);
  const WeightForm form = weight_form(a.normalizer, own.h);
  store_row(at(f.out, own.b, i, own.h), weights.factor_of(form, sum), out, a.D, own.lane);
  smallest = -warp_max(-smallest);
  if (own.lane != 0) return;
  f.saved.level[row] = weights.level_of(form, sum);
  if (traits.threshold) {
    f.saved.threshold[row] = traits.last ? weights.nan_or(smallest) : search.threshold;
  }
  if (traits.last) f.saved.last[row] = weights.last();
}

namespace {

/// Of all queries, or of those whose bias was formed.
template <class A>
LaunchStatus forward(const AttentionForward<A>& f, Stream stream) {
  const AttentionInputs<A>& a = f.in;
  if (a.normalizer.kind == NormalizerKind::stick_breaking) {
    if constexpr (std::is_same_v<A, float>) return attention_reference_sticks_forward(f, stream);
    return device::refused(kNoSticks);
  }
  const bool softmax = a.normalizer.kind == NormalizerKind::softmax;
  return launch_rows(softmax ? attention_reference_rows<A> : attention_reference_searched<A>, f,
                     a.queries(), a.H, a.B, stream);
}

}  // namespace

template <class A>
LaunchStatus attention_reference_forward(const AttentionForward<A>& f, Stream stream) {
  const AttentionInputs<A>& a = f.in;
  if (const char* why = reference_refusal(a.D, refusal(f))) return device::refused(why);
  if (!reads_content(a)) return forward(f, stream);
  return with_content(a, stream, content_biases_reference<A>,
                      [&](const AttentionInputs<A>& of, const QueryPart& part) {
                        return forward(of_part(f, of, part), stream);
                      });
}

// --- backward -----------------------------------------------------------------------------------

/// row_product: <dO_i, O_i>.
BAMTRAIN_KERNEL attention_reference_products(AttentionBackward<float> g) {
  const OwnRow own(g.in.formed.first);
  if (own.t >= g.in.end_of_queries()) return;
  const float* out = at(g.out, own.b, own.t, own.h);
  const float* dout = at(g.dout, own.b, own.t, own.h);
  float sum = 0;
  for (int c = own.lane; c < g.in.D; c += 32) sum += out[c] * dout[c];
  sum = warp_sum(sum);
  if (own.lane == 0) g.row_product[row_of(g.in, own.b, own.h, own.t)] = sum;
}

/// row_product: D, of normalizers with a threshold; and the row's factor and dalpha.
template <class A>
BAMTRAIN_KERNEL attention_reference_centres(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;
  const int i = own.t, first = first_of(a, own.b, i), last = last_of(a, own.b, i);
  const int64_t row = row_of(a, own.b, own.h, i);
  const RowWeights weights(a.normalizer, g.saved, own.h, row);
  RowSums sums;
  for (int j = first + own.lane; j <= last; j += 32) {
    const float z = logit_of(a, own.b, own.h, i, j).z;
    const A* const value = at(a.v, own.b, j, own.h / (a.H / a.K));
    sums.add<true>(weight_of(a.normalizer, weights, own.h, z, j),
                   dot(at(g.dout, own.b, i, own.h), value, a.D),
                   g.dalpha != nullptr ? weights.a : 0.0f);
  }
  sums.template join<32>();
  if (own.lane != 0) return;
  const float factor = sums.factor(weight_form(a.normalizer, own.h), weights.a);
  g.row_product[row] = sums.centre();
  factors_of(g)[row] = factor;
  if (g.dalpha != nullptr) g.dalpha[row] = first == last ? 0.0f : sums.dalpha(weights.a, factor);
}

/// dq, dscale and what the bias gives to a query.
template <class A>
BAMTRAIN_KERNEL attention_reference_queries(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;
  const int i = own.t, last = last_of(a, own.b, i);
  float dt = 0, dq[kRowColumns] = {};
  QueryBias bias;
  for (int j0 = first_of(a, own.b, i); j0 <= last; j0 += 32) {
    const int j = j0 + own.lane;
    Gradient x = {};
    if (j <= last) x = gradient_of(g, own.b, own.h, i, j);
    dt += x.dt;
    if (j <= last) bias.add(a, x.bias, i, j);
    for (int n = 0; n < 32 && j0 + n <= last; ++n) {
      const float weight = device::shuffle(device::kWholeWarp, x.ds, n);
      add_row(dq, weight, at(a.k, own.b, j0 + n, own.h / (a.H / a.K)), a.D, own.lane);
    }
  }
  dt = warp_sum(dt);
  bias.join();
  store_row(at(g.dq, own.b, i, own.h), 1.0f / a.content_divisor, dq, a.D, own.lane);
  if (own.lane != 0) return;
  if (a.scale != nullptr) g.dscale[row_of(a, own.b, own.h, i)] = dt;
  bias.store(a, g, row_of(a, own.b, own.h, i), false);
}

/// The weights and dz of the queries whose bias was formed, in its place.
template <class A>
BAMTRAIN_KERNEL attention_reference_formed(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;
  const int i = own.t, last = last_of(a, own.b, i);
  const int64_t row = a.formed.row(static_cast<int64_t>(own.b) * a.H + own.h, i);
  for (int j = first_of(a, own.b, i) + own.lane; j <= last; j += 32) {
    const Gradient x = gradient_of(g, own.b, own.h, i, j);
    a.formed.p[row + j] = x.p;
    a.formed.b[row + j] = x.dz;
  }
}

/// dk and dv of a key, over all the query heads that read it; the key's part is added to dnumbers
/// of each, which has the queries'.
template <class A>
BAMTRAIN_KERNEL attention_reference_keys(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const int j = own.t, group = a.H / a.K;
  float dk[kRowColumns] = {}, dv[kRowColumns] = {};
  for (int h = own.h * group; h < (own.h + 1) * group; ++h) {
    float to_key = 0;
    FireSums of_fire;  // of queries before the key
    // First keys never fall: the queries that see this key follow one another.
    for (int i0 = first_query(a, own.b, j); i0 < a.T && first_of(a, own.b, i0) <= j; i0 += 32) {
      const int i = i0 + own.lane;
      Gradient x = {};
      if (i < a.T && first_of(a, own.b, i) <= j) x = gradient_of(g, own.b, h, i, j);
      to_key += x.bias.to_key;
      if (i < j) of_fire.add(a, x.bias, j - i);
      for (int n = 0; n < 32 && i0 + n < a.T; ++n) {
        const float to_k = device::shuffle(device::kWholeWarp, x.ds, n);
        const float to_v = device::shuffle(device::kWholeWarp, x.p, n);
        add_row(dk, to_k, at(a.q, own.b, i0 + n, h), a.D, own.lane);
        add_row(dv, to_v, at(g.dout, own.b, i0 + n, h), a.D, own.lane);
      }
    }
    to_key = warp_sum(to_key);
    of_fire.join();
    if (own.lane != 0) continue;
    if (a.numbers != nullptr) g.dnumbers[row_of(a, own.b, h, j)] += to_key;
    if (a.causal || a.fire.psi == nullptr) continue;
    g.dfire_u[row_of(a, own.b, h, j)] += of_fire.of_u;
    g.dfire_psi[row_of(a, own.b, h, j)] += of_fire.of_psi;
  }
  store_row(at(g.dk, own.b, j, own.h), 1.0f / a.content_divisor, dk, a.D, own.lane);
  store_row(at(g.dv, own.b, j, own.h), 1.0f, dv, a.D, own.lane);
}

/// dtable at a distance of a head: along the diagonals of all sequences. Launch with B = 1 and
/// distances as rows.
template <class A>
BAMTRAIN_KERNEL attention_reference_diagonals(AttentionBackward<A> g) {
  const AttentionInputs<A>& a = g.in;
  const OwnRow own;
  if (own.t >= a.distances()) return;
  const int d = own.t - a.distances_behind();
  float sum = 0;
  for (int b = 0; b < a.B; ++b) {
    for (int i = (d > 0 ? d : 0) + own.lane; i < a.T; i += 32) {
      const bool sees = first_of(a, b, i) <= i - d && i - d <= last_of(a, b, i);
      if (sees) sum += gradient_of(g, b, own.h, i, i - d).db;
    }
  }
  sum = warp_sum(sum);
  if (own.lane == 0) g.dtable[own.h * g.dtable_head + d] = sum;
}

/// dfire of a head and a segment: over the distances of each query that lie in it, and of each key.
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
        const auto add = [&](const Gradient& x) {
          of_one += static_cast<double>(x.db);
          of_u += static_cast<double>(x.db * x.bias.u);
        };
        add(gradient_of(g, b, own.h, i, i - d));
        if (!a.causal && d > 0) add(gradient_of(g, b, own.h, i - d, i));  // which see each other
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

namespace {

/// What belongs to queries, and in place of the rest the weights and dz where the bias was formed.
template <class A>
LaunchStatus backward(const AttentionBackward<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  if (a.normalizer.kind == NormalizerKind::stick_breaking) {
    if constexpr (std::is_same_v<A, float>) return attention_reference_sticks_backward(g, stream);
    return device::refused(kNoSticks);
  }
  const auto launch_queries = [&](void (*kernel)(AttentionBackward<A>)) {
    return launch_rows(kernel, g, a.queries(), a.H, a.B, stream);
  };
  void (*centres)(AttentionBackward<A>) = attention_reference_centres<A>;
  if constexpr (std::is_same_v<A, float>) {
    if (!by_sums(a)) centres = attention_reference_products;
  }
  LaunchStatus status = launch_queries(centres);
  if (status.ok()) status = launch_queries(attention_reference_queries<A>);
  if (!status.ok() || a.formed.b != nullptr) {
    return status.ok() ? launch_queries(attention_reference_formed<A>) : status;
  }
  status = launch_rows(attention_reference_keys<A>, g, a.T, a.K, a.B, stream);
  if (status.ok() && a.table != nullptr) {
    status = launch_rows(attention_reference_diagonals<A>, g, a.distances(), a.H, 1, stream);
  }
  if (status.ok() && a.fire.psi != nullptr) {
    status = launch_rows(attention_reference_segments<A>, g, kFireSegments, a.H, 1, stream);
  }
  return status;
}

}  // namespace

template <class A>
LaunchStatus attention_reference_backward(const AttentionBackward<A>& g, Stream stream) {
  const AttentionInputs<A>& a = g.in;
  if (const char* why = reference_refusal(a.D, refusal(g))) return device::refused(why);
  if (!reads_content(a)) return backward(g, stream);
  return backward_with_content(
      g, stream, content_biases_reference<A>,
      [&](const AttentionBackward<A>& of) { return backward(of, stream); },
      [&](const ContentGradients<A>& of) { return content_gradients_reference(of, stream); });
}

template LaunchStatus attention_reference_forward(const AttentionForward<float>&, Stream);
template LaunchStatus attention_reference_forward(const AttentionForward<bf16>&, Stream);
template LaunchStatus attention_reference_backward(const AttentionBackward<float>&, Stream);
template LaunchStatus attention_reference_backward(const AttentionBackward<bf16>&, Stream);

}  // namespace bamtrain::kernels
