#include "ops/reference/attention.h"

#include <cmath>
#include <vector>

#include "ops/reference/attention_row.h"
#include "ops/reference/normalizers.h"

namespace bamtrain {

using reference::clear;
using reference::f64;

namespace {

/// Calls f(row, z, at) for every row of every head; z: its logits; at: its index in (B, H, T).
template <class F>
void for_rows(const Attention& a, F&& f) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1];
  for (int64_t n = 0; n < B * T; ++n) {
    for (const AttentionRow& row : reference_rows(a, n / T, n % T)) {
      f(row, values_of(row.z), (row.batch * row.H + row.h) * T + row.i);
    }
  }
}

double entropy_of(const RowWeights& w) {
  double entropy = 0;
  for (double p : w.p) entropy -= p == 0 ? 0 : p * std::log(p);
  return entropy;
}

}  // namespace

void ReferenceAttention::attention_forward(Tensor out, const AttentionSaved& saved,
                                           const Attention& a) {
  const int64_t T = a.q.shape[1], D = a.q.shape[3], group = a.q.shape[2] / a.k.shape[2];
  clear(out);
  const bool live = saved.live && a.past() == 0;  // for a backward pass over all rows
  if (live) std::fill_n(saved.live.ptr<int32_t>(), saved.live.size(), 0);
  for_rows(a, [&](const AttentionRow& row, const std::vector<double>& z, int64_t at) {
    const RowWeights w = reference_weights(a, row.h, z);
    double* o = channels_of(out, row.batch, row.i, row.h);
    for (int64_t j = row.first; j <= row.last; ++j) {
      const double p = w.p[static_cast<size_t>(j - row.first)];
      const double* v = channels_of(a.v, row.batch, j, row.h / group);
      for (int64_t c = 0; c < D; ++c) o[c] += p * v[c];
      if (!live || p == 0) continue;
      const int64_t head = row.batch * row.H + row.h, tile = j / kLiveKeys;
      saved.live.ptr<int32_t>()[(head * live_groups(T) + row.i / kLiveRows) * saved.live.shape[3] +
                                tile / 32] |= static_cast<int32_t>(uint32_t{1} << (tile % 32));
    }
    if (saved.level) f64(saved.level)[at] = w.level;
    if (saved.threshold) f64(saved.threshold)[at] = w.threshold;
    if (saved.last) {
      saved.last.ptr<int32_t>()[at] = static_cast<int32_t>(row.first - a.past() + w.last);
    }
  });
}

void ReferenceAttention::attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                                            const AttentionSaved& saved, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t group = H / a.k.shape[2];
  require(a.past() == 0, "a backward pass over all rows");
  // Uses the saved values, including the rounding of `out`. Not for a mix or biases that read
  // queries and keys: their gradients are sums over rows of dz that sum to zero.
  const bool by_out =
      a.form.normalizer.kind == NormalizerKind::softmax && !a.mix && !reads_content(a.bias);
  for_tensors(g, [](const char*, const Tensor& x) {
    if (x) clear(x);
  });
  reference::Tape tape;
  for (int64_t n = 0; n < B * T; ++n) {
    const int64_t batch = n / T, i = n % T;
    const std::vector<AttentionRow> heads = reference_rows(a, batch, i, &tape, g);
    for (const AttentionRow& row : heads) {
      const int64_t h = row.h, at = (batch * H + h) * T + i;
      const double* d_o = channels_of(dout, batch, i, h);
      const std::vector<double> z = values_of(row.z);
      std::vector<double> dp;
      for (int64_t j = row.first; j <= row.last; ++j) {
        dp.push_back(dot(d_o, channels_of(a.v, batch, j, h / group), D));
      }
      RowWeights w;
      RowAdjoint adjoint;
      if (by_out) {
        const double D_i = dot(d_o, channels_of(out, batch, i, h), D);
        for (size_t j = 0; j < z.size(); ++j) {
          w.p.push_back(std::exp(z[j] - f64(saved.level)[at]));
          adjoint.dz.push_back(w.p[j] * (dp[j] - D_i));
        }
      } else {
        w = reference_weights(a, h, z);
        adjoint = reference_adjoint(a, h, z, w, dp);
      }
      if (g.dalpha) f64(g.dalpha)[at] = adjoint.dalpha;
      const bool constant = z.size() == 1 && traits_of(a.form.normalizer.kind).constant_alone();
      for (size_t j = 0; j < z.size(); ++j) {
        if (!constant) tape.seed(row.z[j], adjoint.dz[j]);
        double* dv = channels_of(g.dv, batch, row.first + static_cast<int64_t>(j), h / group);
        for (int64_t c = 0; c < D; ++c) dv[c] += w.p[j] * d_o[c];
      }
    }
    tape.backward();
  }
}

void ReferenceAttention::attention_entropy(Tensor entropy, const Attention& a) {
  require(!a.scale, "logits without a scale");
  Attention softmax = a;
  softmax.form.normalizer = {};
  softmax.alphas = {};
  for_rows(a, [&](const AttentionRow& row, const std::vector<double>& z, int64_t at) {
    f64(entropy)[at] = entropy_of(reference_weights(softmax, row.h, z));
  });
}

void ReferenceAttention::attention_statistics(Tensor entropy, Tensor nonzero_keys,
                                              const AttentionSaved&, const Attention& a) {
  require(a.past() == 0, "all rows");
  for_rows(a, [&](const AttentionRow& row, const std::vector<double>& z, int64_t at) {
    const RowWeights w = reference_weights(a, row.h, z);
    f64(entropy)[at] = entropy_of(w);
    f64(nonzero_keys)[at] = static_cast<double>(w.nonzero_keys);
  });
}

}  // namespace bamtrain
