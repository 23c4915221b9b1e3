// The backward pass of the CPU attention: tiles of queries by tiles of keys, or strips of queries
// by all their keys. Logits are formed anew; `level` and what else the forward pass saved makes
// weights of them.

#include <optional>

#include "core/parallel.h"
#include "ops/cpu/attention_mix.h"
#include "ops/cpu/attention_policies.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/backward_operands.h"
#include "ops/cpu/softmax_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

/// One task: the query heads in `heads`, which read one key head, or with a mix all heads, and the
/// tiles of `queries` by `keys`. `for_keys` writes dk and dv and needs all queries that see the
/// keys; `for_queries` writes dq, dscale and the gradients of queries and needs all keys that the
/// queries see.
struct Part {
  int64_t b = 0;
  Span heads, queries, keys;
  bool for_keys = true, for_queries = true;
  // With a mix, where `queries` are one part: packed keys of the sequence, and the part's gradients
  // of keys and values, see BackwardOperands, and of the network.
  float *packed = nullptr, *dkeys = nullptr, *dnetwork = nullptr;
};

struct Inputs {
  const AttentionGradients& g;
  Tensor dout, out;
  const AttentionSaved& saved;
  const Attention& a;
  const AttentionScratch& s;
};

class BackwardTask : Inputs {
 public:
  BackwardTask(const Inputs& in, const Policies& policies, Pieces& pieces, const Part& part)
      : Inputs(in),
        bias_(policies.bias),
        tiles_(policies.tiles),
        rows_(policies.rows),
        part_(part),
        sight_(a, part.b),
        operands_(a, in.dout, part.b, part.heads, part.packed, part.dkeys, pieces) {
    elsewhere_ = pieces.take(Tp_);
    other_keys_ = pieces.take(Tp_ + simd::kWidth);
    content_ = pieces.take(kQ);
    of_bias_ = pieces.take(kQ);
    dscale_ = pieces.take(kQ);
    if (tiles_) {
      D_i_ = pieces.take(kQ);
      stride_ = kStride;
      p_ = pieces.take(kTile) + simd::kWidth;
      float* const dz = pieces.take(kTile);
      std::fill_n(dz, kTile, 0.0f);  // the margins stay zero
      dz_ = dz + simd::kWidth;
      return;
    }
    const int64_t of_strips = strip_floats(T_) * (a.mix ? H_ : 1);
    stride_ = strip_stride(T_);
    p_ = pieces.take(of_strips);
    dz_ = pieces.take(of_strips);
    u_ = pieces.take(stride_);
    row_scores_ = pieces.take(stride_);
    scores_ = a.mix ? pieces.take(of_strips) : p_;
    if (a.mix) mix_.emplace(a, part.b, pieces.take(of_strips), pieces, true);
  }
  static int64_t floats(int64_t T, int64_t D, Weighing weighing, const MixShape& mix) {
    const int64_t of_strips = mix ? 4 * mix.H : 2;
    const int64_t weighed = weighing == Weighing::rows ? of_strips * most_strip_floats(T) +
                                                             2 * strip_stride(T) + mix.floats(true)
                                                       : 2 * kTile;
    return BackwardOperands::floats(T, D, static_cast<bool>(mix)) + 2 * padded_keys(T) + 4 * kQ +
           20 * simd::kWidth + weighed;
  }

  void run() {
    const auto& [b, heads, queries, keys, for_keys, for_queries, packed, dkeys, dnetwork] = part_;
    const int64_t begin = std::max(keys.begin, sight_.first_tile(queries.begin));
    const int64_t end = std::max(begin, std::min(keys.end, sight_.end(queries.end)));
    if (!packed) operands_.pack_keys({begin, end});
    if (for_keys) operands_.clear_gradients(keys);
    if (mix_) {
      mix_->network().clear_gradients();
      rows_of(heads);
      return mix_->network().gradients(dnetwork);
    }
    for (int64_t h = heads.begin; h < heads.end; ++h) rows_of({h, h + 1});
    if (for_keys) operands_.unpack_gradients(g, keys);
  }

 private:
  int64_t row_at(int64_t i) const { return (part_.b * H_ + h_) * T_ + i; }
  /// Whether dz becomes the gradient of scores in place, because more than z reads them.
  bool forms_ds() const { return mix_ || bias_.reads_scores(); }

  /// Rows of heads whose logits are formed together.
  void rows_of(Span heads) {
    for (int64_t n = 0; n < parts_of(T_); ++n) {
      const Span of_part = query_part(a, n), queries = part_.queries;
      const Span here = {std::max(queries.begin, of_part.begin),
                         std::min(queries.end, of_part.end)};
      if (here.begin >= here.end) continue;
      query_part_ = n;
      mine_ = part_.for_queries && here.size() == of_part.size();
      for (int64_t h = heads.begin; h < heads.end; ++h) {
        set_head(h);
        set_gradients(here.begin == queries.begin, true);
      }
      const int64_t step = tiles_ ? kQ : strip_rows(T_);
      for (int64_t i0 = here.begin; i0 < here.end; i0 += step) {
        const int64_t i1 = std::min(i0 + step, here.end);
        tiles_ ? tiles(i0, i1) : strip(heads, Strip(sight_, i0, i1));
      }
    }
    if (!mix_) bias_.end_head(operands_.keys, operands_.dkeys);
  }

  void set_head(int64_t h) {
    if (h == h_) return;
    h_ = h;
    operands_.set_head(h);
    bias_.set_head(part_.b, h);
  }
  /// With a mix other parts of the queries are other tasks', so that sums over a head are by part.
  void set_gradients(bool clear_head, bool clear_part) {
    TaskHead head = {part_.b,           h_,         part_.queries, part_.keys, part_.for_keys,
                     part_.for_queries, elsewhere_, other_keys_,   clear_head};
    if (mix_) {
      head.for_keys = false;
      head.other_keys = partial_table(s, a, part_.b, h_, query_part_);
    }
    bias_.set_gradients(head);
    bias_.set_part(query_part_, mine_, clear_part);
  }

  void pack_queries(int64_t i0, int64_t i1) {
    const Factors t(a, part_.b, h_);
    operands_.pack_queries(i0, i1);
    for (int64_t i = i0; i < i1; ++i) {
      const int64_t r = i - i0;
      content_[r] = t.of_content(i);
      of_bias_[r] = t.of_bias(i);
      dscale_[r] = 0;
      if (!t.t) continue;
      row::scaled(operands_.scaled_query + r * Dp_, operands_.query + r * Dp_, Dp_,
                  forms_ds() ? 1 : content_[r]);
    }
  }
  void unpack_queries(int64_t i0, int64_t i1) {
    const float root = 1 / a.content_divisor<float>();
    if (a.scale && !mix_) end_scale(i0, i1);
    bias_.end_rows(operands_.dquery, root);
    unpack_rows(g.dq, part_.b, h_, i0, i1, operands_.dquery, Dp_, root);
  }

  /// D_i = <dout_i, out_i>.
  void row_products(int64_t i0, int64_t i1) {
    pack_rows(operands_.dquery, out, part_.b, h_, i0, i1, Dp_, 1);
    for (int64_t r = 0; r < i1 - i0; ++r) {
      D_i_[r] = row::dot(operands_.dout_rows + r * Dp_, operands_.dquery + r * Dp_, Dp_);
    }
  }
  /// dquery is sum dz k: with q it makes the content's part of dt, times t it is dq. It is sum ds
  /// k, which is dq, of a bias that reads scores.
  void end_scale(int64_t i0, int64_t i1) {
    for (int64_t i = i0; i < i1; ++i) {
      const int64_t r = i - i0;
      float* const dq = operands_.dquery + r * Dp_;
      if (!forms_ds()) {
        dscale_[r] += row::dot(operands_.query + r * Dp_, dq, Dp_);
        row::scale(dq, Dp_, content_[r]);
      }
      g.dscale.ptr<float>()[row_at(i)] = dscale_[r];
    }
  }

  void tiles(int64_t i0, int64_t i1) {
    const int64_t from = std::max(part_.keys.begin, sight_.first_tile(i0));
    const int64_t end = std::min(part_.keys.end, sight_.end(i1));
    if (from >= end) return;
    const RowFactors factors = {content_, of_bias_};
    operands_.pack_dout(i0, i1);
    row_products(i0, i1);
    pack_queries(i0, i1);
    bias_.set_rows(i0, i1, from, end);
    for (int64_t j0 = from; j0 < end; j0 += kK) {
      const Block p = {p_, stride_, i0, i1, j0, j0 + kK}, dz = {dz_, stride_, i0, i1, j0, j0 + kK};
      const int64_t live = std::min(kK, end - j0);
      operands_.scores(p, j0);
      operands_.dP(dz, j0);
      tiles_->backward(p, dz, factors, {saved.level.ptr<float>() + row_at(i0), D_i_, dscale_},
                       sight_);
      bias_.add(dz, factors);
      if (part_.for_keys) {
        operands_.to_values(p, j0, live);
        operands_.to_keys(dz, j0, live);
      }
      if (part_.for_queries) operands_.to_queries(dz, j0, live);
    }
    if (part_.for_queries) unpack_queries(i0, i1);
  }

  /// A task of strips is for keys and queries.
  void strip(Span heads, const Strip& s) {
    const Strips scores = strips(scores_), p = strips(p_), dz = strips(dz_);
    for (int64_t h = heads.begin; h < heads.end; ++h) form_scores(s, h, scores.of(s, h));
    if (mix_) mix_->form_logits(s, scores, p);
    for (int64_t h = heads.begin; h < heads.end; ++h) adjoint_of(s, h, p.of(s, h), dz.of(s, h));
    if (mix_) mix_->adjoint(s, scores, dz, g.dscale);
    for (int64_t h = heads.begin; h < heads.end; ++h) to_inputs(s, h, heads, dz.of(s, h));
  }
  Strips strips(float* memory) const { return {memory, T_, !mix_}; }
  /// Whether a tile has weight in any of some heads.
  bool live(const Strip& s, Span heads, int64_t j0) const {
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      if (LiveTiles(saved.live, part_.b, h).any(s.i0, s.i1, j0)) return true;
    }
    return false;
  }

  void form_scores(const Strip& s, int64_t h, const Block& x) {
    set_head(h);
    pack_queries(s.i0, s.i1);
    bias_.set_rows(s.i0, s.i1, s.from, s.end);
    s.for_tiles([&](int64_t j0, int64_t) {
      if (forms_ds() || live(s, {h, h + 1}, j0)) operands_.scores(x, j0);
    });
    for (int64_t i = s.i0; mix_ && i < s.i1; ++i) mix_->keep_biases(s, h, sight_.row(x, i), bias_);
  }

  /// Scores, or logits where heads are mixed, become weights, and dP becomes dz.
  void adjoint_of(const Strip& s, int64_t h, const Block& p, const Block& dz) {
    const LiveTiles live(saved.live, part_.b, h);
    const auto for_live = [&](auto&& f) {
      s.for_tiles([&](int64_t j0, int64_t keys) {
        if (live.any(s.i0, s.i1, j0)) f(j0, keys);
      });
    };
    h_ = h;
    operands_.set_head(h);
    rows_->set_head(h);
    operands_.pack_dout(s.i0, s.i1);
    for_live([&](int64_t j0, int64_t) { operands_.dP(dz, j0); });
    for (int64_t i = s.i0; i < s.i1; ++i) {
      const Block row = sight_.row(p, i);
      if (!mix_) {
        if (a.scale && bias_.reads_scores()) {
          std::copy_n(row.data, padded(row.keys()), row_scores_);
        }
        bias_.add_to(row, content_[i - s.i0], of_bias_[i - s.i0]);
      }
      const Block gradient =
          row_adjoint(p, dz, row, live, saved, g.dalpha, row_at(i), traits_, *rows_, u_);
      if (mix_) continue;
      if (a.scale) add_dscale(i - s.i0, gradient);
      bias_.add(gradient, RowFactors{content_, of_bias_}.from(i - s.i0));
    }
    for_live([&](int64_t j0, int64_t keys) { operands_.to_values(p, j0, keys); });
  }

  /// What dz, or ds, gives to queries and keys, and with a mix dB to the bias.
  void to_inputs(const Strip& s, int64_t h, Span heads, const Block& dz) {
    if (mix_) {
      const float one = 1;
      set_head(h);
      set_gradients(false, false);
      pack_queries(s.i0, s.i1);
      bias_.set_rows(s.i0, s.i1, s.from, s.end);
      for (int64_t i = s.i0; i < s.i1; ++i)
        bias_.add(sight_.row(mix_->biases(s, h), i), {&one, &one});
    }
    s.for_tiles([&](int64_t j0, int64_t keys) {
      if (!live(s, heads, j0) && !bias_.reads_scores()) return;
      operands_.to_queries(dz, j0, keys);
      operands_.to_keys(dz, j0, keys);
    });
    unpack_queries(s.i0, s.i1);
  }

  /// What a row's bias, and of a bias that reads scores those, give to dscale.
  void add_dscale(int64_t r, const Block& dz) {
    const bool of_bias = a.form.scale_bias, of_scores = bias_.reads_scores();
    if (!of_bias && !of_scores) return;
    const Block scores = {row_scores_, stride_, dz.i0, dz.i1, dz.j0, dz.end};
    const BiasRows b = of_bias ? bias_.form(scores) : BiasRows{};
    Vec sum{};
    for (int64_t n = 0; n < dz.keys(); n += simd::kWidth) {
      Vec factor{};
      if (of_bias) factor += b.of_row(n);
      if (of_scores) factor += simd::load(row_scores_ + n);
      // Past the keys dz is 0, and what it would meet may be anything.
      const Vec d = simd::load(dz.data + n);
      sum += d == 0.0f ? Vec{} : d * factor;
    }
    dscale_[r] += simd::sum(sum);
  }

  LogitBias& bias_;
  SoftmaxTiles* const tiles_;
  RowNormalizer* const rows_;
  const Part part_;
  const Sight sight_;
  BackwardOperands operands_;
  const int64_t T_ = a.q.shape[1], H_ = a.q.shape[2], Dp_ = padded(a.q.shape[3]);
  const int64_t Tp_ = padded_keys(T_);
  const NormalizerTraits traits_ = traits_of(a.form.normalizer.kind);
  int64_t h_ = -1, query_part_ = 0, stride_;
  bool mine_ = false;                    // whether partial sums of query_part_ are this task's
  float *elsewhere_, *other_keys_;       // for what another task writes of rows, and of keys
  float *content_, *of_bias_, *dscale_;  // (kQ)
  float *p_, *dz_;                       // a tile's, or Strips
  float* D_i_ = nullptr;                 // (kQ), of tiles
  float* scores_ = nullptr;              // Strips; p_ where heads are not mixed
  float *u_ = nullptr, *row_scores_ = nullptr;  // of a row of a strip
  std::optional<HeadMixer> mix_;
};

/// Parts of the queries, of all heads. Of some sequences at a time, packed keys and the gradients
/// of keys and values by part are in memory.
template <class Run>
void backward_of_mixed(const Inputs& in, Run&& run) {
  const Attention& a = in.a;
  const AttentionScratch& s = in.s;
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2];
  const int64_t parts = parts_of(T), group = mix_group(B, T);
  const int64_t of_head = padded_keys(T) * padded(a.q.shape[3]), of_keys = K * of_head;
  const int64_t of_sequence = (3 + 2 * parts) * of_keys;
  require(group * of_sequence <= s.mix_shared.size(), "a mix that was planned");
  const auto packed = [&](int64_t n) { return s.mix_shared.ptr<float>() + n * of_sequence; };
  const auto gradients = [&](int64_t n) { return packed(n) + 3 * of_keys; };
  for (int64_t first = 0; first < B; first += group) {
    const int64_t sequences = std::min(group, B - first);
    parallel_for(sequences * K, [&](int64_t n) {
      BackwardOperands::pack_keys(a, first + n / K, n % K, {0, T}, packed(n / K) + n % K * of_head,
                                  of_keys);
    });
    parallel_for_slots(sequences * parts, [&](int64_t n, int64_t slot) {
      const int64_t b = first + n / parts, part = n % parts;
      Part of = {b, {0, H}, query_part(a, part), {0, keys_of_part(a, part)}};
      of.packed = packed(n / parts);
      of.dkeys = gradients(n / parts) + part * 2 * of_keys;
      of.dnetwork = s.mix_networks.ptr<float>() + (b * parts + part) * s.mix_networks.stride[0];
      run(slot, of);
    });
    parallel_for(sequences * 2 * K, [&](int64_t n) {
      const int64_t sequence = n / (2 * K), head = n % (2 * K);
      join_key_parts(head < K ? in.g.dk : in.g.dv,  // q carried the content scale
                     gradients(sequence) + head * of_head, 2 * of_keys, a, first + sequence,
                     head % K);
    });
  }
}

}  // namespace

int64_t tiles::backward_floats(const WorkspaceShape& w, const ContentShape& content) {
  int64_t floats = BackwardTask::floats(w.T, w.D, Weighing::tiles, {});
  const auto add = [&](const MixShape& mix) {
    floats = std::max(floats, BackwardTask::floats(w.T, w.D, Weighing::rows, mix));
  };
  if (w.any(&AttentionForm::general) || content.any) add({});
  if (const MixShape mix(w); mix) add(mix);
  return floats + bias_floats(w.T, w.D, content);
}

void cpu_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                            const AttentionSaved& saved, const Attention& a,
                            const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2];
  const int64_t group = H / K, parts = parts_of(T);
  const Weighing weighing = weighing_of(a, s);
  const Inputs inputs = {g, dout, out, saved, a, s};
  const auto run = [&](int64_t slot, const Part& part) {
    if (part.queries.begin == part.queries.end || part.keys.begin == part.keys.end) return;
    Pieces pieces = s.of_slot(slot);
    const auto work = [&](const Policies& policies) {
      BackwardTask(inputs, policies, pieces, part).run();
    };
    with_policies(a, s, &g.bias, pieces, weighing, std::ref(work));
  };
  const auto readers = [group](int64_t kh) { return Span{kh * group, (kh + 1) * group}; };
  // Products of a tile: five for keys and queries together, four and three for each alone.
  constexpr double kApart = 1.1 * 7 / 5;
  if (a.mix) {
    backward_of_mixed(inputs, run);
  } else if (weighing == Weighing::tiles && parts > 1 && worth_splitting(B * K, kApart)) {
    const int64_t key_tasks = B * K * parts;
    parallel_for_slots(key_tasks + B * H * parts, [&](int64_t n, int64_t slot) {
      if (n < key_tasks) {
        const Span keys = key_part(T, n % parts);
        const int64_t first_query = a.causal() ? keys.begin : 0;  // that sees any of them
        run(slot, {n / parts / K, readers(n / parts % K), {first_query, T}, keys, true, false});
      } else {
        const int64_t head = (n - key_tasks) / parts, h = head % H;
        const Span queries = query_part(a, (n - key_tasks) % parts);
        run(slot, {head / H, {h, h + 1}, queries, {0, T}, false, true});
      }
    });
  } else {
    parallel_for_slots(B * K, [&](int64_t n, int64_t slot) {
      run(slot, {n / K, readers(n % K), {0, T}, {0, T}, true, true});
    });
  }
  if (a.mix) {
    join_token_parts(a, s);
    join_networks(g.mix, a, s);
  }
  join_gradients(g.bias, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
