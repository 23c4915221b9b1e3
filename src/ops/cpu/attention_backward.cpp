// The backward pass of the CPU attention: tiles of queries by tiles of keys, or strips of queries
// by all their keys. Logits are formed anew; `level` and what else the forward pass saved makes
// weights of them.

#include "core/parallel.h"
#include "ops/cpu/attention_policies.h"
#include "ops/cpu/attention_strips.h"
#include "ops/cpu/gemm_microkernel.h"
#include "ops/cpu/rows.h"
#include "ops/cpu/softmax_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

/// One task: the query heads in `heads`, which read one key head, and the tiles of `queries` by
/// `keys`. `for_keys` writes dk and dv and needs all queries that see the keys; `for_queries`
/// writes dq, dscale and the gradients of queries and needs all keys that the queries see.
struct Part {
  int64_t b = 0;
  Span heads, queries, keys;
  bool for_keys = true, for_queries = true;
};

struct Inputs {
  const AttentionGradients& g;
  Tensor dout, out;
  const AttentionSaved& saved;
  const Attention& a;
  const AttentionScratch& s;
};

template <class A>
class BackwardTask : Inputs {
 public:
  BackwardTask(const Inputs& in, const Policies& policies, Pieces& pieces, const Part& part)
      : Inputs(in),
        bias_(policies.bias),
        tiles_(policies.tiles),
        rows_(policies.rows),
        part_(part),
        sight_(a, part.b) {
    keys_ = pieces.take(Tp_ * Dp_);
    keys_t_ = pieces.take(Tp_ * Dp_);
    values_t_ = pieces.take(Tp_ * Dp_);
    dkeys_ = pieces.take(Tp_ * Dp_);
    dvalues_ = pieces.take(Tp_ * Dp_);
    elsewhere_ = pieces.take(Tp_);
    other_keys_ = pieces.take(Tp_ + simd::kWidth);
    query_ = pieces.take(kQ * Dp_);
    scaled_query_ = a.scale.t ? pieces.take(kQ * Dp_) : query_;
    dquery_ = pieces.take(kQ * Dp_);
    d_o_ = pieces.take(kQ * Dp_);
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
    } else {
      stride_ = strip_stride(T_);
      p_ = pieces.take(strip_floats(T_));
      dz_ = pieces.take(strip_floats(T_));
      u_ = pieces.take(stride_);
      scores_ = pieces.take(stride_);
    }
  }
  static int64_t floats(int64_t T, int64_t D, bool rows) {
    const int64_t Tp = padded_keys(T), Dp = padded(D);
    return 5 * Tp * Dp + 2 * Tp + 4 * kQ * Dp + 4 * kQ + 20 * simd::kWidth +
           (rows ? 2 * most_strip_floats(T) + 2 * strip_stride(T) : 2 * kTile);
  }

  void run() {
    const auto [b, heads, queries, keys, for_keys, for_queries] = part_;
    const int64_t kh = heads.begin / (H_ / a.k.shape[2]);
    const int64_t begin = std::max(keys.begin, sight_.first_tile(queries.begin));
    const int64_t end = std::max(begin, std::min(keys.end, sight_.end(queries.end)));
    pack_rows<A>(at(keys_, begin), a.v, b, kh, begin, end, Dp_, 1);  // on the way to `values_t_`
    transpose_tiles(values_t_, keys_, begin, end, D_, Dp_);
    pack_rows<A>(at(keys_, begin), a.k, b, kh, begin, end, Dp_, 1);
    transpose_tiles(keys_t_, keys_, begin, end, D_, Dp_);
    if (for_keys) {
      std::fill_n(at(dkeys_, keys.begin), (keys.end - keys.begin) * Dp_, 0.0f);
      std::fill_n(at(dvalues_, keys.begin), (keys.end - keys.begin) * Dp_, 0.0f);
    }
    for (h_ = heads.begin; h_ < heads.end; ++h_) {
      bias_.set_head(b, h_);
      bias_.set_gradients({b, h_, queries, keys, for_keys, for_queries, elsewhere_, other_keys_});
      if (rows_) rows_->set_head(h_);
      for (int64_t n = 0; n < parts_of(T_); ++n) {
        const Span of_part = query_part(a, n);
        const Span here = {std::max(queries.begin, of_part.begin),
                           std::min(queries.end, of_part.end)};
        bias_.set_part(n,
                       for_queries && queries.begin <= of_part.begin && of_part.end <= queries.end);
        const int64_t step = tiles_ ? kQ : strip_rows(T_);
        for (int64_t i0 = here.begin; i0 < here.end; i0 += step) {
          rows(i0, std::min(i0 + step, here.end));
        }
      }
      bias_.end_head(keys_, dkeys_);
    }
    if (for_keys) {  // q carried the content scale
      unpack_rows<A>(g.dk, b, kh, keys.begin, keys.end, at(dkeys_, keys.begin), Dp_, 1);
      unpack_rows<A>(g.dv, b, kh, keys.begin, keys.end, at(dvalues_, keys.begin), Dp_, 1);
    }
  }

 private:
  float* at(float* rows, int64_t row) const { return rows + row * Dp_; }
  int64_t row_at(int64_t i) const { return (part_.b * H_ + h_) * T_ + i; }

  /// Some rows of the head.
  void rows(int64_t i0, int64_t i1) {
    const int64_t from = std::max(part_.keys.begin, sight_.first_tile(i0));
    const int64_t end = std::min(part_.keys.end, sight_.end(i1));
    if (from >= end) return;
    const float root = 1 / a.content_divisor<float>();
    const Factors t(a, part_.b, h_);
    pack_rows<A>(query_, a.q, part_.b, h_, i0, i1, Dp_, root);
    pack_rows<A>(d_o_, dout, part_.b, h_, i0, i1, Dp_, 1);
    for (int64_t i = i0; i < i1; ++i) {
      content_[i - i0] = t.of_content(i);
      of_bias_[i - i0] = t.of_bias(i);
      dscale_[i - i0] = 0;
    }
    for (int64_t r = 0; t.t && r < i1 - i0; ++r) {
      multiply(scaled_query_ + r * Dp_, query_ + r * Dp_, bias_.reads_scores() ? 1 : content_[r]);
    }
    if (tiles_) row_products(i0, i1);
    std::fill_n(dquery_, (i1 - i0) * Dp_, 0.0f);
    bias_.set_rows(i0, i1, from, end);
    if (tiles_) {
      for (int64_t j0 = from; j0 < end; j0 += kK) tile(i0, i1, j0, std::min(kK, end - j0));
    } else {
      strip(i0, i1, from, end);
    }
    if (!part_.for_queries) return;
    if (t.t) end_scale(i0, i1);
    bias_.end_rows(dquery_, root);
    unpack_rows<A>(g.dq, part_.b, h_, i0, i1, dquery_, Dp_, root);
  }

  /// D_i = <dout_i, out_i>.
  void row_products(int64_t i0, int64_t i1) {
    pack_rows<A>(dquery_, out, part_.b, h_, i0, i1, Dp_, 1);
    for (int64_t r = 0; r < i1 - i0; ++r) D_i_[r] = dot(d_o_ + r * Dp_, dquery_ + r * Dp_);
  }
  float dot(const float* x, const float* y) const {
    Vec sum{};
    for (int64_t c = 0; c < Dp_; c += simd::kWidth) sum += simd::load(x + c) * simd::load(y + c);
    return simd::sum(sum);
  }
  void multiply(float* to, const float* x, float factor) const {
    for (int64_t c = 0; c < Dp_; c += simd::kWidth) simd::store(to + c, simd::load(x + c) * factor);
  }
  /// dquery is sum dz k: with q it makes the content's part of dt, times t it is dq. It is sum ds
  /// k, which is dq, of a bias that reads scores.
  void end_scale(int64_t i0, int64_t i1) {
    for (int64_t i = i0; i < i1; ++i) {
      const int64_t r = i - i0;
      float* const dq = dquery_ + r * Dp_;
      if (!bias_.reads_scores()) {
        dscale_[r] += dot(query_ + r * Dp_, dq);
        multiply(dq, dq, content_[r]);
      }
      g.dscale.ptr<float>()[row_at(i)] = dscale_[r];
    }
  }

  void scores_of(const Block& p, int64_t j0) const {
    tile::product<false>(p.rows(), kK, D_, {query_, Dp_, 1}, keys_t_ + j0 * D_, kK, p.at(p.i0, j0),
                         stride_);
  }
  void dP_of(const Block& dz, int64_t j0) const {
    tile::product<false>(dz.rows(), kK, D_, {d_o_, Dp_, 1}, values_t_ + j0 * D_, kK,
                         dz.at(dz.i0, j0), stride_);
  }
  /// What the weights and dz of `live` keys from j0 on give.
  void to_values(const Block& p, int64_t j0, int64_t live) const {
    tile::product<true>(live, Dp_, p.rows(), {p.at(p.i0, j0), 1, stride_}, d_o_, Dp_,
                        at(dvalues_, j0), Dp_);
  }
  void to_keys(const Block& dz, int64_t j0, int64_t live) const {
    tile::product<true>(live, Dp_, dz.rows(), {dz.at(dz.i0, j0), 1, stride_}, scaled_query_, Dp_,
                        at(dkeys_, j0), Dp_);
  }
  void to_queries(const Block& dz, int64_t j0, int64_t live) const {
    tile::product<true>(dz.rows(), Dp_, live, {dz.at(dz.i0, j0), stride_, 1}, at(keys_, j0), Dp_,
                        dquery_, Dp_);
  }

  void tile(int64_t i0, int64_t i1, int64_t j0, int64_t live) {
    const Block p = {p_, stride_, i0, i1, j0, j0 + kK}, dz = {dz_, stride_, i0, i1, j0, j0 + kK};
    const RowFactors factors = {content_, of_bias_};
    scores_of(p, j0);
    dP_of(dz, j0);
    tiles_->backward(p, dz, factors, {saved.level.ptr<float>() + row_at(i0), D_i_, dscale_},
                     sight_);
    bias_.add(dz, factors);
    if (part_.for_keys) {
      to_values(p, j0, live);
      to_keys(dz, j0, live);
    }
    if (part_.for_queries) to_queries(dz, j0, live);
  }

  /// A task of strips is for keys and queries. Tiles without any weight are left out.
  void strip(int64_t i0, int64_t i1, int64_t from, int64_t end) {
    const Block p = {p_, stride_, i0, i1, from, padded_keys(end)};
    const Block dz = {dz_, stride_, i0, i1, from, padded_keys(end)};
    const LiveTiles live(saved.live, part_.b, h_);
    // f(key, whether its tile has weight).
    const auto for_tiles = [&](auto&& f) {
      for (int64_t j0 = from; j0 < end; j0 += kK) f(j0, live.any(i0, i1, j0));
    };
    for_tiles([&](int64_t j0, bool has_weight) {
      if (has_weight || bias_.reads_scores()) scores_of(p, j0);
      if (has_weight) dP_of(dz, j0);
    });
    for (int64_t i = i0; i < i1; ++i) {
      const Block row = p.row(i, sight_.first(i), sight_.last(i));
      if (a.scale.t && bias_.reads_scores()) {
        std::copy_n(row.data, padded(row.keys()), scores_);
      }
      bias_.add_to(row, content_[i - i0], of_bias_[i - i0]);
      const Block gradient =
          row_adjoint(p, dz, row, live, saved, g.dalpha, row_at(i), traits_, *rows_, u_);
      if (a.scale.t) add_dscale(i - i0, gradient);
      bias_.add(gradient, RowFactors{content_, of_bias_}.from(i - i0));
    }
    for_tiles([&](int64_t j0, bool has_weight) {
      const int64_t keys = std::min(kK, end - j0);
      if (has_weight) to_values(p, j0, keys);
      if (!has_weight && !bias_.reads_scores()) return;
      to_queries(dz, j0, keys);
      to_keys(dz, j0, keys);
    });
  }

  /// What a row's bias, and of a bias that reads scores those, give to dscale.
  void add_dscale(int64_t r, const Block& dz) {
    const bool of_bias = a.scale.on_bias, of_scores = bias_.reads_scores();
    if (!of_bias && !of_scores) return;
    const Block scores = {scores_, stride_, dz.i0, dz.i1, dz.j0, dz.end};
    const BiasRows b = of_bias ? bias_.form(scores) : BiasRows{};
    Vec sum{};
    for (int64_t n = 0; n < dz.keys(); n += simd::kWidth) {
      Vec factor{};
      if (of_bias) factor += b.of_row(n);
      if (of_scores) factor += simd::load(scores_ + n);
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
  const int64_t T_ = a.q.shape[1], H_ = a.q.shape[2], D_ = a.q.shape[3];
  const int64_t Dp_ = padded(D_), Tp_ = padded_keys(T_);
  const NormalizerTraits traits_ = traits_of(a.normalizer.form.kind);
  int64_t h_ = 0, stride_;
  float *keys_, *keys_t_, *values_t_;  // rows; transposed tiles
  float *dkeys_, *dvalues_;
  float *elsewhere_, *other_keys_;  // for what another task writes of rows, and of keys
  // Of some rows of queries. query_ is divided as content scores are, and scaled_query_ times t.
  float *query_, *scaled_query_, *dquery_, *d_o_;
  float *content_, *of_bias_, *dscale_;     // (kQ)
  float *p_, *dz_;                          // a tile's, or a strip's
  float* D_i_ = nullptr;                    // (kQ), of tiles
  float *u_ = nullptr, *scores_ = nullptr;  // of a row of a strip
};

}  // namespace

int64_t tiles::backward_floats(int64_t T, int64_t D, bool rows, const ContentShape& content) {
  return BackwardTask<float>::floats(T, D, rows) + bias_floats(T, D, content);
}

void cpu_attention_backward(const AttentionGradients& g, Tensor dout, Tensor out,
                            const AttentionSaved& saved, const Attention& a,
                            const AttentionScratch& s) {
  const int64_t B = a.q.shape[0], T = a.q.shape[1], H = a.q.shape[2], K = a.k.shape[2];
  const int64_t group = H / K, parts = parts_of(T);
  const Weighing weighing = weighing_of(a, s);
  const Inputs inputs = {g, dout, out, saved, a, s};
  rows::dispatch_activation(a.q.dtype, [&]<class A>() {
    const auto run = [&](int64_t slot, const Part& part) {
      if (part.queries.begin == part.queries.end || part.keys.begin == part.keys.end) return;
      Pieces pieces = s.of_slot(slot);
      const auto work = [&](const Policies& policies) {
        BackwardTask<A>(inputs, policies, pieces, part).run();
      };
      with_policies(a, s, &g.bias, pieces, weighing, std::ref(work));
    };
    const auto readers = [group](int64_t kh) { return Span{kh * group, (kh + 1) * group}; };
    // Products of a tile: five for keys and queries together, four and three for each alone.
    constexpr double kApart = 1.1 * 7 / 5;
    if (weighing == Weighing::tiles && parts > 1 && worth_splitting(B * K, kApart)) {
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
  });
  join_gradients(g.bias, a, s);
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
