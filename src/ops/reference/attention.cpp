#include "ops/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "priors/fire.h"

namespace bamtrain {

namespace {

double* row_of(const Tensor& x, int64_t b, int64_t t, int64_t h) {
  return x.ptr<double>() + b * x.stride[0] + t * x.stride[1] + h * x.stride[2];
}

double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/// S_j - S_i of row i.
double difference(const Attention& a, int64_t batch, int64_t h, int64_t i, int64_t j) {
  const double* S = a.sums.ptr<double>() + batch * a.sums.stride[0] + h * a.sums.stride[1];
  return S[j] - S[a.past() + i];
}
double sum_bias(SumBias kind, double x) {
  return kind == SumBias::difference ? x : -std::log1p(x * x);
}
double sum_bias_derivative(SumBias kind, double x) {
  return kind == SumBias::difference ? 1 : -2 * x / (1 + x * x);
}

/// FireBias at one logit: u, its segment and the bias.
struct FireLogit {
  double u, psi_dc, slope, b;
  int64_t segment;  // of (H, kFireSegments)

  FireLogit(const Attention& a, int64_t batch, int64_t h, int64_t i, int64_t j) {
    const int32_t position = a.positions.ptr<int32_t>()[batch * a.q.shape[1] + i];
    const int32_t* ends = a.fire.ends.ptr<int32_t>() + position * kFireHidden;
    const int64_t d = a.past() + i - j;
    segment = h * kFireSegments +
              (std::upper_bound(ends, ends + kFireHidden, static_cast<int32_t>(d)) - ends);
    u = a.fire.psi.ptr<double>()[d] * a.fire.inverse.ptr<double>()[position];
    psi_dc = a.fire.psi_dc.ptr<double>()[d];
    slope = a.fire.slope.ptr<double>()[segment];
    b = slope * u + a.fire.offset.ptr<double>()[segment];
  }
};

/// b of row i and key j of whichever kind `a` has.
double bias_of(const Attention& a, int64_t batch, int64_t h, int64_t i, int64_t j) {
  if (a.table) return a.table.ptr<double>()[h * a.table.stride[0] + a.past() + i - j];
  if (a.sums) return sum_bias(a.sum_bias, difference(a, batch, h, i, j));
  if (a.fire.psi) return FireLogit(a, batch, h, i, j).b;
  return 0;
}

/// One row of logits: s, b and z over the visible keys first .. last.
struct Row {
  int64_t first = 0, last = 0;
  double t = 1;
  std::vector<double> s, b, z;

  Row(const Attention& a, int64_t batch, int64_t h, int64_t i) {
    const int64_t T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
    const int64_t kh = h / (H / a.k.shape[2]);
    first = a.past() + a.first_key.ptr<int32_t>()[batch * T + i];
    last = a.past() + i;
    if (a.scale) t = a.scale.ptr<double>()[(batch * H + h) * T + i];
    for (int64_t j = first; j <= last; ++j) {
      s.push_back(dot(row_of(a.q, batch, i, h), row_of(a.k, batch, j, kh), D) /
                  a.content_divisor<double>());
      b.push_back(bias_of(a, batch, h, i, j));
      z.push_back(a.scale_bias ? t * (s.back() + b.back()) : t * s.back() + b.back());
    }
  }
};

}  // namespace

void reference_attention_forward(Tensor out, Tensor lse, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t group = H / a.k.shape[2];
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t i = 0; i < T; ++i) {
        const Row row(a, batch, h, i);
        const double m = *std::max_element(row.z.begin(), row.z.end());
        double sum = 0;
        for (double z : row.z) sum += std::exp(z - m);
        double* o = row_of(out, batch, i, h);
        std::fill_n(o, D, 0.0);
        for (int64_t j = row.first; j <= row.last; ++j) {
          const double p = std::exp(row.z[j - row.first] - m) / sum;
          const double* v = row_of(a.v, batch, j, h / group);
          for (int64_t c = 0; c < D; ++c) o[c] += p * v[c];
        }
        lse.ptr<double>()[(batch * H + h) * T + i] = m + std::log(sum);
      }
    }
  }
}

void reference_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out, Tensor lse,
                                  const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], D = a.q.shape[3];
  const int64_t K = a.k.shape[2], group = H / K;
  const double root = 1 / a.content_divisor<double>();
  require(a.past() == 0, "a backward pass over all rows");
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t h = 0; h < H; ++h) std::fill_n(row_of(g.dq, batch, i, h), D, 0.0);
      for (int64_t h = 0; h < K; ++h) std::fill_n(row_of(g.dk, batch, i, h), D, 0.0);
      for (int64_t h = 0; h < K; ++h) std::fill_n(row_of(g.dv, batch, i, h), D, 0.0);
    }
  }
  if (a.table) std::fill_n(g.dtable.ptr<double>(), g.dtable.size(), 0.0);
  for (const Tensor& x : {g.dsums, g.dfire, g.dfire_u, g.dfire_psi}) {
    if (x) std::fill_n(x.ptr<double>(), x.size(), 0.0);
  }
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t i = 0; i < T; ++i) {
        const Row row(a, batch, h, i);
        const double* d_o = row_of(dout, batch, i, h);
        const double* q = row_of(a.q, batch, i, h);
        double* dq = row_of(g.dq, batch, i, h);
        const double l = lse.ptr<double>()[(batch * H + h) * T + i];
        const double D_i = dot(d_o, row_of(out, batch, i, h), D);
        double dt = 0;
        for (int64_t j = row.first; j <= i; ++j) {
          const double p = std::exp(row.z[j - row.first] - l);
          const double* k = row_of(a.k, batch, j, h / group);
          const double* v = row_of(a.v, batch, j, h / group);
          const double dz = row.first == i ? 0 : p * (dot(d_o, v, D) - D_i);
          const double s = row.s[j - row.first], b = row.b[j - row.first];
          dt += dz * (a.scale_bias ? s + b : s);
          const double ds = dz * row.t;
          const double db = a.scale_bias ? ds : dz;
          if (a.table) g.dtable.ptr<double>()[h * g.dtable.stride[0] + i - j] += db;
          if (a.sums) {
            const double dx = db * sum_bias_derivative(a.sum_bias, difference(a, batch, h, i, j));
            const int64_t of_head = (batch * H + h) * T;
            g.dsums.ptr<double>()[of_head + j] += dx;
            g.dsums.ptr<double>()[of_head + i] -= dx;
          }
          if (a.fire.psi) {
            const FireLogit f(a, batch, h, i, j);
            const int64_t row_of_head = (batch * H + h) * T + i;
            g.dfire.ptr<double>()[2 * f.segment] += db;
            g.dfire.ptr<double>()[2 * f.segment + 1] += db * f.u;
            g.dfire_u.ptr<double>()[row_of_head] += db * f.slope * f.u;
            g.dfire_psi.ptr<double>()[row_of_head] += db * f.slope * f.psi_dc;
          }
          double* dk = row_of(g.dk, batch, j, h / group);
          double* dv = row_of(g.dv, batch, j, h / group);
          for (int64_t c = 0; c < D; ++c) {
            dq[c] += ds * root * k[c];
            dk[c] += ds * root * q[c];
            dv[c] += p * d_o[c];
          }
        }
        if (a.scale) g.dscale.ptr<double>()[(batch * H + h) * T + i] = dt;
      }
    }
  }
}

void reference_attention_entropy(Tensor entropy, const Attention& a) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  require(!a.scale, "logits without a scale");
  for (int64_t batch = 0; batch < B; ++batch) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t i = 0; i < T; ++i) {
        const Row row(a, batch, h, i);
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

}  // namespace bamtrain
