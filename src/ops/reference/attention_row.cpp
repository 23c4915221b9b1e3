#include "ops/reference/attention_row.h"

#include "ops/reference/place.h"

namespace bamtrain {

namespace {

/// b of a row and a key, for the kind of bias that `a` has.
double bias_at(const Attention& a, const LogitPlace& p) {
  return std::visit([&p](const auto& bias) { return bias.in_reference(p); }, a.bias);
}

/// Everything except the mix and the logits.
AttentionRow row_of_head(const Attention& a, int64_t batch, int64_t h, int64_t i) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = h / (H / a.k.shape[2]);
  AttentionRow row;
  row.first = a.past() + a.first_key.ptr<int32_t>()[batch * T + i];
  row.last = a.past() + (a.last_key ? a.last_key.ptr<int32_t>()[batch * T + i] : i);
  if (a.scale.t) row.t = a.scale.t.ptr<double>()[(batch * H + h) * T + i];
  const double* const q = channels_of(a.q, batch, i, h);
  for (int64_t j = row.first; j <= row.last; ++j) {
    row.s.push_back(dot(q, channels_of(a.k, batch, j, kh), D) / a.content_divisor<double>());
  }
  for (int64_t j = row.first; j <= row.last; ++j) {
    const double* const k = channels_of(a.k, batch, j, kh);
    LogitPlace p = {batch, h, i, j, a.past(), H, T, D, q, k, row.first, row.s.data()};
    p.causal = a.causal();
    row.B.push_back(bias_at(a, p));
  }
  row.b = row.B;
  return row;
}

}  // namespace

OfHeads of_heads(const std::vector<AttentionRow>& heads, std::vector<double> AttentionRow::*member,
                 size_t n) {
  OfHeads out;
  for (const AttentionRow& row : heads) out.push_back((row.*member)[n]);
  return out;
}

std::vector<AttentionRow> reference_rows(const Attention& a, int64_t batch, int64_t i) {
  std::vector<AttentionRow> heads;
  for (int64_t h = 0; h < a.q.shape[2]; ++h) heads.push_back(row_of_head(a, batch, h, i));
  for (size_t n = 0; a.mix && n < heads[0].s.size(); ++n) {
    const OfHeads b = reference_mix(a.mix, of_heads(heads, &AttentionRow::s, n),
                                    of_heads(heads, &AttentionRow::B, n));
    for (size_t h = 0; h < heads.size(); ++h) heads[h].b[n] = b[h];
  }
  for (AttentionRow& row : heads) {
    for (size_t n = 0; n < row.s.size(); ++n) {
      row.z.push_back(a.scale.on_bias ? row.t * (row.s[n] + row.b[n])
                                      : row.t * row.s[n] + row.b[n]);
    }
  }
  return heads;
}

}  // namespace bamtrain
