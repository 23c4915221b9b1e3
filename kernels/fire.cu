// Blocks that need the segments recompute them from the 64 parameters of the hidden layer.

#include "arguments.h"
#include "fire.h"
#include "reductions.cuh"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

constexpr int kFireWarps = 8, kFireThreads = 32 * kFireWarps;
constexpr int kPositions = 64;  // per block

/// One head's network in fp64, and its segments, in shared memory.
struct FireNetwork {
  double w1[kFireHidden], b1[kFireHidden], w2[kFireHidden], b2, unordered[kFireHidden];
  FireSegments segments;
};

BAMTRAIN_DEVICE double number(float x) { return static_cast<double>(x); }

/// Fills `n` with head h and all parameters except the mask of active units. All threads of the
/// block call, 32 or more. Ends with a barrier.
BAMTRAIN_DEVICE FireParameters load_network(FireNetwork& n, const FireTheta<const float>& theta,
                                            int h, double L0, double negative_slope) {
  const int k = static_cast<int>(device::thread_index().x);
  const FireParameters p = {n.w1, n.b1, n.w2,          &n.b2, number(*theta.c), number(*theta.m),
                            1,    L0,   negative_slope};
  if (k < kFireHidden) {
    n.w1[k] = number(theta.w1[k]);
    n.b1[k] = number(theta.b1[k]);
    n.w2[k] = number(theta.w2[h * kFireHidden + k]);
    if (k == 0) n.b2 = number(theta.b2[h]);
    n.unordered[k] = fire_kink(p, k);
  }
  device::barrier();
  if (k < kFireHidden) n.segments.kinks[fire_rank(n.unordered, k)] = n.unordered[k];
  device::barrier();
  return p;
}

/// The mask of active units of each segment. Needs at least kFireSegments threads. Ends with a
/// barrier.
BAMTRAIN_DEVICE void mark_active(FireNetwork& n, const FireParameters& p) {
  const int s = static_cast<int>(device::thread_index().x);
  if (s < kFireSegments) n.segments.active[s] = fire_active(p, n.segments.kinks, s);
  device::barrier();
}

// --- forward

/// psi, psi_dc, inverse and ends of kPositions positions, one warp each.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFireThreads) fire_positions(const FireForward f) {
  BAMTRAIN_SHARED(FireNetwork, network, 1);
  const FireParameters p = load_network(network[0], f.theta, 0, f.L0, f.negative_slope);
  const int thread = static_cast<int>(device::thread_index().x), k = thread % 32;
  const int64_t begin = int64_t{device::block_index().x} * kPositions;
  for (int64_t t = begin + thread / 32; t < begin + kPositions && t < f.T; t += kFireWarps) {
    const FireNormalizer row(p, t);
    f.ends[t * kFireHidden + k] = fire_end(p, network[0].segments.kinks[k], row.N, f.T);
    if (k > 0) continue;
    const double x = static_cast<double>(t);
    f.psi[t] = static_cast<float>(fire_psi(p.c, x));
    f.psi_dc[t] = static_cast<float>(fire_psi_dc(p.c, x));
    f.inverse[t] = static_cast<float>(1 / row.N);
  }
}

/// slope and offset of a head. Launch with grid H and 64 threads.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(64) fire_lines(const FireForward f) {
  BAMTRAIN_SHARED(FireNetwork, network, 1);
  const int h = static_cast<int>(device::block_index().x);
  const FireParameters p = load_network(network[0], f.theta, h, f.L0, f.negative_slope);
  mark_active(network[0], p);
  const int s = static_cast<int>(device::thread_index().x);
  if (s >= kFireSegments) return;
  const FireLine line = network[0].segments.line(p, 0, s);
  f.slope[h * kFireSegments + s] = static_cast<float>(line.slope);
  f.offset[h * kFireSegments + s] = static_cast<float>(line.offset);
}

// --- backward

/// partial (blocks, 2): the contributions of kFireRowsPerBlock queries to dc and dm.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kFireThreads)
    fire_rows_backward(double* partial, const FireBackward g) {
  BAMTRAIN_SHARED(double, sums, kFireWarps);
  const FireParameters p = {
      nullptr, nullptr, nullptr,         nullptr, number(*g.theta.c), number(*g.theta.m),
      0,       g.L0,    g.negative_slope};
  const int64_t begin = int64_t{device::block_index().x} * kFireRowsPerBlock;
  const int64_t all = int64_t{g.B} * g.T;
  const int64_t end = all - begin < kFireRowsPerBlock ? all : begin + kFireRowsPerBlock;
  double dc = 0, dm = 0;
  for (int64_t n = begin + device::thread_index().x; n < end; n += kFireThreads) {
    const int64_t b = n / g.T, i = n % g.T;
    double of_u = 0, of_psi = 0;
    for (int64_t h = 0; h < g.H; ++h) {
      of_u += number(g.dfire_u[(b * g.H + h) * g.T + i]);
      of_psi += number(g.dfire_psi[(b * g.H + h) * g.T + i]);
    }
    const FireNormalizer row(p, g.positions[n]);
    dc += (of_psi - of_u * row.dc) / row.N;
    dm -= of_u * row.dm / row.N;
  }
  dc = block_sum<kFireWarps>(dc, sums);
  device::barrier();
  dm = block_sum<kFireWarps>(dm, sums);
  if (device::thread_index().x > 0) return;
  double* const to = partial + 2 * device::block_index().x;
  to[0] = dc;
  to[1] = dm;
}

/// dw2 and db2 of a head; partial (H, 2, kFireHidden): its contributions to dw1 and db1. Launch
/// with grid H and 64 threads.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(64)
    fire_heads_backward(double* partial, const FireBackward g) {
  BAMTRAIN_SHARED(FireNetwork, network, 1);
  const int h = static_cast<int>(device::block_index().x);
  const FireParameters p = load_network(network[0], g.theta, h, g.L0, g.negative_slope);
  mark_active(network[0], p);
  const int k = static_cast<int>(device::thread_index().x);
  const double* const sums = g.dfire + int64_t{h} * 2 * kFireSegments;
  if (k < kFireHidden) {
    const FireSums on = network[0].segments.of_unit(p, sums, k);
    double* const to = partial + int64_t{h} * 2 * kFireHidden + k;
    to[0] = p.w2[k] * on.of_u;
    to[kFireHidden] = p.w2[k] * on.of_one;
    if (g.dtheta.w2 != nullptr) {
      add_to(g.dtheta.w2 + h * kFireHidden + k, p.w1[k] * on.of_u + p.b1[k] * on.of_one);
    }
  } else if (k == kFireHidden && g.dtheta.b2 != nullptr) {
    double sum = 0;
    for (int s = 0; s < kFireSegments; ++s) sum += sums[2 * s];
    add_to(g.dtheta.b2 + h, sum);
  }
}

/// dc, dm, dw1 and db1 from the partial sums, in order: one warp each.
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(128)
    fire_join(const FireBackward g, const double* of_rows, int64_t blocks, const double* of_heads) {
  const int thread = static_cast<int>(device::thread_index().x), k = thread % 32;
  const int which = thread / 32;
  if (which < 2) {
    const double sum = warp_sum_of(of_rows + which, blocks, 2);
    float* const to = which == 0 ? g.dtheta.c : g.dtheta.m;
    if (k == 0 && to != nullptr) add_to(to, sum);
  } else {
    double sum = 0;
    for (int64_t h = 0; h < g.H; ++h) sum += of_heads[(2 * h + which - 2) * kFireHidden + k];
    float* const to = which == 2 ? g.dtheta.w1 : g.dtheta.b1;
    if (to != nullptr) add_to(to + k, sum);
  }
}

constexpr const char* kMissing = "fire: an array is missing";

/// Null: the arguments are valid.
const char* refusal(const FireTheta<const float>& t, int64_t H) {
  if (H < 1 || H > 65535) return "fire: H, 1 to 2^16 - 1";
  const bool all = t.c != nullptr && t.m != nullptr && t.w1 != nullptr && t.b1 != nullptr &&
                   t.w2 != nullptr && t.b2 != nullptr;
  return all ? nullptr : kMissing;
}

}  // namespace

LaunchStatus fire_forward(const FireForward& f, Stream stream) {
  if (const char* why = refusal(f.theta, f.H)) return device::refused(why);
  if (f.T < 1 || f.T > kMaxBlocks) return device::refused("fire: T, 1 to 2^31 - 1");
  if (f.psi == nullptr || f.psi_dc == nullptr || f.inverse == nullptr || f.ends == nullptr ||
      f.slope == nullptr || f.offset == nullptr) {
    return device::refused(kMissing);
  }
  const LaunchStatus status = device::launch(fire_positions, grid_of(blocks_of(f.T, kPositions)),
                                             {kFireThreads, 1, 1}, 0, stream, f);
  if (!status.ok()) return status;
  return device::launch(fire_lines, grid_of(f.H), {64, 1, 1}, 0, stream, f);
}

LaunchStatus fire_backward(const FireBackward& g, Stream stream) {
  if (const char* why = refusal(g.theta, g.H)) return device::refused(why);
  if (g.B < 1 || g.T < 1 || g.T > kMaxBlocks / g.B) {
    return device::refused("fire: B T, 1 to 2^31 - 1");
  }
  if (g.dfire == nullptr || g.dfire_u == nullptr || g.dfire_psi == nullptr ||
      g.positions == nullptr || g.scratch == nullptr) {
    return device::refused(kMissing);
  }
  const int64_t blocks = fire_row_blocks(g.B, g.T);
  double* const of_heads = g.scratch + 2 * blocks;
  LaunchStatus status = device::launch(fire_rows_backward, grid_of(blocks), {kFireThreads, 1, 1}, 0,
                                       stream, g.scratch, g);
  if (!status.ok()) return status;
  status = device::launch(fire_heads_backward, grid_of(g.H), {64, 1, 1}, 0, stream, of_heads, g);
  if (!status.ok()) return status;
  return device::launch(fire_join, {1, 1, 1}, {128, 1, 1}, 0, stream, g, g.scratch, blocks,
                        of_heads);
}

}  // namespace bamtrain::kernels
