// The backward pass of the CPU attention where heads are mixed (attention_mix.h). A task leaves the
// gradients of keys, values and network in memory of its part; sums of parts are in order.

#include "ops/cpu/attention_mix.h"
#include "ops/cpu/attention_row_sums.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;
using rows::dispatch_activation;

namespace {

using simd::Vec;

/// Keys and values of a group, and their gradients by part of the queries.
struct GroupMemory {
  Packed keys, keys_t, values_t;  // rows, and transposed tiles
  Packed dkeys, dvalues;          // of (sequence, part): rows

  GroupMemory(const Attention& a, float* memory, int64_t sequences)
      : keys(a, memory),
        keys_t(a, memory + packed_floats(a, sequences)),
        values_t(a, memory + 2 * packed_floats(a, sequences)),
        dkeys(a, memory + 3 * packed_floats(a, sequences)),
        dvalues(a, memory + (3 + parts_of(a.q.shape[1])) * packed_floats(a, sequences)) {}
};

template <class A>
class MixBackward {
 public:
  MixBackward(const AttentionGradients& g, Tensor dout, const AttentionSaved& saved,
              const Attention& a, const AttentionScratch& s, const GroupMemory& group,
              int64_t of_group, int64_t b, int64_t part, LogitBias& bias, RowNormalizer& normalizer,
              Pieces& pieces)
      : g_(g),
        dout_(dout),
        saved_(saved),
        a_(a),
        s_(s),
        group_(group),
        of_group_(of_group),
        b_(b),
        part_(part),
        bias_(bias),
        normalizer_(normalizer),
        x_(a, pieces.take(most_head_strips(T_, H_))),
        p_(a, pieces.take(most_head_strips(T_, H_))),
        dz_(a, pieces.take(most_head_strips(T_, H_))),
        u_(pieces.take(strip_stride(T_))),
        dquery_(pieces.take(kQ * Dp_)),
        d_o_(pieces.take(kQ * Dp_)),
        stage_(a, b, pieces, bias, true) {}

  static int64_t floats(int64_t T, int64_t H, int64_t D, int64_t F) {
    return 3 * most_head_strips(T, H) + strip_stride(T) + 2 * kQ * padded(D) +
           MixStage::floats(T, H, D, F, true) + 8 * simd::kWidth;
  }

  void run() {
    const Span queries = query_part(a_, part_);
    const int64_t known = keys_of_part(a_, part_);
    for (int64_t kh = 0; kh < a_.k.shape[2]; ++kh) {
      std::fill_n(dkeys(kh), known * Dp_, 0.0f);
      std::fill_n(dvalues(kh), known * Dp_, 0.0f);
    }
    stage_.network().clear_gradients();
    for (int64_t h = 0; h < H_; ++h) set_gradients(h, true);
    for (int64_t i0 = queries.begin; i0 < queries.end; i0 += mix_rows(T_, H_)) {
      const RowsOfStrip s(stage_.sight(), i0, std::min(i0 + mix_rows(T_, H_), queries.end));
      stage_.template form_scores<A>(s, x_,
                                     [&](int64_t kh) { return group_.keys_t.of(of_group_, kh); });
      for (int64_t i = s.i0; i < s.i1; ++i) stage_.form_logits(s, x_, p_, i);
      for (int64_t h = 0; h < H_; ++h) head_to_logits(s, h);
      for (int64_t i = s.i0; i < s.i1; ++i) row_to_scores(s, i);
      for (int64_t h = 0; h < H_; ++h) {
        head_to_bias(s, h);
        head_to_queries(s, h);
      }
    }
    stage_.network().gradients(s_.mix_partials.ptr<float>() +
                               (b_ * parts_of(T_) + part_) * s_.mix_partials.stride[0]);
  }

 private:
  int64_t key_head(int64_t h) const { return h / (H_ / a_.k.shape[2]); }
  int64_t place() const { return of_group_ * parts_of(T_) + part_; }
  float* dkeys(int64_t kh) const { return group_.dkeys.of(place(), kh); }
  float* dvalues(int64_t kh) const { return group_.dvalues.of(place(), kh); }

  /// Each part is another task's: gradients that are summed over a head are in parts too.
  void set_gradients(int64_t h, bool clear) {
    TaskHead head = {b_, h, query_part(a_, part_), {0, keys_of_part(a_, part_)}};
    head.for_keys = false;
    head.other_keys = partial_table(s_, a_, b_, h, part_);
    head.clear = clear;
    bias_.set_head(b_, h);
    bias_.set_gradients(head);
    bias_.set_part(part_, true);
  }

  /// dz of a head from its logits, and what its weights give to values.
  void head_to_logits(const RowsOfStrip& s, int64_t h) {
    const Block p = p_.of(s, h), dz = dz_.of(s, h);
    const LiveTiles live(saved_.live, b_, h);
    const auto for_tiles = [&](auto&& f) {
      s.for_tiles([&](int64_t j0) {
        if (live.any(s.i0, s.i1, j0)) f(j0);
      });
    };
    pack_rows<A>(d_o_, dout_, b_, h, s.i0, s.i1, Dp_, 1);
    for_tiles([&](int64_t j0) {
      tile::product<false>(s.rows(), kK, a_.q.shape[3], {d_o_, Dp_, 1},
                           group_.values_t.of(of_group_, key_head(h)) + j0 * a_.q.shape[3], kK,
                           dz.at(s.i0, j0), dz.stride);
    });
    normalizer_.set_head(h);
    for (int64_t i = s.i0; i < s.i1; ++i) {
      row_adjoint(p, dz, stage_.row(p, i), live, saved_, g_.dalpha, (b_ * H_ + h) * T_ + i, traits_,
                  normalizer_, u_);
    }
    for_tiles([&](int64_t j0) {
      tile::product<true>(std::min(kK, s.end - j0), Dp_, s.rows(), {p.at(s.i0, j0), 1, p.stride},
                          d_o_, Dp_, dvalues(key_head(h)) + j0 * Dp_, Dp_);
    });
  }

  /// A row's dz of all heads becomes the gradients of its scores, and its biases theirs; network
  /// and scale get theirs.
  void row_to_scores(const RowsOfStrip& s, int64_t i) {
    HeadNetwork& network = stage_.network();
    const HeadsOfKeys dz = dz_.at(s, i, stage_.sight().first(i));
    for (int64_t h = 0; a_.scale.t && h < H_; ++h) dscale(h, i) = 0;
    stage_.for_blocks(
        s, x_, i, [&](int64_t n, int64_t keys, const HeadsOfKeys& x, const HeadsOfKeys& B) {
          if (a_.scale.t) add_dscale(i, keys, dz.from(n), x, B);
          for (int64_t h = 0; h < H_; ++h) {
            const float of_bias = Factors(a_, b_, h).of_bias(i);
            float* const db = network.dbiases().of(h);
            row::for_vectors(keys, [&](int64_t j) {
              simd::store(db + j, of_bias * simd::load(dz.of(h) + n + j));
            });
          }
          network.backward(keys, x, B);
          for (int64_t h = 0; h < H_; ++h) {
            const float t = Factors(a_, b_, h).of_content(i);
            const float *const of_scores = network.of_scores(h), *const of_bias =
                                                                     network.of_bias(h);
            const float* const db = network.dbiases().of(h);
            float *const ds = dz.of(h) + n, *const dB = B.of(h);
            const bool kept = keeps_bias(a_.mix.form);
            for (int64_t j = 0; j < keys; j += simd::kWidth) {
              const Vec direct = t * simd::load(ds + j);
              simd::store(ds + j, of_scores ? direct + simd::load(of_scores + j) : direct);
              const Vec through = simd::load(of_bias + j);
              const Vec all = kept ? simd::load(db + j) + through : through;
              keys - j >= simd::kWidth ? simd::store(dB + j, all)
                                       : simd::store_partial(dB + j, all, keys - j);
            }
          }
        });
  }

  float& dscale(int64_t h, int64_t i) const {
    return g_.dscale.ptr<float>()[(b_ * H_ + h) * T_ + i];
  }
  /// dt: of z = t s + b the sum of dz s, of t (s + b) that of dz (s + b).
  void add_dscale(int64_t i, int64_t keys, const HeadsOfKeys& dz, const HeadsOfKeys& x,
                  const HeadsOfKeys& B) {
    if (a_.scale.on_bias) stage_.network().forward(keys, x, B);
    for (int64_t h = 0; h < H_; ++h) {
      const float* const b = stage_.network().biases().of(h);
      Vec sum{};
      row::for_vectors(keys, [&](int64_t j) {
        const Vec score = simd::load(x.of(h) + j);
        sum += simd::load(dz.of(h) + j) * (a_.scale.on_bias ? score + simd::load(b + j) : score);
      });
      dscale(h, i) += simd::sum(sum);
    }
  }

  /// What the gradients of a head's biases, which lie in their place, give.
  void head_to_bias(const RowsOfStrip& s, int64_t h) {
    const float one = 1;
    set_gradients(h, false);
    bias_.set_rows(s.i0, s.i1, s.from, s.end);
    const Block dB = stage_.biases().of(s, h);
    for (int64_t i = s.i0; i < s.i1; ++i) bias_.add(stage_.row(dB, i), {&one, &one});
  }

  /// What a head's scores give to queries and keys.
  void head_to_queries(const RowsOfStrip& s, int64_t h) {
    const int64_t kh = key_head(h);
    const float root = 1 / a_.content_divisor<float>();
    const Block ds = dz_.of(s, h);
    float* const query = stage_.query();
    pack_rows<A>(query, a_.q, b_, h, s.i0, s.i1, Dp_, root);
    std::fill_n(dquery_, s.rows() * Dp_, 0.0f);
    s.for_tiles([&](int64_t j0) {
      if (!any_head(s, j0)) return;
      const int64_t keys = std::min(kK, s.end - j0);
      tile::product<true>(s.rows(), Dp_, keys, {ds.at(s.i0, j0), ds.stride, 1},
                          group_.keys.of(of_group_, kh) + j0 * Dp_, Dp_, dquery_, Dp_);
      tile::product<true>(keys, Dp_, s.rows(), {ds.at(s.i0, j0), 1, ds.stride}, query, Dp_,
                          dkeys(kh) + j0 * Dp_, Dp_);
    });
    unpack_rows<A>(g_.dq, b_, h, s.i0, s.i1, dquery_, Dp_, root);
  }
  /// Whether any head gives weight to the tile of key j: dz of any reaches the scores of all.
  bool any_head(const RowsOfStrip& s, int64_t j) const {
    for (int64_t h = 0; h < H_; ++h) {
      if (LiveTiles(saved_.live, b_, h).any(s.i0, s.i1, j)) return true;
    }
    return false;
  }

  const AttentionGradients& g_;
  const Tensor dout_;
  const AttentionSaved& saved_;
  const Attention& a_;
  const AttentionScratch& s_;
  const GroupMemory& group_;
  const int64_t of_group_, b_, part_;
  LogitBias& bias_;
  RowNormalizer& normalizer_;
  const NormalizerTraits traits_ = traits_of(a_.normalizer.form.kind);
  const int64_t T_ = a_.q.shape[1], H_ = a_.q.shape[2], Dp_ = padded(a_.q.shape[3]);
  const HeadStrips x_, p_, dz_;  // scores; logits, then weights; dP, then dz, then ds
  float* const u_;               // of a row
  float *const dquery_, *const d_o_;
  MixStage stage_;
};

/// A sequence's gradients of a key head, from their parts, in order.
template <class A>
void join_keys(const Tensor& to, const Packed& parts, const Attention& a, int64_t of_group,
               int64_t b, int64_t kh) {
  const int64_t T = a.q.shape[1], Dp = padded(a.q.shape[3]), n = parts_of(T);
  // A part knows what the next one does, or less: the last part's are all.
  for (int64_t part = 1; part < n; ++part) {
    const float* const before = parts.of(of_group * n + part - 1, kh);
    float* const sum = parts.of(of_group * n + part, kh);
    row::for_vectors(keys_of_part(a, part - 1) * Dp, [&](int64_t c) {
      simd::store(sum + c, simd::load(before + c) + simd::load(sum + c));
    });
  }
  unpack_rows<A>(to, b, kh, 0, T, parts.of(of_group * n + n - 1, kh), Dp, 1);
}

/// What parts gave to numbers of tokens, as keys: the sums over parts, in order.
void join_parts(const Attention& a, const AttentionScratch& s) {
  if (!std::holds_alternative<TokenBias>(a.bias)) return;
  const int64_t H = a.q.shape[2], parts = parts_of(a.q.shape[1]);
  parallel_for(a.q.shape[0] * H, [&](int64_t n) {
    // A part knows what the next one does, or less.
    float* const total = partial_table(s, a, n / H, n % H, 0);
    for (int64_t part = 1; part < parts; ++part) {
      const float* const more = partial_table(s, a, n / H, n % H, part);
      const int64_t known = keys_of_part(a, part - 1), end = keys_of_part(a, part);
      for (int64_t j = 0; j < known; ++j) total[j] += more[j];
      std::copy(more + known, more + end, total + known);
    }
  });
}

/// The network's gradients from those of tasks: sums over sequences and parts, in order.
void join_network(const HeadMixGradients& g, const AttentionScratch& s, int64_t tasks) {
  const auto sum = [&](int64_t at) {
    double total = 0;
    for (int64_t n = 0; n < tasks; ++n) {
      total += static_cast<double>(s.mix_partials.ptr<float>()[n * s.mix_partials.stride[0] + at]);
    }
    return static_cast<float>(total);
  };
  int64_t at = 0;
  const auto rows_of = [&](const Tensor& dw, const Tensor& dc) {
    for (int64_t r = 0; r < dw.shape[0]; ++r) {
      for (int64_t c = 0; c < dw.shape[1]; ++c) {
        dw.ptr<float>()[r * dw.shape[1] + c] = sum(at++);
      }
      dc.ptr<float>()[r] = sum(at++);
    }
  };
  rows_of(g.dw1, g.dc1);
  rows_of(g.dw2, g.dc2);
}

}  // namespace

int64_t tiles::mix_backward_floats(int64_t T, int64_t H, int64_t D, int64_t F) {
  return MixBackward<float>::floats(T, H, D, F);
}

void cpu_attention_mix_backward(const AttentionGradients& g, Tensor dout,
                                const AttentionSaved& saved, const Attention& a,
                                const AttentionScratch& s) {
  const int64_t T = a.q.shape[1], K = a.k.shape[2], parts = parts_of(T);
  dispatch_activation(a.q.dtype, [&]<class A>() {
    for_groups(a, s, [&](int64_t first, int64_t sequences) {
      const GroupMemory group(a, s.mix_shared.ptr<float>(), sequences);
      parallel_for(sequences * K, [&](int64_t n) {
        const int64_t of_group = n / K, b = first + of_group, kh = n % K;
        float* const rows = group.keys.of(of_group, kh);  // of values on their way
        pack_transposed<A>(group.values_t.of(of_group, kh), rows, a.v, b, kh);
        pack_transposed<A>(group.keys_t.of(of_group, kh), rows, a.k, b, kh);
      });
      parallel_for_slots(sequences * parts, [&](int64_t n, int64_t slot) {
        Pieces pieces = s.of_mix_slot(slot);
        const auto work = [&](const Policies& policies) {
          MixBackward<A>(g, dout, saved, a, s, group, n / parts, first + n / parts, n % parts,
                         policies.bias, *policies.rows, pieces)
              .run();
        };
        with_policies(a, s, &g.bias, pieces, Weighing::rows, std::ref(work));
      });
      parallel_for(sequences * K, [&](int64_t n) {
        const int64_t of_group = n / K, b = first + of_group, kh = n % K;
        join_keys<A>(g.dk, group.dkeys, a, of_group, b, kh);  // q carried the content scale
        join_keys<A>(g.dv, group.dvalues, a, of_group, b, kh);
      });
    });
  });
  join_parts(a, s);
  join_gradients(g.bias, a, s);
  join_network(g.mix, s, a.q.shape[0] * parts);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
