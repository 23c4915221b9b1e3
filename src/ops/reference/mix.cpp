#include "ops/reference/mix.h"

#include "ops/reference/autodiff.h"

namespace bamtrain {

using reference::f64;

namespace {

constexpr double kSlope = 0.01;

/// The network's input, and its hidden layer before the activation.
struct Inside {
  std::vector<double> u, hidden;

  Inside(const HeadMix& mix, const OfHeads& x, const OfHeads& B) {
    const size_t H = x.size();
    switch (mix.form) {
      case MixForm::concat:
      case MixForm::concat_residual:
        u = x;
        u.insert(u.end(), B.begin(), B.end());
        break;
      case MixForm::add_residual:
        for (size_t h = 0; h < H; ++h) u.push_back(x[h] + B[h]);
        break;
      case MixForm::bias_only:
        u = B;
        break;
    }
    for (int64_t k = 0; k < mix.hidden(); ++k) {
      const double* const row = f64(mix.w1) + static_cast<size_t>(k) * u.size();
      double sum = f64(mix.c1)[k];
      for (size_t n = 0; n < u.size(); ++n) sum += row[n] * u[n];
      hidden.push_back(sum);
    }
  }
};

}  // namespace

OfHeads reference_mix(const HeadMix& mix, const OfHeads& x, const OfHeads& B) {
  const Inside in(mix, x, B);
  OfHeads b;
  for (size_t h = 0; h < x.size(); ++h) {
    double f = f64(mix.c2)[h];
    for (size_t k = 0; k < in.hidden.size(); ++k) {
      const double v = in.hidden[k];
      f += f64(mix.w2)[h * in.hidden.size() + k] * (v > 0 ? v : kSlope * v);
    }
    b.push_back(mix.form == MixForm::concat ? f : B[h] + f);
  }
  return b;
}

MixAdjoint reference_mix_adjoint(const HeadMixGradients& g, const HeadMix& mix, const OfHeads& x,
                                 const OfHeads& B, const OfHeads& db) {
  const Inside in(mix, x, B);
  const size_t H = x.size(), F = in.hidden.size(), I = in.u.size();
  std::vector<double> du(I, 0.0);
  for (size_t h = 0; h < H; ++h) f64(g.dc2)[h] += db[h];
  for (size_t k = 0; k < F; ++k) {
    const double v = in.hidden[k];
    double d = 0;
    for (size_t h = 0; h < H; ++h) {
      f64(g.dw2)[h * F + k] += db[h] * (v > 0 ? v : kSlope * v);
      d += db[h] * f64(mix.w2)[h * F + k];
    }
    if (!(v > 0)) d *= kSlope;
    f64(g.dc1)[k] += d;
    for (size_t n = 0; n < I; ++n) {
      f64(g.dw1)[k * I + n] += d * in.u[n];
      du[n] += d * f64(mix.w1)[k * I + n];
    }
  }
  const OfHeads none(H, 0.0), first(du.begin(), du.begin() + static_cast<int64_t>(H));
  MixAdjoint to = {none, mix.form == MixForm::concat ? none : db};
  switch (mix.form) {
    case MixForm::concat:
    case MixForm::concat_residual:
      to.dx = first;
      for (size_t h = 0; h < H; ++h) to.dB[h] += du[H + h];
      break;
    case MixForm::add_residual:
      to.dx = first;
      for (size_t h = 0; h < H; ++h) to.dB[h] += du[h];
      break;
    case MixForm::bias_only:
      for (size_t h = 0; h < H; ++h) to.dB[h] += du[h];
      break;
  }
  return to;
}

}  // namespace bamtrain
