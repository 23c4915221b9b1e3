// Forward passes of the CPU attention where heads are mixed (attention_mix.h).

#include "ops/cpu/attention_mix.h"

#include "ops/cpu/attention_operands.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

/// f(bias, normalizer).
template <class F>
void with_rows(const Attention& a, const AttentionScratch& s, Pieces& pieces, F&& f) {
  const auto work = [&](const Policies& policies) { f(policies.bias, *policies.rows); };
  with_policies(a, s, nullptr, pieces, Weighing::rows, std::ref(work));
}

/// All heads of every strip.
template <class A>
void for_strips(const Results& results, const Attention& a, const AttentionScratch& s) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2], parts = parts_of(T);
  const int64_t Dp = padded(a.q.shape[3]);
  const NormalizerTraits traits = traits_of(a.normalizer.form.kind);
  for_groups(a, s, [&](int64_t first, int64_t sequences) {
    const Packed keys(a, s.mix_shared.ptr<float>());
    const Packed values(a, s.mix_shared.ptr<float>() + packed_floats(a, sequences));
    parallel_for(sequences * K, [&](int64_t n) {
      const int64_t b = first + n / K, kh = n % K;
      float* const packed = values.of(n / K, kh);
      pack_transposed<A>(keys.of(n / K, kh), packed, a.k, b, kh);
      if (results.out) pack_rows<A>(packed, a.v, b, kh, 0, T, Dp, 1);
    });
    parallel_for_slots(sequences * parts, [&](int64_t n, int64_t slot) {
      const int64_t of_group = n / parts, b = first + of_group;
      const Span queries = query_part(a, n % parts);
      Pieces pieces = s.of_mix_slot(slot);
      const HeadStrips z(a, pieces.take(most_head_strips(T, H)));
      float* const u = pieces.take(strip_stride(T));
      float* const sum = pieces.take(kQ * Dp);
      with_rows(a, s, pieces, [&](LogitBias& bias, RowNormalizer& normalizer) {
        MixStage stage(a, b, pieces, bias, false);
        for (int64_t i0 = queries.begin; i0 < queries.end; i0 += mix_rows(T, H)) {
          const RowsOfStrip strip(stage.sight(), i0, std::min(i0 + mix_rows(T, H), queries.end));
          stage.form_scores<A>(strip, z, [&](int64_t kh) { return keys.of(of_group, kh); });
          for (int64_t i = strip.i0; i < strip.i1; ++i) stage.form_logits(strip, z, z, i);
          for (int64_t h = 0; h < H; ++h) {
            const Block p = z.of(strip, h);
            const LiveTiles live(results.out ? results.saved.live : Tensor(), b, h);
            live.clear(strip.i0, strip.i1);
            normalizer.set_head(h);
            for (int64_t i = strip.i0; i < strip.i1; ++i) {
              results.weigh(p, stage.row(p, i), (b * H + h) * T + i, traits, normalizer, u, live);
            }
            if (!results.out) continue;
            std::fill_n(sum, strip.rows() * Dp, 0.0f);
            const float* const of_head = values.of(of_group, h / (H / K));
            strip.for_tiles([&](int64_t j0) {
              if (!live.any(strip.i0, strip.i1, j0)) return;
              tile::product<true>(strip.rows(), Dp, std::min(kK, strip.end - j0),
                                  {p.at(strip.i0, j0), p.stride, 1}, of_head + j0 * Dp, Dp, sum,
                                  Dp);
            });
            unpack_rows<A>(results.out, b, h, strip.i0, strip.i1, sum, Dp, 1);
          }
        }
      });
    });
  });
}

/// A row at a time after keys of the past: threads share heads, then keys, then heads again.
void for_rows(const Results& results, const Attention& a, const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2];
  const int64_t most = a.k.shape[1], Dp = padded(a.q.shape[3]), stride = strip_stride(most);
  require(s.mix_shared.size() >= mixed_row_floats(most, H),
          "texts that were planned for, of as many heads");
  const NormalizerTraits traits = traits_of(a.normalizer.form.kind);
  const HeadsOfKeys z{s.mix_shared.ptr<float>(), stride}, biases{z.data + H * stride, stride};
  /// f(operands, scratch): operands of the keys that a row of head h sees.
  const auto with_keys = [&](int64_t slot, int64_t b, int64_t h, const Block& row, auto&& f) {
    Pieces pieces = s.of_mix_slot(slot);
    const auto work = [&](Operands& operands) {
      operands.pack_keys(b, h / (H / K), row.j0, row.end);
      f(operands, pieces);
    };
    with_operands(a, s, pieces, {Reading::in_place}, 0, 1, std::ref(work));
  };
  for (int64_t n = 0; n < B * T; ++n) {
    const int64_t b = n / T, i = a.past() + n % T;
    const Sight sight(a, b);
    const auto row_of = [&](const HeadsOfKeys& x, int64_t h) {
      return Block{x.of(h), stride, i, i + 1, sight.first(i), sight.last(i) + 1};
    };
    const int64_t keys = row_of(z, 0).keys();
    parallel_for_slots(H, [&](int64_t h, int64_t slot) {
      const Block row = row_of(z, h);
      with_keys(slot, b, h, row, [&](Operands& operands, Pieces& pieces) {
        operands.pack_queries(0, b, h, i - a.past(), i - a.past() + 1);
        for (int64_t j = 0; j < keys; j += kK) operands.scores(0, 0, 1, j, row.data + j, stride);
        with_rows(a, s, pieces, [&](LogitBias& bias, RowNormalizer&) {
          bias.set_head(b, h);
          bias.set_rows(i, i + 1, row.j0, row.end);
          std::copy_n(bias.form(row).data, keys, biases.of(h));
          std::fill_n(biases.of(h) + keys, simd::kWidth, 0.0f);
        });
      });
    });
    parallel_for_slots(ceil_div(keys, kMixKeys), [&](int64_t block, int64_t slot) {
      Pieces pieces = s.of_mix_slot(slot);
      HeadNetwork network(a.mix, pieces, false);
      const int64_t first = block * kMixKeys, count = std::min(kMixKeys, keys - first);
      network.forward(count, z.from(first), biases.from(first));
      for (int64_t h = 0; h < H; ++h) {
        const Factors t(a, b, h);
        const Block of_block = {z.of(h) + first, stride, i, i + 1, 0, count};
        form_logits(of_block, {network.biases().of(h), 0}, t.of_content(i), t.of_bias(i));
      }
    });
    parallel_for_slots(H, [&](int64_t h, int64_t slot) {
      const Block row = row_of(z, h);
      Block whole = row;
      whole.end = row.j0 + padded_keys(keys);
      with_keys(slot, b, h, row, [&](Operands& operands, Pieces& pieces) {
        float* const sum = pieces.take(Dp);
        const auto work = [&](RowNormalizer& normalizer) {
          normalizer.set_head(h);
          results.weigh(whole, row, (b * H + h) * T + n % T, traits, normalizer, nullptr,
                        LiveTiles({}, 0, 0));
        };
        with_row_normalizer(a.normalizer, most, std::ref(work));
        if (!results.out) return;
        std::fill_n(sum, Dp, 0.0f);
        for (int64_t j = 0; j < keys; j += kK) {
          operands.add_values(sum, 1, row.data + j, stride, j, std::min(kK, keys - j));
        }
        rows::dispatch_activation(a.q.dtype, [&]<class A>() {
          unpack_rows<A>(results.out, b, h, n % T, n % T + 1, sum, Dp, 1);
        });
      });
    });
  }
}

void run_mixed(const Results& results, const Attention& a, const AttentionScratch& s) {
  if (a.past() > 0) return for_rows(results, a, s);
  dispatch_activation(a.q.dtype, [&]<class A>() { for_strips<A>(results, a, s); });
}

/// Floats of a task of for_strips().
int64_t strips_floats(int64_t T, int64_t H, int64_t D, int64_t F, const ContentShape& bias) {
  return most_head_strips(T, H) + strip_stride(T) + kQ * padded(D) + bias_floats(T, D, bias) +
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
  const ContentShape bias = {false, 0, !w.bidirectional};
  int64_t packed = strips_floats(w.T, w.H, w.D, w.mix_hidden, bias);
  if (w.backward) {
    packed = std::max(
        packed, bias_floats(w.T, w.D, bias) + mix_backward_floats(w.T, w.H, w.D, w.mix_hidden));
  }
  if (!w.backward) {  // incremental decoding
    shared = std::max(shared, mixed_row_floats(w.past + w.T, w.H));
    tasks = std::max(tasks, mixed_row_tasks(w.past + w.T, w.H));
    packed = std::max(packed, Operands::floats(0, 1, padded(w.D)) + padded(w.D) +
                                  bias_floats(w.past + w.T, w.D, bias) + 4 * simd::kWidth);
  }
  arena.add("scratch.attention_mix", &mix_shared, Dtype::f32, {shared});
  arena.add("scratch.attention_mix", &mix_packed, Dtype::f32,
            {std::min<int64_t>(max_threads(), tasks), padded(packed) + 256});
  if (!w.backward) return;
  arena.add("scratch.attention_mix", &mix_partials, Dtype::f32,
            {w.B * parts_of(w.T), HeadNetwork::weights(w.H, w.mix_hidden, 2 * w.H)});
}

tiles::Pieces AttentionScratch::of_mix_slot(int64_t slot) const {
  require(slot < mix_packed.shape[0],
          "no more threads or tasks than when the scratch was planned, and a mix that was planned");
  return {mix_packed.ptr<float>() + slot * mix_packed.stride[0], mix_packed.shape[1]};
}

void cpu_attention_mix_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                               const AttentionScratch& s) {
  run_mixed({out, saved, {}, {}}, a, s);
}
void cpu_attention_mix_entropy(Tensor entropy, const Attention& a, const AttentionScratch& s) {
  run_mixed({{}, {}, entropy, {}}, a, s);
}
void cpu_attention_mix_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                                  const Attention& a, const AttentionScratch& s) {
  run_mixed({{}, saved, entropy, nonzero_keys}, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
