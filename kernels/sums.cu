// A warp scans a sequence of one head, 32 tokens at a time, one token per lane.

#include <cmath>

#include "arguments.h"
#include "priors/softplus.h"
#include "reductions.cuh"
#include "sums.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

constexpr int kSumsWarps = 4;  // per block

/// The head and sequence of a warp. Launch with grid (ceil(H / kSumsWarps), B) and 32 kSumsWarps
/// threads.
struct OwnSums {
  int b, h, lane;

  BAMTRAIN_DEVICE OwnSums() {
    const int thread = static_cast<int>(device::thread_index().x);
    b = static_cast<int>(device::block_index().y);
    h = static_cast<int>(device::block_index().x) * kSumsWarps + thread / 32;
    lane = thread % 32;
  }
};

template <class A>
BAMTRAIN_DEVICE double gate_of(const Gates<A>& g, const OwnSums& own, int t) {
  return static_cast<double>(load_one(g.data + own.b * g.batch + t * g.row + own.h)) +
         static_cast<double>(g.bias[own.h]);
}

/// The sum of x over this lane and all lower lanes.
BAMTRAIN_DEVICE double inclusive_sum(double x, int lane) {
  BAMTRAIN_UNROLL
  for (int distance = 1; distance < 32; distance *= 2) {
    const double below = device::shuffle_up(device::kWholeWarp, x, distance);
    if (lane >= distance) x += below;
  }
  return x;
}

template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kSumsWarps)
    sum_gates(const RunningSums sums, const Gates<A> gates) {
  const OwnSums own;
  if (own.h >= gates.H) return;  // the whole warp
  double* const to = sums.data + own.b * sums.batch + own.h * sums.head;
  double before = sums.before == nullptr
                      ? 0
                      : sums.before[own.b * sums.before_batch + own.h * sums.before_head];
  for (int t0 = 0; t0 < gates.T; t0 += 32) {
    const int t = t0 + own.lane;
    const double u = t < gates.T ? softplus(gate_of(gates, own, t)) : 0;
    const double sum = before + inclusive_sum(u, own.lane);
    if (t < gates.T) to[t] = sum;
    before = device::shuffle(device::kWholeWarp, sum, 31);
  }
}

/// partial (B, H): the warp's part of dbias. Lanes hold tokens in descending order.
template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32 * kSumsWarps)
    gradient_of_gates(const GateGradients<A> g, const Gates<A> gates) {
  const OwnSums own;
  if (own.h >= gates.H) return;
  const int64_t of_head = (static_cast<int64_t>(own.b) * gates.H + own.h) * gates.T;
  double behind = 0, of_bias = 0;
  for (int last = gates.T - 1; last >= 0; last -= 32) {
    const int t = last - own.lane;
    const double d = t >= 0 ? static_cast<double>(g.dsums[of_head + t]) : 0;
    const double du = behind + inclusive_sum(d, own.lane);
    if (t >= 0) {
      const double dgate = du * sigmoid(gate_of(gates, own, t));
      of_bias += dgate;
      store_one(g.dgates + own.b * gates.batch + t * gates.row + own.h, static_cast<float>(dgate));
    }
    behind = device::shuffle(device::kWholeWarp, du, 31);
  }
  of_bias = warp_sum(of_bias);
  if (own.lane == 0) g.scratch[static_cast<int64_t>(own.b) * gates.H + own.h] = of_bias;
}

/// dbias[h] += the sum of partial[b][h], in order. One thread per head.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(32)
    join_gate_biases(float* dbias, const double* partial, int B, int H) {
  const int h =
      static_cast<int>(device::block_index().x) * 32 + static_cast<int>(device::thread_index().x);
  if (h >= H) return;
  double sum = 0;
  for (int b = 0; b < B; ++b) sum += partial[static_cast<int64_t>(b) * H + h];
  add_to(dbias + h, sum);
}

template <class A>
const char* refusal(const Gates<A>& g) {
  if (g.B < 1 || g.T < 1 || g.H < 1) return "running sums: a size is not positive";
  if (g.B > 65535) return "running sums: over 65,535 sequences";
  return g.data == nullptr || g.bias == nullptr ? "running sums: gates or bias are missing"
                                                : nullptr;
}

template <class A>
device::Dim3 grid_of_heads(const Gates<A>& g) {
  return {static_cast<uint32_t>(blocks_of(g.H, kSumsWarps)), static_cast<uint32_t>(g.B), 1};
}

}  // namespace

template <class A>
device::LaunchStatus running_sums_forward(const RunningSums& sums, const Gates<A>& gates,
                                          device::Stream stream) {
  if (const char* why = refusal(gates)) return device::refused(why);
  if (sums.data == nullptr) return device::refused("running sums: sums are missing");
  return device::launch(sum_gates<A>, grid_of_heads(gates), {32 * kSumsWarps, 1, 1}, 0, stream,
                        sums, gates);
}

template <class A>
device::LaunchStatus running_sums_backward(const GateGradients<A>& g, const Gates<A>& gates,
                                           device::Stream stream) {
  if (const char* why = refusal(gates)) return device::refused(why);
  if (g.dgates == nullptr || g.dbias == nullptr || g.dsums == nullptr || g.scratch == nullptr) {
    return device::refused("running sums: dgates, dbias, dsums or scratch is missing");
  }
  const device::LaunchStatus status = device::launch(gradient_of_gates<A>, grid_of_heads(gates),
                                                     {32 * kSumsWarps, 1, 1}, 0, stream, g, gates);
  if (!status.ok()) return status;
  return device::launch(join_gate_biases, grid_of(blocks_of(gates.H, 32)), {32, 1, 1}, 0, stream,
                        g.dbias, g.scratch, gates.B, gates.H);
}

template device::LaunchStatus running_sums_forward(const RunningSums&, const Gates<float>&,
                                                   device::Stream);
template device::LaunchStatus running_sums_forward(const RunningSums&, const Gates<bf16>&,
                                                   device::Stream);
template device::LaunchStatus running_sums_backward(const GateGradients<float>&,
                                                    const Gates<float>&, device::Stream);
template device::LaunchStatus running_sums_backward(const GateGradients<bf16>&, const Gates<bf16>&,
                                                    device::Stream);

}  // namespace bamtrain::kernels
