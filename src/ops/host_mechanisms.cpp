#include "ops/host_mechanisms.h"

#include <algorithm>
#include <cmath>

#include "core/element.h"
#include "core/parallel.h"
#include "priors/fire.h"
#include "priors/softplus.h"
#include "scales/adaptive.h"
#include "scales/entropy.h"

namespace bamtrain {

HostMechanisms::~HostMechanisms() = default;

void HostMechanisms::plan(Arena& arena, const WorkspaceShape& w) {
  arena.add("scratch.table", &table_, Dtype::f64, {w.H, w.past + w.T});
  arena.add("scratch.by_length", &by_length_, Dtype::f64, {w.H, w.past + w.T + 1});
  arena.add("scratch.theta", &theta_, Dtype::f64, {kMaxParameters, w.mechanism_values});
  arena.add("scratch.dtheta", &dtheta_, Dtype::f64, {kMaxParameters, w.mechanism_values});
}

HostMechanisms::Pointers HostMechanisms::theta_values(std::span<const Tensor> theta) const {
  const Pointers p = zeros(theta_, theta.size());
  for (size_t n = 0; n < theta.size(); ++n) {
    require(theta[n].size() <= theta_.shape[1], "parameters no larger than was planned");
    for (int64_t h = 0; h < theta[n].size(); ++h) p.of[n][h] = get(theta[n], h);
  }
  return p;
}

HostMechanisms::Pointers HostMechanisms::zeros(Tensor values, size_t count) const {
  require(values && count <= kMaxParameters, "a planned backend and at most 8 parameters");
  Pointers p;
  for (size_t n = 0; n < count; ++n) {
    p.of[n] = values.ptr<double>() + static_cast<int64_t>(n) * values.shape[1];
    std::fill_n(p.of[n], values.shape[1], 0.0);
  }
  return p;
}

void HostMechanisms::add_to(std::span<const Tensor> dtheta, const Pointers& values) const {
  for (size_t n = 0; n < dtheta.size(); ++n) {
    for (int64_t h = 0; h < dtheta[n].size(); ++h) {
      put(dtheta[n], h, get(dtheta[n], h) + values.of[n][h]);
    }
  }
}

namespace {

const TableFamily& family_of(const PriorUse& prior) {
  const TableFamily* const family = prior.info.as<TableFamily>();
  require(family != nullptr, "a prior of family table");
  return *family;
}

const LengthKind& kind_of(const ScaleUse& scale) {
  const LengthKind* const kind = scale.info.as<LengthKind>();
  require(kind != nullptr, "a scale of kind length");
  return *kind;
}

}  // namespace

void HostMechanisms::table_forward(Tensor table, const PriorUse& prior,
                                   std::span<const Tensor> theta) {
  const int64_t H = table.shape[0], T = table.shape[1];
  require(table_ && H * T <= table_.size(), "a table no larger than was planned");
  family_of(prior).table(theta_values(theta).of, {H, T, prior.form, prior.gain},
                         table_.ptr<double>());
  for (int64_t i = 0; i < H * T; ++i) put(table, i, table_.ptr<double>()[i]);
}

void HostMechanisms::table_backward(std::span<const Tensor> dtheta, Tensor dtable,
                                    const PriorUse& prior, std::span<const Tensor> theta) {
  const int64_t H = dtable.shape[0], T = dtable.shape[1];
  require(table_ && H * T <= table_.size(), "a table no larger than was planned");
  for (int64_t i = 0; i < H * T; ++i) table_.ptr<double>()[i] = get(dtable, i);
  const Pointers gradients = zeros(dtheta_, dtheta.size());
  family_of(prior).adjoint(theta_values(theta).of, {H, T, prior.form, prior.gain},
                           table_.ptr<double>(), gradients.of);
  add_to(dtheta, gradients);
}

/// t depends on (h, n) alone: it is formed once per length, then looked up.
void HostMechanisms::scale_forward(Tensor scale, Tensor first_key, const ScaleUse& use,
                                   std::span<const Tensor> theta) {
  const int64_t B = scale.shape[0], H = scale.shape[1], T = scale.shape[2];
  const LengthKind& kind = kind_of(use);
  const Pointers p = theta_values(theta);
  const int32_t* first = first_key.ptr<int32_t>();
  int64_t fewest = INT64_MAX, most = 0;
  for (int64_t r = 0; r < B * T; ++r) {
    const int64_t n = r % T - first[r] + 1;
    fewest = std::min(fewest, n);
    most = std::max(most, n);
  }
  require(by_length_ && H <= by_length_.shape[0] && most < by_length_.shape[1],
          "a scale no larger than was planned");
  parallel_for(H, [&](int64_t h) {
    double* of_length = by_length_.ptr<double>() + h * by_length_.shape[1];
    for (int64_t n = fewest; n <= most; ++n) {
      of_length[n] = h < use.first_head ? 1 : kind.value(use.constants, p.of, h, n);
    }
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        put(scale, (b * H + h) * T + i, of_length[i - first[b * T + i] + 1]);
      }
    }
  });
}

/// dt is summed by n first, in order.
void HostMechanisms::scale_backward(std::span<const Tensor> dtheta, Tensor dscale, Tensor first_key,
                                    const ScaleUse& use, std::span<const Tensor> theta) {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  require(by_length_ && H * (T + 1) <= by_length_.size(), "a scale no larger than was planned");
  const LengthKind& kind = kind_of(use);
  const Pointers p = theta_values(theta), gradients = zeros(dtheta_, dtheta.size());
  const int32_t* first = first_key.ptr<int32_t>();
  parallel_for(H - use.first_head, [&](int64_t scaled) {
    const int64_t h = use.first_head + scaled;
    double* of_length = by_length_.ptr<double>() + h * (T + 1);
    std::fill_n(of_length, T + 1, 0.0);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < T; ++i) {
        of_length[i - first[b * T + i] + 1] += get(dscale, (b * H + h) * T + i);
      }
    }
    for (int64_t n = 1; n <= T; ++n) {
      kind.accumulate(use.constants, p.of, h, n, of_length[n], gradients.of);
    }
  });
  add_to(dtheta, gradients);
}

// --- gates

namespace {

/// Where gate (b, t, h) lies in a (B, T, H).
int64_t gate_at(const Tensor& gates, int64_t b, int64_t t, int64_t h) {
  return b * gates.stride[0] + t * gates.stride[1] + h * gates.stride[2];
}

/// What an adaptive scale reads of a row.
struct AdaptiveRow {
  int64_t n;    // visible keys
  double u, w;  // gates and their biases

  AdaptiveRow(const Tensor& gates, const Tensor& first_key, std::span<const Tensor> bias, int64_t b,
              int64_t t, int64_t h, int64_t H)
      : n(t - first_key.ptr<int32_t>()[b * first_key.shape[1] + t] + 1),
        u(get(gates, gate_at(gates, b, t, h))),
        w(get(gates, gate_at(gates, b, t, H + h))) {
    if (bias.empty()) return;
    u += get(bias[0], h);
    w += get(bias[1], h);
  }
};

}  // namespace

void HostMechanisms::adaptive_scale_forward(Tensor scale, Tensor gates, Tensor first_key,
                                            const ScaleUse& use, std::span<const Tensor> bias) {
  const int64_t H = scale.shape[1], T = scale.shape[2];
  const Adaptive formula(use.constants);
  parallel_for(scale.shape[0] * H, [&](int64_t n) {
    const int64_t b = n / H, h = n % H;
    for (int64_t t = 0; t < T; ++t) {
      const AdaptiveRow row(gates, first_key, bias, b, t, h, H);
      put(scale, n * T + t, h < use.first_head ? 1 : formula.value(row.u, row.w, row.n));
    }
  });
}

void HostMechanisms::adaptive_scale_backward(Tensor dgates, std::span<const Tensor> dbias,
                                             Tensor dscale, Tensor gates, Tensor first_key,
                                             const ScaleUse& use, std::span<const Tensor> bias) {
  const int64_t B = dscale.shape[0], H = dscale.shape[1], T = dscale.shape[2];
  const Adaptive formula(use.constants);
  parallel_for(H, [&](int64_t h) {
    double of_bias[2] = {};
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T; ++t) {
        double d[2] = {};
        if (h >= use.first_head) {
          const AdaptiveRow row(gates, first_key, bias, b, t, h, H);
          formula.adjoint(get(dscale, (b * H + h) * T + t), row.u, row.w, row.n, &d[0], &d[1]);
        }
        for (int64_t k = 0; k < 2; ++k) {
          put(dgates, gate_at(dgates, b, t, k * H + h), d[k]);
          of_bias[k] += d[k];
        }
      }
    }
    for (size_t k = 0; k < dbias.size(); ++k) put(dbias[k], h, get(dbias[k], h) + of_bias[k]);
  });
}

void HostMechanisms::entropy_scale(Tensor scale, Tensor entropy, int64_t first_head) {
  const int64_t H = scale.shape[1], T = scale.shape[2];
  parallel_for(scale.shape[0] * H, [&](int64_t n) {
    for (int64_t i = n * T; i < (n + 1) * T; ++i) {
      put(scale, i, n % H < first_head ? 1 : entropy_scale_of(get(entropy, i)));
    }
  });
}

// --- running sums of gates

void HostMechanisms::sums_forward(Tensor sums, Tensor gates, Tensor bias) {
  const int64_t H = sums.shape[1], T = sums.shape[2];
  parallel_for(sums.shape[0] * H, [&](int64_t n) {
    const int64_t b = n / H, h = n % H;
    double* S = sums.ptr<double>() + b * sums.stride[0] + h * sums.stride[1];
    double total = 0;
    for (int64_t t = 0; t < T; ++t) {
      total += softplus(get(gates, gate_at(gates, b, t, h)) + get(bias, h));
      S[t] = total;
    }
  });
}

void HostMechanisms::sums_backward(Tensor dgates, Tensor dbias, Tensor dsums, Tensor gates,
                                   Tensor bias) {
  const int64_t B = dsums.shape[0], H = dsums.shape[1], T = dsums.shape[2];
  parallel_for(H, [&](int64_t h) {
    double of_bias = 0;
    for (int64_t b = 0; b < B; ++b) {
      double du = 0;
      for (int64_t t = T - 1; t >= 0; --t) {
        du += get(dsums, (b * H + h) * T + t);
        const double d = du * sigmoid(get(gates, gate_at(gates, b, t, h)) + get(bias, h));
        put(dgates, gate_at(dgates, b, t, h), d);
        of_bias += d;
      }
    }
    put(dbias, h, get(dbias, h) + of_bias);
  });
}

// --- alpha of entmax

void HostMechanisms::alpha_forward(Tensor alphas, Tensor theta) {
  for (int64_t h = 0; h < alphas.size(); ++h) put(alphas, h, 1 + softplus(get(theta, h)));
}

void HostMechanisms::alpha_backward(Tensor dtheta, Tensor dalpha, Tensor theta) {
  const int64_t B = dalpha.shape[0], H = dalpha.shape[1], T = dalpha.shape[2];
  for (int64_t h = 0; h < H; ++h) {
    double sum = 0;
    for (int64_t n = 0; n < B * T; ++n) sum += get(dalpha, (n / T * H + h) * T + n % T);
    put(dtheta, h, get(dtheta, h) + sum * sigmoid(get(theta, h)));
  }
}

// --- fire

namespace {

/// theta in the order of the registry.
FireParameters fire_parameters(const double* const* theta, int64_t H, double L0) {
  return {theta[2], theta[3], theta[4], theta[5], *theta[0], *theta[1], H, L0};
}

}  // namespace

void HostMechanisms::fire_forward(const FireTables& tables, std::span<const Tensor> theta,
                                  double L0) {
  const int64_t T = tables.psi.shape[0], H = tables.slope.shape[0];
  const Pointers values = theta_values(theta);
  const FireParameters p = fire_parameters(values.of, H, L0);
  const FireSegments f(p);
  for (int64_t h = 0; h < H; ++h) {
    for (int n = 0; n < kFireSegments; ++n) {
      const FireLine line = f.line(p, h, n);
      put(tables.slope, h * kFireSegments + n, line.slope);
      put(tables.offset, h * kFireSegments + n, line.offset);
    }
  }
  parallel_ranges(T, 256, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      put(tables.psi, t, fire_psi(p.c, static_cast<double>(t)));
      put(tables.psi_dc, t, fire_psi_dc(p.c, static_cast<double>(t)));
      const FireNormalizer row(p, t);
      put(tables.inverse, t, 1 / row.N);
      for (int k = 0; k < kFireHidden; ++k) {
        tables.ends.ptr<int32_t>()[t * kFireHidden + k] = fire_end(p, f.kinks[k], row.N, T);
      }
    }
  });
}

void HostMechanisms::fire_backward(std::span<const Tensor> dtheta, const FireBiasGradients& g,
                                   Tensor positions, std::span<const Tensor> theta, double L0) {
  const int64_t B = g.dfire_u.shape[0], H = g.dfire_u.shape[1], T = g.dfire_u.shape[2];
  const Pointers values = theta_values(theta), gradients = zeros(dtheta_, dtheta.size());
  const FireParameters p = fire_parameters(values.of, H, L0);
  const FireSegments f(p);
  fire_adjoint({gradients.of[2], gradients.of[3], gradients.of[4], gradients.of[5]}, p, f,
               g.dfire.ptr<double>());
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t i = 0; i < T; ++i) {
      double of_u = 0, of_psi = 0;
      for (int64_t h = 0; h < H; ++h) {
        of_u += get(g.dfire_u, (b * H + h) * T + i);
        of_psi += get(g.dfire_psi, (b * H + h) * T + i);
      }
      const FireNormalizer row(p, positions.ptr<int32_t>()[b * T + i]);
      *gradients.of[0] += (of_psi - of_u * row.dc) / row.N;
      *gradients.of[1] -= of_u * row.dm / row.N;
    }
  }
  add_to(dtheta, gradients);
}

}  // namespace bamtrain
