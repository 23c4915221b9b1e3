// Attention of a few queries to many keys of the past, a row at a time: keys and values are read
// where they lie, once, where packing them into tiles would read and write them several times.

#include "core/parallel.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/attention_mix.h"
#include "ops/cpu/attention_normalizers.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/biases.h"
#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;
using rows::for_vectors;

namespace {

/// Bytes of keys or values that are asked for before they are read.
constexpr int64_t kAhead = 2048;

/// One query and the keys that it sees.
struct Row {
  const Attention& a;
  int64_t b, h, i;      // sequence, head, row
  int64_t first, last;  // keys

  Row(const Attention& of, int64_t batch, int64_t head, int64_t row)
      : a(of),
        b(batch),
        h(head),
        i(row),
        first(of.past() + first_keys(of, batch)[row]),
        last(of.past() + row) {}

  int64_t keys() const { return last - first + 1; }
  /// Where a row's number lies in a (B, H, T).
  int64_t at() const { return (b * a.q.shape[2] + h) * a.q.shape[1] + i; }

  /// Calls f(n, bias) for the n-th key that the row sees.
  template <class F>
  void for_biases(F&& f) const {
    dispatch_rows(a, [&]<class Stage>() { Stage::for_row(a, b, h, {i, first, last}, f); });
  }
};

/// The keys, or values, that a row sees, of its head.
template <class A>
class Seen {
 public:
  Seen(const Row& row, const Tensor& x) : stride_(x.stride[1]), bytes_(x.shape[3] * kSize) {
    const int64_t kh = row.h / (row.a.q.shape[2] / x.shape[2]);
    first_ = static_cast<const A*>(x.data) + row.b * x.stride[0] + row.first * stride_ +
             kh * x.stride[2];
    ahead_ = static_cast<uintptr_t>(ceil_div(kAhead, bytes_) * stride_ * kSize);
  }

  /// The n-th, to be read now; asks for one behind it.
  const A* take(int64_t n) const {
    const A* const p = first_ + n * stride_;
    simd::prefetch(reinterpret_cast<uintptr_t>(p) + ahead_, bytes_);
    return p;
  }

 private:
  static constexpr int64_t kSize = sizeof(A);

  int64_t stride_, bytes_;
  const A* first_;
  uintptr_t ahead_;
};

/// Scores (padded(keys)) of the row. `query` (padded(D)) is scratch.
template <class A>
void form_scores(const Row& row, float* s, float* query) {
  const Attention& a = row.a;
  const int64_t D = a.q.shape[3];
  pack_rows<A>(query, a.q, row.b, row.h, row.i, row.i + 1, padded(D),
               1 / a.content_divisor<float>());
  const Seen<A> keys(row, a.k);
  for (int64_t j = 0; j < row.keys(); j += simd::kWidth) {
    Vec sums[simd::kWidth] = {};
    const int64_t n = std::min<int64_t>(simd::kWidth, row.keys() - j);
    for (int64_t l = 0; l < n; ++l) {
      const A* const key = keys.take(j + l);
      Vec sum{};
      for_vectors(D, [&](int64_t c, auto lanes) {
        sum += simd::load(query + c) * rows::load(key + c, lanes);
      });
      sums[l] = sum;
    }
    simd::store(s + j, simd::sums_of(sums));
  }
}

/// What the row's content is multiplied by, and its bias: t (s + b) is t s + t b.
struct RowFactors {
  float t, of_bias;

  explicit RowFactors(const Row& row)
      : t(row.a.scale.t ? row.a.scale.t.ptr<float>()[row.at()] : 1),
        of_bias(row.a.scale.on_bias ? t : 1) {}
};

void fill_behind(float* z, int64_t n) { std::fill(z + n, z + padded(n), kMinusInfinity); }

/// z (padded(keys)) of the row, minus infinity past its keys. `query` (padded(D)) is scratch.
template <class A>
void form_logits(const Row& row, float* z, float* query) {
  const RowFactors by(row);
  form_scores<A>(row, z, query);
  for (int64_t j = 0; j < row.keys(); ++j) z[j] *= by.t;
  row.for_biases([&](int64_t j, float bias) { z[j] += by.of_bias * bias; });
  fill_behind(z, row.keys());
}

/// The row's softmax: p = exp(z - m) takes the place of z.
struct Softmax {
  float m = kMinusInfinity, sum = 0;  // of p
  float weighted = 0;                 // the sum of p (z - m)

  Softmax(float* z, int64_t keys) {
    const int64_t n = padded(keys);
    Vec highest = simd::splat(m), total{}, of_weighted{};
    for (int64_t j = 0; j < n; j += simd::kWidth) highest = simd::max(simd::load(z + j), highest);
    m = simd::maximum(highest);
    for (int64_t j = 0; j < n; j += simd::kWidth) {
      const Vec x = simd::load(z + j);
      const Vec below = x == kMinusInfinity ? Vec{} : x - m;
      const Vec p = x == kMinusInfinity ? Vec{} : simd::exp(below);
      simd::store(z + j, p);
      total += p;
      of_weighted += p * below;
    }
    sum = simd::sum(total);
    weighted = simd::sum(of_weighted);
  }
};

/// to (padded(D)) = p v, kept in kVectors registers, or with 0 in memory.
template <class A, int kVectors>
void weigh_values(const Row& row, const float* p, float* to) {
  const int64_t D = row.a.q.shape[3];
  Vec sums[std::max(kVectors, 1)] = {};
  if (kVectors == 0) std::fill_n(to, padded(D), 0.0f);
  const Seen<A> values(row, row.a.v);
  for (int64_t j = 0; j < row.keys(); ++j) {
    const A* const value = values.take(j);
    if constexpr (kVectors == 0) {
      for_vectors(D, [&](int64_t c, auto lanes) {
        simd::store(to + c, simd::load(to + c) + p[j] * rows::load(value + c, lanes));
      });
    } else {
      for (int n = 0; n < kVectors; ++n) sums[n] += p[j] * simd::load(value + n * simd::kWidth);
    }
  }
  for (int n = 0; n < kVectors; ++n) simd::store(to + n * simd::kWidth, sums[n]);
}

/// out = p v / sum; `to` (padded(D)) is scratch.
template <class A>
void form_output(const Tensor& out, const Row& row, const float* p, float sum, float* to) {
  const int64_t D = row.a.q.shape[3], Dp = padded(D);
  switch (D % simd::kWidth == 0 ? D / simd::kWidth : 0) {
    case 2:
      weigh_values<A, 2>(row, p, to);
      break;
    case 3:
      weigh_values<A, 3>(row, p, to);
      break;
    case 4:
      weigh_values<A, 4>(row, p, to);
      break;
    case 6:
      weigh_values<A, 6>(row, p, to);
      break;
    case 8:
      weigh_values<A, 8>(row, p, to);
      break;
    default:
      weigh_values<A, 0>(row, p, to);
  }
  unpack_rows<A>(out, row.b, row.h, row.i, row.i + 1, to, Dp, 1 / sum);
}

/// z becomes the row's weights; nothing is saved for a backward pass.
void normalize(const Attention& a, int64_t h, float* z, int64_t keys) {
  const auto work = [&](RowNormalizer& normalizer) {
    SavedRow unused;
    normalizer.set_head(h);
    normalizer.weights(z, keys, unused);
  };
  with_row_normalizer(a.normalizer, a.k.shape[1], std::ref(work));
}

/// What rows of logits become.
struct RowResults {
  Tensor out;
  const AttentionSaved& saved;
  Tensor entropy;

  /// Of a row's logits z; `channels` (padded(D)) is scratch.
  template <class A>
  void take(const Row& row, float* z, float* channels) const {
    const Attention& a = row.a;
    if (a.normalizer.form.kind != NormalizerKind::softmax && out) {
      normalize(a, row.h, z, row.keys());
      form_output<A>(out, row, z, 1, channels);
      return;
    }
    const Softmax p(z, row.keys());
    if (out) form_output<A>(out, row, z, p.sum, channels);
    if (saved.level) saved.level.ptr<float>()[row.at()] = p.m + std::log(p.sum);
    if (entropy) entropy.ptr<float>()[row.at()] = std::log(p.sum) - p.weighted / p.sum;
  }
};

/// The rows of all heads at once, where those are mixed: threads share heads, then keys, then heads
/// again.
template <class A>
void for_mixed_rows(const RowResults& results, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  const int64_t stride = padded(a.k.shape[1]);
  require(s.mix_shared.size() >= mixed_row_floats(a.k.shape[1], H),
          "texts that were planned for, of as many heads");
  const HeadsOfKeys z{s.mix_shared.ptr<float>(), stride}, bias{z.data + H * stride, stride};
  for (int64_t n = 0; n < B * T; ++n) {
    const int64_t b = n / T, i = n % T;
    parallel_for_slots(H, [&](int64_t h, int64_t slot) {
      const Row row(a, b, h, i);
      const int64_t keys = row.keys();
      form_scores<A>(row, z.of(h), s.of_mix_slot(slot));
      std::fill_n(bias.of(h), padded(keys), 0.0f);
      row.for_biases([&](int64_t j, float x) { bias.of(h)[j] = x; });
      std::fill(z.of(h) + keys, z.of(h) + padded(keys), 0.0f);
    });
    const int64_t keys = Row(a, b, 0, i).keys();
    parallel_for_slots(ceil_div(keys, kMixKeys), [&](int64_t block, int64_t slot) {
      Pieces pieces(s.of_mix_slot(slot));
      HeadNetwork network(a.mix, pieces, false);
      const int64_t first = block * kMixKeys, count = std::min(kMixKeys, keys - first);
      network.forward(count, z.from(first), bias.from(first));
      for (int64_t h = 0; h < H; ++h) {
        const RowFactors by(Row(a, b, h, i));
        float* const own = z.of(h) + first;
        for (int64_t j = 0; j < count; j += simd::kWidth) {
          simd::store(own + j, by.t * simd::load(own + j) +
                                   by.of_bias * simd::load(network.biases().of(h) + j));
        }
      }
    });
    parallel_for_slots(H, [&](int64_t h, int64_t slot) {
      fill_behind(z.of(h), keys);
      results.take<A>(Row(a, b, h, i), z.of(h), s.of_mix_slot(slot));
    });
  }
}

}  // namespace

void cpu_attention_of_rows(Tensor out, const AttentionSaved& saved, Tensor entropy,
                           const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2];
  require(!entropy || !a.scale.t, "logits without a scale");
  require(!entropy || a.normalizer.form.kind == NormalizerKind::softmax, "softmax's entropy");
  require(a.mix || row_floats(a.k.shape[1], a.q.shape[3]) <= s.packed.shape[1],
          "texts that were planned for");
  const RowResults results = {out, saved, entropy};
  dispatch_activation(a.q.dtype, [&]<class A>() {
    if (a.mix) return for_mixed_rows<A>(results, a, s);
    parallel_for_slots(B * H, [&](int64_t n, int64_t slot) {
      Pieces pieces(s.of_slot(slot));
      float* const z = pieces.take(a.k.shape[1]);
      float* const channels = pieces.take(a.q.shape[3]);
      for (int64_t i = 0; i < T; ++i) {
        const Row row(a, n / H, n % H, i);
        form_logits<A>(row, z, channels);
        results.take<A>(row, z, channels);
      }
    });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
