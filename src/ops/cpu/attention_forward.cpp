// The forward pass of the CPU attention, and what reads its rows: entropies and statistics. A task
// takes tiles of queries by tiles of keys, or strips of queries by all their keys. For tiles, keys
// of the past are packed in blocks, so that this memory does not grow with the text.

#include <optional>

#include "ops/cpu/attention_mix.h"
#include "ops/cpu/attention_operands.h"
#include "ops/cpu/attention_policies.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/softmax_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

constexpr int64_t kBlockKeys = 16 * kK;

/// How a pass reads keys, and the scratch of its tasks.
struct Plan {
  Weighing weighing;
  MixShape mix;
  Reading reading;
  int64_t block_keys;   // packed at a time
  int64_t query_tiles;  // of a task at a time

  Plan(Weighing w, const MixShape& m, int64_t past, int64_t T)
      : weighing(w),
        mix(m),
        reading(past > 0 && (T < kLeastPackedRows || w == Weighing::rows) ? Reading::in_place
                : w == Weighing::tiles                                    ? Reading::packed
                                                                          : Reading::packed_fp32),
        block_keys(reading != Reading::in_place && past > 0
                       ? std::min(kBlockKeys, padded_keys(past + T))
                       : padded_keys(past + T)),
        query_tiles(block_keys < past + T ? ceil_div(T, kQ) : 1) {}

  /// Strips of a task: one, or with a mix logits and biases of all heads, in its own memory.
  int64_t strips() const { return !mix ? 1 : shares_strips() ? 0 : 2 * mix.H; }
  bool shares_strips() const { return mix && reading == Reading::in_place; }

  int64_t packed_keys() const {
    return reading == Reading::in_place ? 0 : block_keys * (mix ? mix.K : 1);
  }

  int64_t floats(int64_t keys, int64_t D, const ContentShape& content) const {
    const int64_t Dp = padded(D);
    const int64_t weighed =
        weighing == Weighing::rows
            ? strips() * most_strip_floats(keys) + strip_stride(keys) + kQ * Dp + mix.floats(false)
            : query_tiles * Running::floats(Dp) + kQ * kK;
    return Operands::floats(mix ? 0 : packed_keys(), query_tiles, Dp) +
           bias_floats(keys, D, content) + weighed + 2 * kQ + 16 * simd::kWidth;
  }
};

/// The queries [queries.begin, queries.end), by position, of query heads that read one key head, or
/// with a mix of all heads.
class ForwardTask {
 public:
  /// shared: with a mix what tasks have together, their strips or their packed keys.
  ForwardTask(const Results& results, const Attention& a, const Plan& plan, Operands& operands,
              const Policies& policies, Pieces& pieces, int64_t b, Span queries, float* shared)
      : to_(results),
        a_(a),
        plan_(plan),
        operands_(operands),
        bias_(policies.bias),
        tiles_(policies.tiles),
        rows_(policies.rows),
        b_(b),
        queries_(queries),
        sight_(a, b) {
    if (tiles_) {
      content_ = pieces.take(kQ);
      of_bias_ = pieces.take(kQ);
      logits_ = pieces.take(kQ * kK);
      sums_ = pieces.take(plan.query_tiles * Running::floats(Dp_));
    } else {
      logits_ = plan.shares_strips() ? shared : pieces.take(plan.strips() * strip_floats(keys_));
      u_ = pieces.take(strip_stride(keys_));
      sums_ = pieces.take(kQ * Dp_);
      if (plan.mix && !plan.shares_strips()) {
        packed_ = {0, plan.mix.K};
        packed_from_ = 0;
      }
      if (a.mix) mix_.emplace(a, b, logits_ + H_ * strip_floats(keys_), pieces, false);
    }
  }

  void run(Span heads) {
    if (a_.mix) return attend_strips(heads);
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      if (rows_) {
        attend_strips({h, h + 1});
      } else if (plan_.query_tiles > 1) {
        attend_tiles(h, queries_);
      } else {
        for (int64_t i0 = queries_.begin; i0 < queries_.end; i0 += kQ) {
          attend_tiles(h, {i0, std::min(i0 + kQ, queries_.end)});
        }
      }
    }
  }

  // The parts of a strip: scores of every head, with a mix their logits, then weights of every
  // head.

  /// Keys and values that the task's queries see of some query heads.
  void pack_keys(Span heads) {
    pack_keys(heads, sight_.first_tile(queries_.begin), sight_.end(queries_.end));
  }
  void form_scores(const Strip& s, int64_t h) {
    const Block z = logits().of(s, h);
    set_head(h);
    bias_.set_rows(s.i0, s.i1, s.from, s.end);
    operands_.pack_queries(0, b_, h, s.i0 - past_, s.i1 - past_);
    s.for_tiles([&](int64_t j0, int64_t) {
      operands_.scores(0, 0, s.rows(), key_at(j0), z.at(s.i0, j0), z.stride);
    });
    for (int64_t i = s.i0; mix_ && i < s.i1; ++i) mix_->keep_biases(s, h, sight_.row(z, i), bias_);
  }
  void attend(const Strip& s, int64_t h) {
    const Block z = logits().of(s, h);
    // Which tiles have weight is for a backward pass over all rows.
    const LiveTiles live(to_.out && past_ == 0 ? to_.saved.live : Tensor(), b_, h);
    const Factors t(a_, b_, h);
    h_ = h;
    rows_->set_head(h);
    live.clear(s.i0, s.i1);
    for (int64_t i = s.i0; i < s.i1; ++i) {
      const Block row = sight_.row(z, i);
      if (!mix_) bias_.add_to(row, t.of_content(i), t.of_bias(i));
      to_.weigh(z, row, row_at(i), traits_, *rows_, u_, live);
    }
    if (!to_.out) return;
    std::fill_n(sums_, s.rows() * Dp_, 0.0f);
    s.for_tiles([&](int64_t j0, int64_t keys) {
      if (!live.any(s.i0, s.i1, j0)) return;
      operands_.add_values(sums_, s.rows(), z.at(s.i0, j0), z.stride, key_at(j0), keys);
    });
    unpack(s.i0, s.i1, sums_);
  }

 private:
  int64_t row_at(int64_t i) const { return (b_ * H_ + h_) * T_ + i - past_; }
  Strips logits() const { return {logits_, keys_, !a_.mix}; }
  void set_head(int64_t h) {
    if (h == h_) return;
    h_ = h;
    bias_.set_head(b_, h);
  }
  void pack_keys(Span heads, int64_t begin, int64_t end) {
    const Span of = {heads.begin / group_, (heads.end - 1) / group_ + 1};
    if (of.begin == packed_.begin && begin == packed_from_) return;
    for (int64_t kh = of.begin; kh < of.end; ++kh) {
      operands_.pack_keys((kh - of.begin) * plan_.block_keys, b_, kh, begin, end);
    }
    packed_ = of;
    packed_from_ = begin;
  }
  /// Where the operands have key j of the head.
  int64_t key_at(int64_t j) const {
    return (h_ / group_ - packed_.begin) * plan_.block_keys + j - packed_from_;
  }
  void unpack(int64_t i0, int64_t i1, const float* rows) const {
    unpack_rows(to_.out, b_, h_, i0 - past_, i1 - past_, rows, Dp_, 1);
  }

  /// Softmax of the queries of some tiles, while blocks of keys come by.
  void attend_tiles(int64_t h, Span queries) {
    set_head(h);
    const auto for_tiles = [&](auto&& f) {
      for (int64_t n = 0, i0 = queries.begin; i0 < queries.end; ++n, i0 += kQ) {
        const Running run(sums_ + n * Running::floats(Dp_), Dp_);
        f(n, i0, std::min(i0 + kQ, queries.end), run);
      }
    };
    for_tiles([&](int64_t n, int64_t i0, int64_t i1, const Running& run) {
      operands_.pack_queries(n, b_, h, i0 - past_, i1 - past_);
      run.begin();
    });
    const int64_t first = sight_.first_tile(queries_.begin), end = sight_.end(queries_.end);
    for (int64_t block = first; block < end; block += plan_.block_keys) {
      const int64_t end_of_block = std::min(block + plan_.block_keys, end);
      pack_keys({h, h + 1}, block, end_of_block);
      for_tiles([&](int64_t n, int64_t i0, int64_t i1, const Running& run) {
        const Span keys = {std::max(block, sight_.first_tile(i0)),
                           std::min(end_of_block, sight_.end(i1))};
        if (keys.begin < keys.end) attend_tile(n, i0, i1, run, keys);
      });
    }
    for_tiles([&](int64_t, int64_t i0, int64_t i1, const Running& run) {
      for (int64_t i = i0; i < i1; ++i) {
        const float lse = run.end(i - i0);
        if (to_.saved.level) to_.saved.level.ptr<float>()[row_at(i)] = lse;
      }
      unpack(i0, i1, run.out);
    });
  }

  void attend_tile(int64_t n, int64_t i0, int64_t i1, const Running& run, Span keys) {
    const Factors t(a_, b_, h_);
    for (int64_t i = i0; i < i1; ++i) {
      content_[i - i0] = t.of_content(i) * operands_.score_factor();
      of_bias_[i - i0] = t.of_bias(i);
    }
    const RowFactors factors = {content_, of_bias_};
    bias_.set_rows(i0, i1, keys.begin, keys.end);
    for (int64_t j0 = keys.begin; j0 < keys.end; j0 += kK) {
      const int64_t at = key_at(j0), live = std::min(kK, keys.end - j0);
      for (int64_t first = i0; first < i1; first += operands_.rows_at_once) {
        const int64_t r = first - i0, rows = std::min(operands_.rows_at_once, i1 - first);
        operands_.scores(n, r, rows, at, logits_, kK);
        tiles_->forward({logits_, kK, first, first + rows, j0, j0 + kK}, factors.from(r),
                        run.from(r), sight_, operands_.in_two);
        operands_.add_values(run.out + r * Dp_, rows, logits_, kK, at, live);
      }
    }
  }

  /// Strips of queries by all keys that any of them sees, of heads whose logits are formed
  /// together.
  void attend_strips(Span heads) {
    if (!mix_) pack_keys(heads);
    for (int64_t i0 = queries_.begin; i0 < queries_.end; i0 += strip_rows(keys_)) {
      const Strip s(sight_, i0, std::min(i0 + strip_rows(keys_), queries_.end));
      for (int64_t h = heads.begin; h < heads.end; ++h) form_scores(s, h);
      if (mix_) mix_->form_logits(s, logits(), logits());
      for (int64_t h = heads.begin; h < heads.end; ++h) attend(s, h);
    }
  }

  const Results& to_;
  const Attention& a_;
  const Plan& plan_;
  Operands& operands_;
  LogitBias& bias_;
  SoftmaxTiles* const tiles_;
  RowNormalizer* const rows_;
  const int64_t b_;
  const Span queries_;
  const Sight sight_;
  const int64_t past_ = a_.past(), T_ = a_.q.shape[1], H_ = a_.q.shape[2], keys_ = a_.k.shape[1];
  const int64_t Dp_ = padded(a_.q.shape[3]);
  const NormalizerTraits traits_ = traits_of(a_.form.normalizer.kind);
  const int64_t group_ = H_ / a_.k.shape[2];
  int64_t h_ = -1, packed_from_ = -1;
  Span packed_;                                    // key heads
  float *content_ = nullptr, *of_bias_ = nullptr;  // (kQ): RowFactors of a tile
  float* logits_;                                  // a tile's, or Strips
  float* u_ = nullptr;                             // of a row
  float* sums_;                                    // of each tile: Running; of a strip: (kQ, Dp)
  std::optional<HeadMixer> mix_;
};

/// One pass: its tasks.
class Forward {
 public:
  Forward(const Results& results, const Attention& a, const AttentionScratch& s, Weighing weighing)
      : results_(results),
        a_(a),
        s_(s),
        plan_(weighing, a.mix ? MixShape(a) : MixShape(), a.past(), a.q.shape[1]) {}

  void run() const {
    if (plan_.shares_strips()) return run_together();
    if (plan_.mix) return run_mixed();
    for_query_tasks(a_, [&](int64_t slot, int64_t b, Span heads, Span queries) {
      if (queries.begin == queries.end) return;
      with_task(slot, b, queries, nullptr, [heads](ForwardTask& task) { task.run(heads); });
    });
  }

 private:
  OperandsRead reading(float* shared) const {
    return {plan_.reading, static_cast<bool>(results_.out), shared};
  }
  template <class F>
  void with_task(int64_t slot, int64_t b, Span queries, float* shared, F&& f) const {
    Pieces pieces = s_.of_slot(slot);
    const auto with_both = [&](Operands& operands) {
      const auto work = [&](const Policies& policies) {
        ForwardTask task(results_, a_, plan_, operands, policies, pieces, b, queries, shared);
        f(task);
      };
      with_policies(a_, s_, nullptr, pieces, plan_.weighing, std::ref(work));
    };
    with_operands(a_, s_, pieces, reading(shared), plan_.packed_keys(), plan_.query_tiles,
                  std::ref(with_both));
  }

  /// Parts of the queries, of all heads. They share packed keys, of some sequences at a time.
  void run_mixed() const {
    const int64_t B = a_.q.shape[0], T = a_.q.shape[1], H = a_.q.shape[2], K = a_.k.shape[2];
    const int64_t parts = parts_of(T), group = mix_group(B, T);
    const int64_t of_sequence = 2 * plan_.packed_keys() * padded(a_.q.shape[3]);
    require(group * of_sequence <= s_.mix_shared.size(), "a mix that was planned");
    const auto packed = [&](int64_t n) { return s_.mix_shared.ptr<float>() + n * of_sequence; };
    for (int64_t first = 0; first < B; first += group) {
      const int64_t sequences = std::min(group, B - first);
      parallel_for_slots(sequences * K, [&](int64_t n, int64_t slot) {
        Pieces pieces = s_.of_slot(slot);
        const int64_t b = first + n / K, kh = n % K;
        const auto pack = [&](Operands& operands) {
          operands.pack_keys(kh * plan_.block_keys, b, kh, 0, T);
        };
        with_operands(a_, s_, pieces, reading(packed(n / K)), plan_.packed_keys(), 1,
                      std::ref(pack));
      });
      parallel_for_slots(sequences * parts, [&](int64_t n, int64_t slot) {
        with_task(slot, first + n / parts, query_part(a_, n % parts), packed(n / parts),
                  [H](ForwardTask& task) {
                    task.run({0, H});
                  });
      });
    }
  }

  /// After a past, mixed heads of few rows: threads share the heads, then blocks of keys, then
  /// heads again.
  void run_together() const {
    const int64_t B = a_.q.shape[0], H = a_.q.shape[2], keys = a_.k.shape[1], past = a_.past();
    require(s_.mix_shared && s_.mix_shared.size() >= 2 * H * strip_floats(keys),
            "texts that were planned for, of as many heads");
    float* const strips = s_.mix_shared.ptr<float>();
    for (int64_t b = 0; b < B; ++b) {
      const Sight sight(a_, b);
      for (int64_t i0 = past; i0 < keys; i0 += strip_rows(keys)) {
        const Span rows = {i0, std::min(i0 + strip_rows(keys), keys)};
        const Strip s(sight, rows.begin, rows.end);
        const auto for_heads = [&](auto&& f) {
          parallel_for_slots(H, [&](int64_t h, int64_t slot) {
            with_task(slot, b, rows, strips, [&f, h](ForwardTask& task) {
              task.pack_keys({h, h + 1});
              f(task, h);
            });
          });
        };
        for_heads([&s](ForwardTask& task, int64_t h) { task.form_scores(s, h); });
        const int64_t blocks = ceil_div(s.end - s.from, kMixKeys);
        parallel_for_slots(s.rows() * blocks, [&](int64_t n, int64_t slot) {
          Pieces pieces = s_.of_slot(slot);
          HeadMixer mix(a_, b, strips + H * strip_floats(keys), pieces, false);
          const Strips logits(strips, keys, false);
          mix.form_block(s, logits, logits, s.i0 + n / blocks, n % blocks);
        });
        for_heads([&s](ForwardTask& task, int64_t h) { task.attend(s, h); });
      }
    }
  }

  const Results results_;
  const Attention& a_;
  const AttentionScratch& s_;
  const Plan plan_;
};

}  // namespace

int64_t tiles::forward_floats(const WorkspaceShape& w, const ContentShape& content) {
  int64_t floats = 0;
  const MixShape mix(w);
  const auto add = [&](Weighing weighing, const MixShape& of, int64_t past, int64_t T) {
    floats = std::max(floats, Plan(weighing, of, past, T).floats(past + T, w.D, content));
  };
  const auto add_all = [&](Weighing weighing, const MixShape& of) {
    add(weighing, of, 0, w.T);
    if (!w.incremental) return;
    add(weighing, of, std::max<int64_t>(w.past, 1), w.T);
    add(weighing, of, w.past + w.T - 1, 1);
  };
  add_all(Weighing::tiles, {});
  add_all(Weighing::rows, {});
  if (mix) add_all(Weighing::rows, mix);
  return floats;
}

void cpu_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                           const AttentionScratch& s) {
  Forward({out, saved, {}, {}}, a, s, weighing_of(a, s)).run();
}

void cpu_attention_entropy(Tensor entropy, const Attention& a, const AttentionScratch& s) {
  Forward({{}, {}, entropy, {}}, a, s, Weighing::rows).run();
}

void cpu_attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                              const Attention& a, const AttentionScratch& s) {
  Forward({{}, saved, entropy, nonzero_keys}, a, s, Weighing::rows).run();
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
