// A warp owns a row, as in attention_reference.cu.

#include "attention_reference.cuh"
#include "attention_statistics.h"

namespace bamtrain::kernels {

namespace {

using device::LaunchStatus;
using device::Stream;

template <class A>
struct StatisticsArguments {
  float *entropy, *support;
  SavedRows saved;
  AttentionInputs<A> in;
};

/// Sums over the weights of a row.
struct Spread {
  float p = 0, h = 0, keys = 0;  // of p, of -p log p, and of 1 where p > 0

  BAMTRAIN_DEVICE void add(float weight) {
    if (!(weight > 0)) return;
    p += weight;
    h -= weight * logf(weight);
    keys += 1;
  }
};

}  // namespace

template <class A>
BAMTRAIN_KERNEL attention_row_statistics(StatisticsArguments<A> s) {
  const AttentionInputs<A>& a = s.in;
  const OwnRow own;
  if (own.t >= a.T) return;
  const int i = own.t, first = first_of(a, own.b, i);
  const int64_t row = row_of(a, own.b, own.h, i);
  const auto logit = [&](int j) { return logit_of(a, own.b, own.h, i, j).z; };
  const bool stick = a.normalizer.kind == NormalizerKind::stick_breaking;
  Spread spread;
  if (stick) {
    break_stick(first, i, own.lane, logit, [&](int, int, float, float p) { spread.add(p); });
  } else {
    const RowWeights weights(a.normalizer, s.saved, own.h, row);
    for (int j = first + own.lane; j <= i; j += 32) {
      spread.add(weight_of(a.normalizer, weights, own.h, logit(j), j).p);
    }
  }
  const float p = warp_sum(spread.p), h = warp_sum(spread.h), keys = warp_sum(spread.keys);
  if (own.lane != 0) return;
  // Weights sum to 1 but for roundings: the entropy of p / sum p.
  s.entropy[row] = stick || p == 0 ? h : h / p + logf(p);
  s.support[row] =
      a.normalizer.kind == NormalizerKind::softmax ? static_cast<float>(i - first + 1) : keys;
}

template <class A>
LaunchStatus attention_statistics(float* entropy, float* support, const SavedRows& saved,
                                  const AttentionInputs<A>& a, Stream stream) {
  AttentionInputs<A> in = a;
  in.v = a.k;
  if (const char* why = refusal(in)) return device::refused(why);
  if (const char* why = refusal(in.normalizer, saved)) return device::refused(why);
  if (entropy == nullptr || support == nullptr) {
    return device::refused("attention: entropy or support is missing");
  }
  return launch_rows(attention_row_statistics<A>,
                     StatisticsArguments<A>{entropy, support, saved, in}, a.T, a.H, a.B, stream);
}

template LaunchStatus attention_statistics(float*, float*, const SavedRows&,
                                           const AttentionInputs<float>&, Stream);
template LaunchStatus attention_statistics(float*, float*, const SavedRows&,
                                           const AttentionInputs<device::bf16>&, Stream);

}  // namespace bamtrain::kernels
