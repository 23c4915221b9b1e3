// One thread per row of a head.

#include "arguments.h"
#include "gated_rows.h"
#include "reductions.cuh"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

constexpr int kGatedWarps = kGatedRows / 32;

/// The row of a thread. Launch with grid (ceil(T / kGatedRows), H, B) and kGatedRows threads.
struct GatedRow {
  int b, h, t;

  BAMTRAIN_DEVICE GatedRow() {
    b = static_cast<int>(device::block_index().z);
    h = static_cast<int>(device::block_index().y);
    t = static_cast<int>(device::block_index().x * kGatedRows + device::thread_index().x);
  }
  /// Its index in a (B, H, T) array.
  template <class A>
  BAMTRAIN_DEVICE int64_t index(const GatedRows<A>& s) const {
    return (static_cast<int64_t>(b) * s.H + h) * s.T + t;
  }
  /// The index of one of its gates.
  template <class A>
  BAMTRAIN_DEVICE int64_t gate_index(const GatedRows<A>& s, int which) const {
    return b * s.batch + t * s.row + which * s.H + h;
  }
  template <int kGates, class A>
  BAMTRAIN_DEVICE void load(double (&u)[kGates], const GatedRows<A>& s) const {
    BAMTRAIN_UNROLL
    for (int k = 0; k < kGates; ++k) {
      const double x = static_cast<double>(load_one(s.gates + gate_index(s, k)));
      u[k] = s.bias[k] == nullptr ? x : x + static_cast<double>(s.bias[k][h]);
    }
  }
  /// The number of keys that it sees.
  template <class A>
  BAMTRAIN_DEVICE int64_t keys(const GatedRows<A>& s) const {
    const int64_t row = static_cast<int64_t>(b) * s.T + t;
    return (s.last_key != nullptr ? s.last_key[row] : t) - s.first_key[row] + 1;
  }
};

template <class Rule, class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kGatedRows)
    rows_of_gates(const RowNumbersOut to, const GatedRows<A> s) {
  const GatedRow own;
  if (own.t >= s.T) return;
  double value = 1;
  if (own.h >= s.first_head) {
    double u[Rule::kGates];
    own.load(u, s);
    value = Rule(s.constants).value(u, own.keys(s));
  }
  if (to.rows != nullptr) {
    to.rows[own.index(s)] = static_cast<float>(value);
  } else {
    to.wide[own.index(s)] = value;
  }
}

/// scratch[which][h][b][piece]: the block's part of dbias.
template <class Rule, class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kGatedRows)
    gradient_of_gated(const GatedRowsGradients<A> g, const GatedRows<A> s) {
  BAMTRAIN_SHARED(double, sums, kGatedWarps);
  const GatedRow own;
  double d[Rule::kGates] = {};
  if (own.t < s.T) {
    if (own.h >= s.first_head) {
      double u[Rule::kGates];
      own.load(u, s);
      Rule(s.constants).adjoint(static_cast<double>(g.drows[own.index(s)]), u, own.keys(s), d);
    }
    BAMTRAIN_UNROLL
    for (int k = 0; k < Rule::kGates; ++k) {
      store_one(g.dgates + own.gate_index(s, k), static_cast<float>(d[k]));
    }
  }
  if (s.bias[0] == nullptr) return;  // all threads
  const device::Dim3 grid = device::grid_size();
  BAMTRAIN_UNROLL
  for (int k = 0; k < Rule::kGates; ++k) {
    device::barrier();  // the previous sum has been read
    const double sum = block_sum<kGatedWarps>(d[k], sums);
    if (device::thread_index().x == 0) {
      const int64_t of_head = (static_cast<int64_t>(k) * s.H + own.h) * s.B + own.b;
      g.scratch[of_head * grid.x + device::block_index().x] = sum;
    }
  }
}

/// dbias[which][h] += the sum of scratch[which][h][...]. One warp each: grid (H, kGates).
template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32)
    join_biases_of_gates(const GatedRowsGradients<A> g, int64_t count) {
  const int64_t h = device::block_index().x, which = device::block_index().y;
  const double sum = warp_sum_of(g.scratch + (which * device::grid_size().x + h) * count, count);
  if (device::thread_index().x == 0) add_to(g.dbias[which] + h, sum);
}

template <class A>
const char* refusal(const GatedRows<A>& s, int gates) {
  if (s.B < 1 || s.T < 1 || s.H < 1) return "gated rows: a size is not positive";
  if (s.B > 65535 || s.H > 65535) return "gated rows: over 65,535 sequences or heads";
  if (s.first_head < 0 || s.first_head >= s.H) return "gated rows: no such first head";
  if (s.gates == nullptr || s.first_key == nullptr) {
    return "gated rows: gates or first_key are missing";
  }
  for (int k = 1; k < gates; ++k) {
    if ((s.bias[0] == nullptr) != (s.bias[k] == nullptr)) {
      return "gated rows: one bias without the other";
    }
  }
  return nullptr;
}

}  // namespace

template <class A>
device::LaunchStatus gated_rows_forward(const RowNumbersOut& to, const GatedRows<A>& s,
                                        device::Stream stream) {
  if ((to.rows == nullptr) == (to.wide == nullptr)) {
    return device::refused("gated rows: not one array of numbers");
  }
  device::LaunchStatus status = device::refused("gated rows: no such rule");
  with_rule(s.rule, [&]<class Rule>() {
    const char* why = refusal(s, Rule::kGates);
    status = why != nullptr
                 ? device::refused(why)
                 : device::launch(rows_of_gates<Rule, A>, grid_of_rows(s.T, kGatedRows, s.H, s.B),
                                  {kGatedRows, 1, 1}, 0, stream, to, s);
  });
  return status;
}

namespace {

template <class Rule, class A>
device::LaunchStatus backward_of(const GatedRowsGradients<A>& g, const GatedRows<A>& s,
                                 device::Stream stream) {
  static_assert(Rule::kGates <= kMostGates);
  if (const char* why = refusal(s, Rule::kGates)) return device::refused(why);
  if (g.dgates == nullptr || g.drows == nullptr) {
    return device::refused("gated rows: dgates or drows is missing");
  }
  const bool bias = s.bias[0] != nullptr;
  for (int k = 0; bias && k < Rule::kGates; ++k) {
    if (g.dbias[k] == nullptr || g.scratch == nullptr) {
      return device::refused("gated rows: a bias without dbias or scratch");
    }
  }
  const device::Dim3 grid = grid_of_rows(s.T, kGatedRows, s.H, s.B);
  const device::LaunchStatus status =
      device::launch(gradient_of_gated<Rule, A>, grid, {kGatedRows, 1, 1}, 0, stream, g, s);
  if (!status.ok() || !bias) return status;
  return device::launch(join_biases_of_gates<A>, {static_cast<uint32_t>(s.H), Rule::kGates, 1},
                        {32, 1, 1}, 0, stream, g, int64_t{grid.x} * s.B);
}

}  // namespace

template <class A>
device::LaunchStatus gated_rows_backward(const GatedRowsGradients<A>& g, const GatedRows<A>& s,
                                         device::Stream stream) {
  device::LaunchStatus status = device::refused("gated rows: no such rule");
  with_rule(s.rule, [&]<class Rule>() { status = backward_of<Rule>(g, s, stream); });
  return status;
}

template device::LaunchStatus gated_rows_forward(const RowNumbersOut&, const GatedRows<float>&,
                                                 device::Stream);
template device::LaunchStatus gated_rows_forward(const RowNumbersOut&, const GatedRows<bf16>&,
                                                 device::Stream);
template device::LaunchStatus gated_rows_backward(const GatedRowsGradients<float>&,
                                                  const GatedRows<float>&, device::Stream);
template device::LaunchStatus gated_rows_backward(const GatedRowsGradients<bf16>&,
                                                  const GatedRows<bf16>&, device::Stream);

}  // namespace bamtrain::kernels
