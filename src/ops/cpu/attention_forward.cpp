// The forward pass of the CPU attention, and what reads its rows: entropies and statistics. A task
// takes tiles of queries by tiles of keys, or strips of queries by all their keys. Keys of the past
// are packed in blocks, so that this memory does not grow with the text.

#include "ops/cpu/attention_operands.h"
#include "ops/cpu/attention_policies.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/softmax_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

constexpr int64_t kBlockKeys = 16 * kK;

/// How a pass reads keys.
struct Plan {
  Weighing weighing;
  Reading reading;
  int64_t block_keys;   // packed at a time
  int64_t query_tiles;  // of a task at a time

  Plan(Weighing w, int64_t past, int64_t T)
      : weighing(w),
        reading(past > 0 && (T < kLeastPackedRows || w == Weighing::rows) ? Reading::in_place
                : w == Weighing::tiles                                    ? Reading::packed
                                                                          : Reading::packed_fp32),
        block_keys(reading != Reading::in_place && past > 0
                       ? std::min(kBlockKeys, padded_keys(past + T))
                       : padded_keys(past + T)),
        query_tiles(block_keys < past + T ? ceil_div(T, kQ) : 1) {}

  int64_t floats(int64_t keys, int64_t D, const ContentShape& content) const {
    const int64_t Dp = padded(D);
    const int64_t packed = reading == Reading::in_place ? 0 : block_keys;
    const int64_t weighed = weighing == Weighing::rows
                                ? most_strip_floats(keys) + strip_stride(keys) + kQ * Dp
                                : query_tiles * Running::floats(Dp) + kQ * kK;
    return Operands::floats(packed, query_tiles, Dp) + bias_floats(keys, D, content) + weighed +
           2 * kQ + 16 * simd::kWidth;
  }
};

/// The queries [queries.begin, queries.end), by position, of query heads that read one key head.
class ForwardTask {
 public:
  ForwardTask(const Results& results, const Attention& a, const Plan& plan, Operands& operands,
              const Policies& policies, Pieces& pieces, int64_t b, Span queries)
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
      logits_ = pieces.take(strip_floats(keys_));
      u_ = pieces.take(strip_stride(keys_));
      sums_ = pieces.take(kQ * Dp_);
    }
  }

  void run(Span heads) {
    kh_ = heads.begin / (H_ / a_.k.shape[2]);
    for (h_ = heads.begin; h_ < heads.end; ++h_) {
      bias_.set_head(b_, h_);
      if (rows_) {
        rows_->set_head(h_);
        attend_strips();
      } else if (plan_.query_tiles > 1) {
        attend_tiles(queries_);
      } else {
        for (int64_t i0 = queries_.begin; i0 < queries_.end; i0 += kQ) {
          attend_tiles({i0, std::min(i0 + kQ, queries_.end)});
        }
      }
    }
  }

 private:
  int64_t row_at(int64_t i) const { return (b_ * H_ + h_) * T_ + i - past_; }

  void pack_keys(int64_t begin, int64_t end) {
    if (packed_from_ == begin) return;
    operands_.pack_keys(b_, kh_, begin, end);
    packed_from_ = begin;
  }
  void unpack(int64_t i0, int64_t i1, const float* rows) const {
    rows::dispatch_activation(a_.q.dtype, [&]<class A>() {
      unpack_rows<A>(to_.out, b_, h_, i0 - past_, i1 - past_, rows, Dp_, 1);
    });
  }

  /// Softmax of the queries of some tiles, while blocks of keys come by.
  void attend_tiles(Span queries) {
    const auto for_tiles = [&](auto&& f) {
      for (int64_t n = 0, i0 = queries.begin; i0 < queries.end; ++n, i0 += kQ) {
        const Running run(sums_ + n * Running::floats(Dp_), Dp_);
        f(n, i0, std::min(i0 + kQ, queries.end), run);
      }
    };
    for_tiles([&](int64_t n, int64_t i0, int64_t i1, const Running& run) {
      operands_.pack_queries(n, b_, h_, i0 - past_, i1 - past_);
      run.begin();
    });
    const int64_t first = sight_.first_tile(queries_.begin), end = sight_.end(queries_.end);
    for (int64_t block = first; block < end; block += plan_.block_keys) {
      const int64_t end_of_block = std::min(block + plan_.block_keys, end);
      pack_keys(block, end_of_block);
      for_tiles([&](int64_t n, int64_t i0, int64_t i1, const Running& run) {
        const Span keys = {std::max(block, sight_.first_tile(i0)),
                           std::min(end_of_block, sight_.end(i1))};
        if (keys.begin < keys.end) attend_tile(n, i0, i1, run, keys, block);
      });
    }
    for_tiles([&](int64_t, int64_t i0, int64_t i1, const Running& run) {
      for (int64_t i = i0; i < i1; ++i) {
        if (to_.entropy) {
          to_.entropy.ptr<float>()[row_at(i)] = run.entropy(i - i0);
        } else {
          const float lse = run.end(i - i0);
          if (to_.saved.level) to_.saved.level.ptr<float>()[row_at(i)] = lse;
        }
      }
      if (to_.out) unpack(i0, i1, run.out);
    });
  }

  void attend_tile(int64_t n, int64_t i0, int64_t i1, const Running& run, Span keys,
                   int64_t packed_from) {
    const Factors t(a_, b_, h_);
    for (int64_t i = i0; i < i1; ++i) {
      content_[i - i0] = t.of_content(i) * operands_.score_factor();
      of_bias_[i - i0] = t.of_bias(i);
    }
    const RowFactors factors = {content_, of_bias_};
    bias_.set_rows(i0, i1, keys.begin, keys.end);
    for (int64_t j0 = keys.begin; j0 < keys.end; j0 += kK) {
      const int64_t at = j0 - packed_from, live = std::min(kK, keys.end - j0);
      for (int64_t first = i0; first < i1; first += operands_.rows_at_once) {
        const int64_t r = first - i0, rows = std::min(operands_.rows_at_once, i1 - first);
        operands_.scores(n, r, rows, at, logits_, kK);
        tiles_->forward({logits_, kK, first, first + rows, j0, j0 + kK}, factors.from(r),
                        run.from(r), sight_, operands_.in_two);
        if (to_.out) operands_.add_values(run.out + r * Dp_, rows, logits_, kK, at, live);
      }
    }
  }

  /// Strips of queries by all keys that any of them sees.
  void attend_strips() {
    const int64_t begin = sight_.first_tile(queries_.begin);
    pack_keys(begin, sight_.end(queries_.end));
    // Which tiles have weight is for a backward pass over all rows.
    const LiveTiles live(to_.out && past_ == 0 ? to_.saved.live : Tensor(), b_, h_);
    const Factors t(a_, b_, h_);
    for (int64_t i0 = queries_.begin; i0 < queries_.end; i0 += strip_rows(keys_)) {
      const int64_t i1 = std::min(i0 + strip_rows(keys_), queries_.end), end = sight_.end(i1);
      const Block z = {logits_, strip_stride(keys_),   i0,
                       i1,      sight_.first_tile(i0), padded_keys(end)};
      operands_.pack_queries(0, b_, h_, i0 - past_, i1 - past_);
      bias_.set_rows(i0, i1, z.j0, end);
      live.clear(i0, i1);
      for (int64_t j0 = z.j0; j0 < z.end; j0 += kK) {
        operands_.scores(0, 0, z.rows(), j0 - begin, z.at(i0, j0), z.stride);
      }
      for (int64_t i = i0; i < i1; ++i) {
        const Block row = z.row(i, sight_.first(i), sight_.last(i));
        bias_.add_to(row, t.of_content(i), t.of_bias(i));
        to_.weigh(z, row, row_at(i), traits_, *rows_, u_, live);
      }
      if (!to_.out) continue;
      std::fill_n(sums_, z.rows() * Dp_, 0.0f);
      for (int64_t j0 = z.j0; j0 < z.end; j0 += kK) {
        if (!live.any(i0, i1, j0)) continue;
        operands_.add_values(sums_, z.rows(), z.at(i0, j0), z.stride, j0 - begin,
                             std::min(kK, end - j0));
      }
      unpack(i0, i1, sums_);
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
  const NormalizerTraits traits_ = traits_of(a_.normalizer.form.kind);
  int64_t h_ = 0, kh_ = 0, packed_from_ = -1;
  float *content_ = nullptr, *of_bias_ = nullptr;  // (kQ): RowFactors of a tile
  float* logits_;                                  // a tile's, or a strip's
  float* u_ = nullptr;                             // of a row
  float* sums_;                                    // of each tile: Running; of a strip: (kQ, Dp)
};

void run_forward(const Results& results, const Attention& a, const AttentionScratch& s,
                 Weighing weighing) {
  const Plan plan(weighing, a.past(), a.q.shape[1]);
  for_query_tasks(a, [&](int64_t slot, int64_t b, Span heads, Span queries) {
    if (queries.begin == queries.end) return;
    Pieces pieces = s.of_slot(slot);
    const auto with_both = [&](Operands& operands) {
      const auto work = [&](const Policies& policies) {
        ForwardTask(results, a, plan, operands, policies, pieces, b, queries).run(heads);
      };
      with_policies(a, s, nullptr, pieces, weighing, std::ref(work));
    };
    with_operands(a, s, pieces, {plan.reading, static_cast<bool>(results.out)}, plan.block_keys,
                  plan.query_tiles, std::ref(with_both));
  });
}

}  // namespace

int64_t tiles::forward_floats(const WorkspaceShape& w, const ContentShape& content) {
  int64_t floats = 0;
  const auto add = [&](Weighing weighing, int64_t past, int64_t T) {
    floats = std::max(floats, Plan(weighing, past, T).floats(past + T, w.D, content));
  };
  const bool rows = w.general_attention || w.attention_statistics || content.any;
  for (const Weighing weighing : {Weighing::tiles, Weighing::tiles_for_entropy, Weighing::rows}) {
    if (weighing == Weighing::rows && !rows) continue;
    add(weighing, 0, w.T);
    if (!w.incremental) continue;
    add(weighing, std::max<int64_t>(w.past, 1), w.T);
    add(weighing, w.past + w.T - 1, 1);
  }
  return floats;
}

void cpu_attention_forward(Tensor out, const AttentionSaved& saved, const Attention& a,
                           const AttentionScratch& s) {
  run_forward({out, saved, {}, {}}, a, s, weighing_of(a, s));
}

void cpu_attention_entropy(Tensor entropy, const Attention& a, const AttentionScratch& s) {
  run_forward({{}, {}, entropy, {}}, a, s,
              reads_content(a.bias) ? Weighing::rows : Weighing::tiles_for_entropy);
}

void cpu_attention_statistics(Tensor entropy, Tensor nonzero_keys, const AttentionSaved& saved,
                              const Attention& a, const AttentionScratch& s) {
  run_forward({{}, saved, entropy, nonzero_keys}, a, s, Weighing::rows);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
