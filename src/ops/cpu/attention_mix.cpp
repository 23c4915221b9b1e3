// Forward passes of the CPU attention where heads are mixed (attention_mix.h).

#include "ops/cpu/attention_mix.h"

#include <cmath>

#include "ops/cpu/attention_row_sums.h"
#include "ops/cpu/attention_statistics.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

/// finish(b, h, strip, z, values, room) for every head of every strip, whose logits are in z, minus
/// infinity beside a row's keys. values: packed, where `with_values`. room: a row's floats, and
/// (kQ, padded(D)) behind it.
template <class A, class F>
void for_strips(const Attention& a, const AttentionScratch& s, bool with_values, F&& finish) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2], parts = parts_of(T);
  for_groups(a, s, [&](int64_t first, int64_t sequences) {
    const Packed keys(a, s.mix_shared.ptr<float>());
    const Packed values(a, s.mix_shared.ptr<float>() + packed_floats(a, sequences));
    parallel_for(sequences * K, [&](int64_t n) {
      const int64_t b = first + n / K, kh = n % K;
      float* const packed = values.of(n / K, kh);
      pack_transposed<A>(keys.of(n / K, kh), packed, a.k, b, kh);
      if (with_values) pack_rows<A>(packed, a.v, b, kh, 0, T, padded(a.v.shape[3]), 1);
    });
    parallel_for_slots(sequences * parts, [&](int64_t n, int64_t slot) {
      const int64_t of_group = n / parts, b = first + of_group;
      const Span queries = query_part(T, n % parts);
      Pieces pieces(s.of_mix_slot(slot));
      const HeadStrips z(a, pieces.take(most_head_strips(T, H)));
      float* const room = pieces.take(strip_stride(T) + kQ * padded(a.q.shape[3]));
      float* const of_biases = pieces.take(row_biases_floats(T, H));
      const auto work = [&](RowBiases& biases) {
        MixStage stage(a, b, pieces, biases, false);
        for (int64_t i0 = queries.begin; i0 < queries.end; i0 += mix_rows(T, H)) {
          const Strip strip(a, b, i0, std::min(i0 + mix_rows(T, H), queries.end));
          stage.form_scores<A>(strip, z, [&](int64_t kh) { return keys.of(of_group, kh); });
          for (int64_t i = strip.i0; i < strip.i1; ++i) {
            stage.form_logits(strip, z, z, strip.row(i));
          }
          for (int64_t h = 0; h < H; ++h) {
            for (int64_t i = strip.i0; i < strip.i1; ++i) {
              strip.fill_beside(z.of(h), strip.row(i), row::kMinusInfinity);
            }
            finish(b, h, strip, z.of(h), values.of(of_group, h / (H / K)), room);
          }
        }
      };
      with_row_biases(a, s, nullptr, of_biases, std::ref(work));
    });
  });
}

/// The entropy of softmax of a row's logits.
float softmax_entropy(const float* z, int64_t n) {
  const float m = row::maximum(z, n);
  simd::Vec total{}, weighted{};
  row::for_vectors(n, [&](int64_t j) {
    const simd::Vec x = simd::load(z + j);
    const simd::Vec below = x == row::kMinusInfinity ? simd::Vec{} : x - m;
    const simd::Vec p = x == row::kMinusInfinity ? simd::Vec{} : simd::exp(below);
    total += p;
    weighted += p * below;
  });
  const float sum = simd::sum(total);
  return std::log(sum) - simd::sum(weighted) / sum;
}

/// Floats of a task of for_strips().
int64_t strips_floats(int64_t T, int64_t H, int64_t D, int64_t F) {
  return most_head_strips(T, H) + strip_stride(T) + kQ * padded(D) + row_biases_floats(T, H) +
         MixStage::floats(T, H, D, F, false) + 4 * simd::kWidth;
}

}  // namespace

void AttentionScratch::plan_mix(Arena& arena, const WorkspaceShape& w) {
  mix_threads = max_threads();
  int64_t sequences = 0;  // of the longest, for keys and values, and backward for what parts give
  int64_t tasks = 0, shared = 0;
  for (int64_t parts = 1; parts <= parts_of(w.T); ++parts) {
    const int64_t longest = parts == parts_of(w.T) ? w.T : (2 * parts + 1) * kK;
    sequences = mix_group(w.B, longest, mix_threads);
    tasks = std::max(tasks, sequences * parts);
    shared = std::max(shared, sequences * (w.backward ? 3 + 2 * parts : 2) * padded_keys(longest));
  }
  shared *= w.K * padded(w.D);
  int64_t packed = strips_floats(w.T, w.H, w.D, w.mix_hidden);
  if (w.backward) {
    packed = std::max(
        packed, row_biases_floats(w.T, w.H) + mix_backward_floats(w.T, w.H, w.D, w.mix_hidden));
  }
  if (!w.backward) {  // incremental decoding, from its second piece on
    shared = std::max(shared, mixed_row_floats(w.past + w.T, w.H));
    tasks = std::max(tasks, mixed_row_tasks(w.past + w.T, w.H));
  }
  arena.add("scratch.attention_mix", &mix_shared, Dtype::f32, {shared});
  arena.add("scratch.attention_mix", &mix_packed, Dtype::f32,
            {std::min<int64_t>(max_threads(), tasks), padded(packed) + 256});
  if (!w.backward) return;
  arena.add("scratch.attention_mix", &mix_partials, Dtype::f32,
            {w.B * parts_of(w.T), HeadNetwork::weights(w.H, w.mix_hidden, 2 * w.H)});
}

float* AttentionScratch::of_mix_slot(int64_t slot) const {
  require(slot < mix_packed.shape[0],
          "no more threads or tasks than when the scratch was planned, and a mix that was planned");
  return mix_packed.ptr<float>() + slot * mix_packed.stride[0];
}

void cpu_attention_mix_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                               const AttentionScratch& s) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], Dp = padded(a.q.shape[3]);
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_strips<A>(
        a, s, true,
        [&](int64_t b, int64_t h, const Strip& strip, float* z, const float* values, float* room) {
          const LiveTiles live(saved.live, b, h);
          live.clear(strip.i0, strip.i1);
          const auto work = [&](RowNormalizer& normalizer) {
            normalizer.set_head(h);
            for (int64_t i = strip.i0; i < strip.i1; ++i) {
              const RowSpan row = strip.row(i);
              SavedRow of_row;
              normalizer.weights(strip.at(z, i, row.first), row.n, of_row);
              of_row.last += static_cast<int32_t>(row.first);
              save_row(saved, (b * H + h) * T + i, of_row);
              strip.fill_beside(z, row, 0);
              strip.for_tiles([&](int64_t j0) {
                // NaN is weight too.
                if (!(row::total(strip.at(z, i, j0), kK) <= 0)) live.mark(i, j0);
              });
            }
          };
          with_row_normalizer(a.normalizer, T, std::ref(work));
          float* const sum = room;
          std::fill_n(sum, strip.rows() * Dp, 0.0f);
          strip.for_tiles([&](int64_t j0) {
            if (!live.any(strip.i0, strip.i1, j0)) return;
            tile::product<true>(strip.rows(), Dp, std::min(kK, strip.end - j0),
                                {strip.at(z, strip.i0, j0), strip_stride(T), 1}, values + j0 * Dp,
                                Dp, sum, Dp);
          });
          unpack_rows<A>(out, b, h, strip.i0, strip.i1, sum, Dp, 1);
        });
  });
}

void cpu_attention_mix_entropy(Tensor entropy, const Attention& a, const AttentionScratch& s) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2];
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_strips<A>(a, s, false,
                  [&](int64_t b, int64_t h, const Strip& strip, float* z, const float*, float*) {
                    for (int64_t i = strip.i0; i < strip.i1; ++i) {
                      const RowSpan row = strip.row(i);
                      entropy.ptr<float>()[(b * H + h) * T + i] =
                          softmax_entropy(strip.at(z, i, row.first), row.n);
                    }
                  });
  });
}

void cpu_attention_mix_statistics(const RowStatistics& out, const AttentionSaved& saved,
                                  const Attention& a, const AttentionScratch& s) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2];
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_strips<A>(
        a, s, false,
        [&](int64_t b, int64_t h, const Strip& strip, float* z, const float*, float* room) {
          const auto work = [&](RowNormalizer& normalizer) {
            normalizer.set_head(h);
            for (int64_t i = strip.i0; i < strip.i1; ++i) {
              const RowSpan row = strip.row(i);
              const int64_t at = (b * H + h) * T + i;
              SavedRow of_row = saved_row(saved, at);
              of_row.last -= static_cast<int32_t>(row.first);
              out.take(at, strip.at(z, i, row.first), room, row.n, normalizer, of_row);
            }
          };
          with_row_normalizer(a.normalizer, T, std::ref(work));
        });
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
