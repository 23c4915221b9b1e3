#include "ops/reference/attention_row.h"

#include <variant>

namespace bamtrain {

using namespace reference;

namespace {

/// s, t and B of a head.
AttentionRow row_of_head(const Attention& a, int64_t batch, int64_t h, int64_t i, Tape* tape,
                         const AttentionGradients& g) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t kh = h / (H / a.k.shape[2]), token = batch * T + i, at = (batch * H + h) * T + i;
  const auto channels = [&](const Tensor& x, const Tensor& dx, int64_t t, int64_t head) {
    return Array{channels_of(x, batch, t, head), tape ? channels_of(dx, batch, t, head) : nullptr};
  };
  AttentionRow row = {batch,
                      i,
                      h,
                      a.past(),
                      H,
                      T,
                      D,
                      a.causal(),
                      tape,
                      channels(a.q, g.dq, i, h),
                      channels(a.k, g.dk, 0, kh),
                      a.k.stride[1]};
  row.first = a.past() + i32(a.first_key)[token];
  row.last = a.past() + (a.last_key ? i32(a.last_key)[token] : i);
  if (a.scale) row.t = element(tape, a.scale, at, g.dscale, at);
  row.s = row.by_key(
      [&](int64_t j) { return row.dot(row.q, row.key(j)) / a.content_divisor<double>(); });
  std::visit(
      [&]<class Bias>(const Bias& bias) {
        using Gradients = typename Bias::Gradients;
        row.B = bias.in_reference(row, tape ? std::get<Gradients>(g.bias) : Gradients());
      },
      a.bias);
  return row;
}

/// HeadMix: the biases of all heads that replace B at a key, from their scores x.
Vars mixed(const HeadMix& mix, MixForm form, Tape* tape, const HeadMixGradients& g, const Vars& x,
           const Vars& B) {
  const auto H = static_cast<int64_t>(x.size());
  Vars u, hidden, b;
  switch (form) {
    case MixForm::concat:
    case MixForm::concat_residual:
      u = x;
      u.insert(u.end(), B.begin(), B.end());
      break;
    case MixForm::add_residual:
      for (size_t h = 0; h < x.size(); ++h) u.push_back(x[h] + B[h]);
      break;
    case MixForm::bias_only:
      u = B;
      break;
  }
  const auto layer = [tape](const Tensor& w, const Tensor& c, const Tensor& dw, const Tensor& dc,
                            int64_t row, const Vars& in) {
    const auto n = static_cast<int64_t>(in.size());
    return element(tape, c, row, dc, row) + dot(tape, array(tape, w, row * n, dw, row * n), in);
  };
  for (int64_t k = 0; k < mix.hidden(); ++k) {
    const Var v = layer(mix.w1, mix.c1, g.w1, g.c1, k, u);
    hidden.push_back(v.x > 0 ? v : 0.01 * v);
  }
  for (int64_t h = 0; h < H; ++h) {
    const Var f = layer(mix.w2, mix.c2, g.w2, g.c2, h, hidden);
    b.push_back(form == MixForm::concat ? f : B[static_cast<size_t>(h)] + f);
  }
  return b;
}

}  // namespace

std::vector<AttentionRow> reference_rows(const Attention& a, int64_t batch, int64_t i, Tape* tape,
                                         const AttentionGradients& g) {
  std::vector<AttentionRow> heads;
  heads.reserve(static_cast<size_t>(a.q.shape[2]));
  for (int64_t h = 0; h < a.q.shape[2]; ++h) {
    heads.push_back(row_of_head(a, batch, h, i, tape, g));
    if (a.mix) heads.back().b.resize(heads.back().B.size());
  }
  for (size_t n = 0; a.mix && n < heads[0].s.size(); ++n) {
    Vars x, B;
    for (const AttentionRow& row : heads) {
      x.push_back(row.s[n]);
      B.push_back(row.B[n]);
    }
    const Vars b = mixed(a.mix, *a.form.mix, tape, g.mix, x, B);
    for (size_t h = 0; h < heads.size(); ++h) heads[h].b[n] = b[h];
  }
  for (AttentionRow& row : heads) {
    row.z = row.by_key([&](int64_t j) {
      const auto n = static_cast<size_t>(j - row.first);
      const Var &s = row.s[n], &b = row.added()[n];
      return a.form.scale_bias ? row.t * (s + b) : row.t * s + b;
    });
  }
  return heads;
}

Vars Nothing::in_reference(const AttentionRow& row, const Nothing&) const {
  return Vars(row.s.size());
}

std::vector<double> values_of(const Vars& vars) {
  std::vector<double> x(vars.size());
  std::transform(vars.begin(), vars.end(), x.begin(), [](const Var& v) { return v.x; });
  return x;
}

}  // namespace bamtrain
