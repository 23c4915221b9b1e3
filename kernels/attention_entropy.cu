// A block owns kEntropyRows queries of a head, a warp kRowsOfWarp of them. Keys come 32 at a time,
// a key per lane, through shared memory in pieces of kPiece channels. A lane keeps for each query
// the largest of its logits, m, and its sums of e^(z - m) and of (z - m) e^(z - m); lanes join in
// the end. H = log(first) - second / first, two terms of one sign.

#include "arguments.h"
#include "attention_bias.cuh"
#include "attention_checks.h"
#include "attention_content.h"
#include "attention_entropy.h"
#include "reductions.cuh"
#include "scales/entropy.h"
#include "vectors.cuh"

namespace bamtrain::kernels {

namespace {

constexpr int kEntropyWarps = 4, kRowsOfWarp = 4, kEntropyRows = kEntropyWarps * kRowsOfWarp;
constexpr int kEntropyThreads = 32 * kEntropyWarps;
constexpr int kPiece = 32;
constexpr int kPieceStride = kPiece + 1;  // lanes read a channel of 32 keys from 32 banks

/// A softmax without values, as far as its logits have come.
struct RunningEntropy {
  float m = -INFINITY, sum = 0, weighted = 0;

  /// The same sums about a larger maximum.
  BAMTRAIN_DEVICE void raise(float to) {
    if (sum > 0) {
      const float keep = expf(m - to);
      weighted = (weighted + sum * (m - to)) * keep;
      sum *= keep;
    }
    m = to;
  }
  BAMTRAIN_DEVICE void add(float z) {
    if (z > m) raise(z);
    const float p = expf(z - m);
    sum += p;
    weighted += p * (z - m);
  }
  /// Of all lanes of the warp, which all call; one of them at least has a logit.
  BAMTRAIN_DEVICE float joined() {
    raise(warp_max(m));
    const float all = warp_sum(sum);
    return logf(all) - warp_sum(weighted) / all;
  }
};

/// Rows [begin, begin + count) and channels [c, c + kPiece) of x at (b, h), zero outside.
template <class A>
BAMTRAIN_DEVICE void load_piece(float* to, const Rows<const A>& x, int b, int h, int begin,
                                int count, int T, int c, int D) {
  const A* const from = x.data + b * x.batch + h * x.head + c;
  BAMTRAIN_NO_UNROLL
  for (int n = static_cast<int>(device::thread_index().x); n < count * kPiece;
       n += kEntropyThreads) {
    const int row = n / kPiece, channel = n % kPiece, t = begin + row;
    const bool inside = t < T && c + channel < D;
    to[row * kPieceStride + channel] = inside ? load_one(from + t * x.row + channel) : 0.0f;
  }
}

/// Of all queries, or of those whose bias was formed. Launch with grid (ceil(queries /
/// kEntropyRows), H, B) and kEntropyThreads threads. Eight blocks at a time: for a ninth the
/// compiler spills.
template <class A>
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kEntropyThreads, 8)
    entropy_of_rows(float* entropy, const AttentionInputs<A> a) {
  BAMTRAIN_SHARED(float, queries, kEntropyRows* kPieceStride);
  BAMTRAIN_SHARED(float, keys, 32 * kPieceStride);
  const int b = static_cast<int>(device::block_index().z);
  const int h = static_cast<int>(device::block_index().y), kh = h / (a.H / a.K);
  const int thread = static_cast<int>(device::thread_index().x), lane = thread % 32;
  const int i0 = a.formed.first + static_cast<int>(device::block_index().x) * kEntropyRows;
  const int own = thread / 32 * kRowsOfWarp;  // the warp's first row of the block's
  const int end = a.end_of_queries(),
            last = (i0 + kEntropyRows < end ? i0 + kEntropyRows : end) - 1;
  const int32_t* const first_key = a.first_key + static_cast<int64_t>(b) * a.T;
  const float root = 1.0f / a.content_divisor;
  RunningEntropy rows[kRowsOfWarp];
  const int32_t* const last_key = a.causal ? nullptr : a.last_key + static_cast<int64_t>(b) * a.T;
  const int last_seen = a.causal ? last : last_key[last];
  for (int j0 = first_key[i0]; j0 <= last_seen; j0 += 32) {  // first and last keys never fall
    float s[kRowsOfWarp] = {};
    for (int c = 0; c < a.D; c += kPiece) {
      device::barrier();  // the piece before has been read
      load_piece(queries, a.q, b, h, i0, kEntropyRows, a.T, c, a.D);
      load_piece(keys, a.k, b, kh, j0, 32, a.T, c, a.D);
      device::barrier();
      for (int n = 0; n < kPiece; ++n) {
        const float k = keys[lane * kPieceStride + n];
        BAMTRAIN_UNROLL
        for (int r = 0; r < kRowsOfWarp; ++r) s[r] += queries[(own + r) * kPieceStride + n] * k;
      }
    }
    const int j = j0 + lane;
    BAMTRAIN_UNROLL
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const int i = i0 + own + r;
      if (i > last || j > (a.causal ? i : last_key[i]) || j < first_key[i]) continue;
      rows[r].add(s[r] * root + bias_of(a, b, h, i, j).b);
    }
  }
  BAMTRAIN_UNROLL
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int i = i0 + own + r;
    if (i > last) continue;  // the whole warp
    const float H = rows[r].joined();
    if (lane == 0) entropy[(static_cast<int64_t>(b) * a.H + h) * a.T + i] = H;
  }
}

/// A thread per row. Launch with grid (ceil(T / kEntropyThreads), H, B).
BAMTRAIN_KERNEL BAMTRAIN_LAUNCH_BOUNDS(kEntropyThreads)
    scale_of_entropy(float* scale, const float* entropy, int T, int first_head) {
  const auto h = static_cast<int>(device::block_index().y);
  const auto t =
      static_cast<int>(device::block_index().x * kEntropyThreads + device::thread_index().x);
  if (t >= T) return;
  const int64_t of_head = int64_t{device::block_index().z} * device::grid_size().y + h;
  const int64_t n = of_head * T + t;
  const double H = static_cast<double>(entropy[n]);
  scale[n] = h < first_head ? 1.0f : static_cast<float>(entropy_scale_of(H));
}

}  // namespace

template <class A>
device::LaunchStatus attention_entropy(float* entropy, const AttentionInputs<A>& a,
                                       device::Stream stream) {
  AttentionInputs<A> read = a;
  read.v = a.k;
  if (const char* why = refusal(read)) return device::refused(why);
  if (a.D < 1) return device::refused("attention: a head dimension that is not positive");
  if (a.scale != nullptr) return device::refused("entropy of attention: a scale");
  if (entropy == nullptr) return device::refused("entropy of attention: entropy is missing");
  const auto run = [&](const AttentionInputs<A>& of, float* to) {
    return device::launch(entropy_of_rows<A>, grid_of_rows(of.queries(), kEntropyRows, of.H, of.B),
                          {kEntropyThreads, 1, 1}, 0, stream, to, of);
  };
  if (!reads_content(a)) return run(a, entropy);
  return with_content(a, stream, content_biases_reference<A>,
                      [&](const AttentionInputs<A>& of, const QueryPart& part) {
                        return run(of, of_rows(entropy, int64_t{part.sequence} * a.H * a.T));
                      });
}

device::LaunchStatus entropy_scale(float* scale, const float* entropy, int B, int H, int T,
                                   int first_head, device::Stream stream) {
  if (B < 1 || H < 1 || T < 1) return device::refused("entropy scale: a size is not positive");
  if (B > 65535 || H > 65535) {
    return device::refused("entropy scale: over 65,535 sequences or heads");
  }
  if (scale == nullptr || entropy == nullptr) {
    return device::refused("entropy scale: scale or entropy is missing");
  }
  return device::launch(scale_of_entropy, grid_of_rows(T, kEntropyThreads, H, B),
                        {kEntropyThreads, 1, 1}, 0, stream, scale, entropy, T, first_head);
}

template device::LaunchStatus attention_entropy(float*, const AttentionInputs<float>&,
                                                device::Stream);
template device::LaunchStatus attention_entropy(float*, const AttentionInputs<bf16>&,
                                                device::Stream);

}  // namespace bamtrain::kernels
