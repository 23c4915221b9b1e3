// A warp owns a row, as in attention_reference.cu.

#include "attention_content.h"
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
  float p = 0, h = 0;  // of p, and of -p log p

  BAMTRAIN_DEVICE void add(float weight) {
    p += weight;
    if (weight > 0) h -= weight * logf(weight);
  }
};

/// What the forward pass saved. Of top-k it is searched for again: its threshold is one of the
/// forward pass's own logits, whose roundings are others.
template <class A, class Logit>
BAMTRAIN_DEVICE RowWeights weights_of(const StatisticsArguments<A>& s, const OwnRow& own, int first,
                                      int last, const Logit& logit) {
  const NormalizerInputs& n = s.in.normalizer;
  if (n.kind != NormalizerKind::topk) {
    return RowWeights(n, s.saved, own.h, row_of(s.in, own.b, own.h, own.t));
  }
  Selection selection;
  RowSearch search(n, WeightForm::topk, own.h, last, last - first + 1, s.in.T, &selection);
  for (int passes = 1; !search.done(); ++passes) {
    pass_over(search, WeightForm::topk, passes, [&](const auto& add) {
      for (int j = first + own.lane; j <= last; j += 32) add(logit(j), j);
    });
  }
  return search.weights();
}

/// How many of n keys have weight, of which `counted` were found.
template <class A>
BAMTRAIN_DEVICE float support_of(const AttentionInputs<A>& a, int n, float counted) {
  const NormalizerTraits traits = traits_of(a.normalizer.kind);
  if (traits.dense) return static_cast<float>(traits.own_key ? n : n - 1);
  if (a.normalizer.kind != NormalizerKind::topk) return counted;
  return static_cast<float>(a.normalizer.keys.of(n, a.T));
}

}  // namespace

template <class A>
BAMTRAIN_KERNEL attention_row_statistics(StatisticsArguments<A> s) {
  const AttentionInputs<A>& a = s.in;
  const OwnRow own(a.formed.first);
  if (own.t >= a.end_of_queries()) return;
  const int i = own.t, first = first_of(a, own.b, i), last = last_of(a, own.b, i);
  const int64_t row = row_of(a, own.b, own.h, i);
  const auto logit = [&](int j) { return logit_of(a, own.b, own.h, i, j).z; };
  const bool stick = a.normalizer.kind == NormalizerKind::stick_breaking;
  Spread spread;
  float keys = 0;
  if (stick) {
    break_stick(first, i, own.lane, logit, [&](int, int, float, float p) { spread.add(p); });
  } else {
    const RowWeights weights = weights_of(s, own, first, last, logit);
    for (int j = first + own.lane; j <= last; j += 32) {
      const Weight w = weight_of(a.normalizer, weights, own.h, logit(j), j);
      spread.add(w.p);
      if (w.u > 0) keys += 1;
    }
  }
  const float p = warp_sum(spread.p), h = warp_sum(spread.h);
  keys = warp_sum(keys);
  if (own.lane != 0) return;
  // Where weights sum to 1, save roundings: the entropy of p / sum p.
  const NormalizerTraits traits = traits_of(a.normalizer.kind);
  const float entropy = traits.sums_to_one ? h / p + logf(p) : h;
  const bool none = entropy < 0 || (first == last && traits.constant_alone());  // NaN stays
  s.entropy[row] = none ? 0.0f : entropy;
  s.support[row] = support_of(a, last - first + 1, keys);
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
  const auto run = [&](const StatisticsArguments<A>& of) {
    return launch_rows(attention_row_statistics<A>, of, of.in.queries(), a.H, of.in.B, stream);
  };
  if (!reads_content(a)) return run({entropy, support, saved, in});
  return with_content(in, stream, content_biases_reference<A>,
                      [&](const AttentionInputs<A>& of, const QueryPart& part) {
                        const int64_t rows = int64_t{part.sequence} * a.H * a.T;
                        return run({entropy + rows, support + rows,
                                    of_sequences(saved, part.sequence, a.H, a.T), of});
                      });
}

template LaunchStatus attention_statistics(float*, float*, const SavedRows&,
                                           const AttentionInputs<float>&, Stream);
template LaunchStatus attention_statistics(float*, float*, const SavedRows&,
                                           const AttentionInputs<device::bf16>&, Stream);

}  // namespace bamtrain::kernels
