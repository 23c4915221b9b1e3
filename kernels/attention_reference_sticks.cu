// Stick-breaking in plain loops. Forward a warp owns a row. Backward a block owns a key head, of
// all sequences, and takes one row after another: a row's weights and dz follow from each other
// along the whole row, and what it gives to keys, distances and segments is added at once.

#include "attention_reference.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kStickThreads = 256;

}  // namespace

BAMTRAIN_KERNEL attention_reference_sticks(AttentionForward<float> f) {
  const AttentionInputs<float>& a = f.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;
  const int i = own.t, first = first_of(a, own.b, i);
  float out[kRowColumns] = {};
  break_stick(
      first, i, own.lane, [&](int j) { return logit_of(a, own.b, own.h, i, j).z; },
      [&](int j0, int, float, float p) {
        for (int n = 0; n < 32 && j0 - n >= first; ++n) {
          const float weight = device::shuffle(device::kWholeWarp, p, n);
          add_row(out, weight, at(a.v, own.b, j0 - n, own.h / (a.H / a.K)), a.D, own.lane);
        }
      });
  store_row(at(f.out, own.b, i, own.h), 1.0f, out, a.D, own.lane);
}

LaunchStatus attention_reference_sticks_forward(const AttentionForward<float>& f, Stream stream) {
  return launch_rows(attention_reference_sticks, f, f.in.queries(), f.in.H, f.in.B, stream);
}

// --- backward -----------------------------------------------------------------------------------

namespace {

/// Row i of head h of sequence b, and what a block keeps of it.
struct StickRow {
  int b, h, kh, i, first, thread;
  float *p, *share, *dz;  // (T), by key: p was z before, dz was dP

  BAMTRAIN_DEVICE void form_products(const AttentionBackward<float>& g) const {
    for (int j = first + thread; j < i; j += kStickThreads) {
      p[j] = logit_of(g.in, b, h, i, j).z;
      dz[j] = dot(at(g.dout, b, i, h), at(g.in.v, b, j, kh), g.in.D);
    }
  }
  /// By the first warp: dz = p dP (1 - share) - share sum of p dP over the keys before.
  BAMTRAIN_DEVICE void form_gradients() const {
    break_stick(
        first, i, thread, [&](int j) { return p[j]; },
        [&](int, int j, float of_key, float weight) {
          if (j < first) return;
          p[j] = weight;
          share[j] = of_key;
        });
    device::sync_warp();
    float before = 0;
    for (int j0 = first; j0 < i; j0 += 32) {
      const int j = j0 + thread;
      const float gained = j < i ? p[j] * dz[j] : 0.0f;
      const float sum = sum_up_to(gained, thread);
      if (j < i) dz[j] = gained * (1.0f - share[j]) - share[j] * (before + (sum - gained));
      before += device::shuffle(device::kWholeWarp, sum, 31);
    }
  }
  /// What belongs to keys and to distances. A thread owns its keys of this row; a barrier lies
  /// between rows.
  BAMTRAIN_DEVICE void add_to_keys(const AttentionBackward<float>& g) const {
    const AttentionInputs<float>& a = g.in;
    const float root = 1.0f / a.content_divisor;
    const float *const query = at(a.q, b, i, h), *const dout = at(g.dout, b, i, h);
    if (a.formed.b != nullptr) {
      const int64_t row = a.formed.row(static_cast<int64_t>(b) * a.H + h, i);
      for (int j = first + thread; j <= i; j += kStickThreads) {
        a.formed.p[row + j] = j < i ? p[j] : 0.0f;
        a.formed.b[row + j] = j < i ? dz[j] : 0.0f;
      }
    }
    for (int j = first + thread; j < i; j += kStickThreads) {
      float *const dk = at(g.dk, b, j, kh), *const dv = at(g.dv, b, j, kh);
      for (int c = 0; c < a.D; ++c) {
        dk[c] += root * dz[j] * query[c];
        dv[c] += p[j] * dout[c];
      }
      if (a.table != nullptr) g.dtable[h * g.dtable_head + i - j] += dz[j];
      if (a.numbers != nullptr) {
        g.dnumbers[row_of(a, b, h, j)] += dz[j] * bias_of(a, b, h, i, j).of_key;
      }
    }
  }
  /// What belongs to the query: a column or a segment per thread, or all by the first.
  BAMTRAIN_DEVICE void add_to_query(const AttentionBackward<float>& g) const {
    const AttentionInputs<float>& a = g.in;
    for (int c = thread; c < a.D; c += kStickThreads) {
      float sum = 0;
      for (int j = first; j < i; ++j) sum += dz[j] * at(a.k, b, j, kh)[c];
      at(g.dq, b, i, h)[c] = sum / a.content_divisor;
    }
    if (a.fire.psi != nullptr && thread < kFireSegments) add_to_fire(g);
    if (thread != 0) return;
    QueryBias bias;
    for (int j = first; j < i; ++j) {
      bias.add(a, BiasGradient(bias_of(a, b, h, i, j), dz[j]), i, j);
    }
    bias.store(a, g, row_of(a, b, h, i), true);
  }

 private:
  BAMTRAIN_DEVICE void add_to_fire(const AttentionBackward<float>& g) const {
    const AttentionInputs<float>& a = g.in;
    const int64_t position = a.fire.positions[static_cast<int64_t>(b) * a.T + i];
    const int32_t* const ends = a.fire.ends + position * kFireHidden;
    const int begin = thread == 0 ? 0 : ends[thread - 1];
    const int end = thread == kFireHidden ? a.T : ends[thread];
    double* const to = g.dfire + h * int64_t{kFirePartial} + 2 * thread;
    for (int j = first; j < i; ++j) {
      if (i - j < begin || i - j >= end) continue;
      to[0] += static_cast<double>(dz[j]);
      to[1] += static_cast<double>(dz[j] * bias_of(a, b, h, i, j).u);
    }
  }
};

}  // namespace

/// Of all queries, or of those whose bias was formed, which leaves their weights and dz in its
/// place. Launch with K blocks of kStickThreads threads. `carries` holds three rows of T floats of
/// each.
BAMTRAIN_KERNEL attention_reference_sticks_gradients(AttentionBackward<float> g) {
  const AttentionInputs<float>& a = g.in;
  const int thread = static_cast<int>(device::thread_index().x), group = a.H / a.K;
  StickRow row;
  row.kh = static_cast<int>(device::block_index().x);
  row.thread = thread;
  row.p = g.carries + int64_t{3} * row.kh * a.T;
  row.share = row.p + a.T;
  row.dz = row.share + a.T;
  for (int h = row.kh * group; h < (row.kh + 1) * group; ++h) {
    for (int d = thread; a.table != nullptr && d < a.T; d += kStickThreads) {
      g.dtable[h * g.dtable_head + d] = 0;
    }
    if (a.fire.psi != nullptr && thread < kFirePartial) {
      g.dfire[h * int64_t{kFirePartial} + thread] = 0;
    }
  }
  for (row.b = 0; row.b < a.B; ++row.b) {
    for (int j = thread; j < a.T; j += kStickThreads) {
      for (int c = 0; c < a.D; ++c) {
        at(g.dk, row.b, j, row.kh)[c] = 0;
        at(g.dv, row.b, j, row.kh)[c] = 0;
      }
      for (int h = row.kh * group; a.numbers != nullptr && h < (row.kh + 1) * group; ++h) {
        g.dnumbers[row_of(a, row.b, h, j)] = 0;
      }
    }
    for (row.h = row.kh * group; row.h < (row.kh + 1) * group; ++row.h) {
      for (row.i = a.formed.first; row.i < a.end_of_queries(); ++row.i) {
        row.first = first_of(a, row.b, row.i);
        device::barrier();
        row.form_products(g);
        device::barrier();
        if (thread < 32) row.form_gradients();
        device::barrier();
        row.add_to_keys(g);
        device::barrier();
        row.add_to_query(g);
      }
    }
    device::barrier();
  }
}

LaunchStatus attention_reference_sticks_backward(const AttentionBackward<float>& g, Stream stream) {
  if (g.carries == nullptr) return device::refused("attention: stick-breaking without carries");
  return device::launch(attention_reference_sticks_gradients, grid_of(g.in.K),
                        {kStickThreads, 1, 1}, 0, stream, g);
}

}  // namespace bamtrain::kernels
