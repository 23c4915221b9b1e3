#include "ops/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/reference/attention_row.h"
#include "ops/reference/normalizers.h"
#include "ops/reference/place.h"

namespace bamtrain {

namespace {

void bias_adjoint(const AttentionGradients& g, const Attention& a, const LogitPlace& p, double db) {
  std::visit(
      [&]<class B>(const B& bias) {
        bias.adjoint_in_reference(std::get<typename B::Gradients>(g.bias), p, db);
      },
      a.bias);
}

/// Gradients of a row's scores and bias. The adjoints of mix and bias add to ds.
struct RowGradients {
  std::vector<double> ds, db;
};

/// With a mix of heads, turns db into the gradient of the bias itself, and adds to ds the gradients
/// of all scores.
void mix_adjoint(const AttentionGradients& g, const Attention& a,
                 const std::vector<AttentionRow>& heads, std::vector<RowGradients>& of) {
  for (size_t n = 0; a.mix && n < heads[0].s.size(); ++n) {
    OfHeads db;
    for (const RowGradients& row : of) db.push_back(row.db[n]);
    const MixAdjoint to = reference_mix_adjoint(g.mix, a.mix, of_heads(heads, &AttentionRow::s, n),
                                                of_heads(heads, &AttentionRow::B, n), db);
    for (size_t h = 0; h < heads.size(); ++h) {
      of[h].ds[n] += to.dx[h];
      of[h].db[n] = to.dB[h];
    }
  }
}

}  // namespace

void reference_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t group = H / a.k.shape[2], live_words = saved.live ? saved.live.shape[3] : 0;
  if (saved.live) std::fill_n(saved.live.ptr<int32_t>(), saved.live.size(), 0);
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t i = 0; i < T; ++i) {
      const std::vector<AttentionRow> heads = reference_rows(a, batch, i);
      for (int64_t h = 0; h < H; ++h) {
        const AttentionRow& row = heads[static_cast<size_t>(h)];
        const RowWeights w = reference_weights(a, h, row.z);
        double* o = channels_of(out, batch, i, h);
        std::fill_n(o, D, 0.0);
        for (int64_t j = row.first; j <= row.last; ++j) {
          const double p = w.p[static_cast<size_t>(j - row.first)];
          const double* v = channels_of(a.v, batch, j, h / group);
          for (int64_t c = 0; c < D; ++c) o[c] += p * v[c];
        }
        const int64_t at = (batch * H + h) * T + i;
        if (saved.live) {
          int32_t* words = saved.live.ptr<int32_t>() +
                           ((batch * H + h) * live_groups(T) + i / kLiveRows) * live_words;
          for (int64_t j = row.first; j <= row.last; ++j) {
            if (w.p[static_cast<size_t>(j - row.first)] == 0) continue;
            const int64_t tile = j / kLiveKeys;
            words[tile / 32] |= static_cast<int32_t>(uint32_t{1} << (tile % 32));
          }
        }
        if (saved.level) saved.level.ptr<double>()[at] = w.level;
        if (saved.threshold) saved.threshold.ptr<double>()[at] = w.threshold;
        if (saved.last) {
          saved.last.ptr<int32_t>()[at] = static_cast<int32_t>(row.first - a.past() + w.last);
        }
      }
    }
  }
}

void reference_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                                  const AttentionSaved& saved, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t K = a.k.shape[2], group = H / K;
  const double root = 1 / a.content_divisor<double>();
  require(a.past() == 0, "a backward pass over all rows");
  // Uses the saved values, including the rounding of `out`. Not for a mix or biases that read
  // queries and keys: their gradients are sums over rows of dz that sum to zero.
  const bool by_out =
      a.normalizer.form.kind == NormalizerKind::softmax && !a.mix && !reads_content(a.bias);
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t h = 0; h < H; ++h) std::fill_n(channels_of(g.dq, batch, i, h), D, 0.0);
      for (int64_t h = 0; h < K; ++h) std::fill_n(channels_of(g.dk, batch, i, h), D, 0.0);
      for (int64_t h = 0; h < K; ++h) std::fill_n(channels_of(g.dv, batch, i, h), D, 0.0);
    }
  }
  const auto clear = [](const char*, const Tensor& x) {
    std::fill_n(x.ptr<double>(), x.size(), 0.0);
  };
  std::visit([&](const auto& bias) { for_tensors(bias, clear); }, g.bias);
  if (a.mix) for_tensors(g.mix, clear);
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t i = 0; i < T; ++i) {
      const std::vector<AttentionRow> heads = reference_rows(a, batch, i);
      std::vector<RowGradients> of_rows;
      for (int64_t h = 0; h < H; ++h) {
        const AttentionRow& row = heads[static_cast<size_t>(h)];
        const double* d_o = channels_of(dout, batch, i, h);
        const int64_t at = (batch * H + h) * T + i;
        const bool constant =
            row.first == row.last && traits_of(a.normalizer.form.kind).constant_alone();
        std::vector<double> dp;
        for (int64_t j = row.first; j <= row.last; ++j) {
          dp.push_back(dot(d_o, channels_of(a.v, batch, j, h / group), D));
        }
        RowWeights w;
        RowAdjoint adjoint;
        if (by_out) {
          const double D_i = dot(d_o, channels_of(out, batch, i, h), D);
          for (size_t j = 0; j < dp.size(); ++j) {
            w.p.push_back(std::exp(row.z[j] - saved.level.ptr<double>()[at]));
            adjoint.dz.push_back(w.p[j] * (dp[j] - D_i));
          }
        } else {
          w = reference_weights(a, h, row.z);
          adjoint = reference_adjoint(a, h, row.z, w, dp);
        }
        if (g.dalpha) g.dalpha.ptr<double>()[at] = adjoint.dalpha;
        double dt = 0;
        RowGradients& of_row = of_rows.emplace_back();
        for (size_t n = 0; n < row.s.size(); ++n) {
          const double dz = constant ? 0 : adjoint.dz[n];
          dt += dz * (a.scale.on_bias ? row.s[n] + row.b[n] : row.s[n]);
          of_row.ds.push_back(dz * row.t);
          of_row.db.push_back(a.scale.on_bias ? dz * row.t : dz);
          double* dv = channels_of(g.dv, batch, row.first + static_cast<int64_t>(n), h / group);
          for (int64_t c = 0; c < D; ++c) dv[c] += w.p[n] * d_o[c];
        }
        if (a.scale.t) g.dscale.ptr<double>()[at] = dt;
      }
      mix_adjoint(g, a, heads, of_rows);
      for (int64_t h = 0; h < H; ++h) {
        const AttentionRow& row = heads[static_cast<size_t>(h)];
        RowGradients& of_row = of_rows[static_cast<size_t>(h)];
        const double* q = channels_of(a.q, batch, i, h);
        double* dq = channels_of(g.dq, batch, i, h);
        for (int64_t j = row.first; j <= row.last; ++j) {
          bias_adjoint(g, a,
                       {batch, h, i, j, 0, H, T, D, q, channels_of(a.k, batch, j, h / group),
                        row.first, row.s.data(), dq, channels_of(g.dk, batch, j, h / group),
                        of_row.ds.data(), a.causal()},
                       of_row.db[static_cast<size_t>(j - row.first)]);
        }
        for (int64_t j = row.first; j <= row.last; ++j) {
          const double of_score = of_row.ds[static_cast<size_t>(j - row.first)] * root;
          const double* k = channels_of(a.k, batch, j, h / group);
          double* dk = channels_of(g.dk, batch, j, h / group);
          for (int64_t c = 0; c < D; ++c) {
            dq[c] += of_score * k[c];
            dk[c] += of_score * q[c];
          }
        }
      }
    }
  }
}

void reference_attention_entropy(Tensor entropy, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  require(!a.scale.t, "logits without a scale");
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t i = 0; i < T; ++i) {
      const std::vector<AttentionRow> heads = reference_rows(a, batch, i);
      for (int64_t h = 0; h < H; ++h) {
        const AttentionRow& row = heads[static_cast<size_t>(h)];
        const double m = *std::max_element(row.z.begin(), row.z.end());
        double sum = 0, H_i = 0;
        for (double z : row.z) sum += std::exp(z - m);
        for (double z : row.z) {
          const double log_p = z - m - std::log(sum);
          H_i -= std::exp(log_p) * log_p;
        }
        entropy.ptr<double>()[(batch * H + h) * T + i] = H_i;
      }
    }
  }
}

void reference_attention_statistics(Tensor entropy, Tensor nonzero_keys, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  require(a.past() == 0, "all rows");
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t i = 0; i < T; ++i) {
      const std::vector<AttentionRow> heads = reference_rows(a, batch, i);
      for (int64_t h = 0; h < H; ++h) {
        const RowWeights w = reference_weights(a, h, heads[static_cast<size_t>(h)].z);
        const int64_t at = (batch * H + h) * T + i;
        double& H_i = entropy.ptr<double>()[at] = 0;
        for (double p : w.p) H_i -= p == 0 ? 0 : p * std::log(p);
        nonzero_keys.ptr<double>()[at] = static_cast<double>(w.nonzero_keys);
      }
    }
  }
}

}  // namespace bamtrain
