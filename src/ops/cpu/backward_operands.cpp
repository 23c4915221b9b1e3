#include "ops/cpu/backward_operands.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

BackwardOperands::BackwardOperands(const Attention& a, const Tensor& dout, int64_t b, Span heads,
                                   float* packed, float* gradients, Pieces& pieces)
    : a_(a), dout_(dout), b_(b), key_heads_{key_head(heads.begin), key_head(heads.end - 1) + 1} {
  const int64_t floats = key_heads_.size() * head_floats_;
  all_keys_ = packed ? packed : pieces.take(3 * floats);
  all_keys_t_ = all_keys_ + floats;
  all_values_t_ = all_keys_t_ + floats;
  all_dkeys_ = gradients ? gradients : pieces.take(2 * floats);
  all_dvalues_ = all_dkeys_ + floats;
  query = pieces.take(kQ * Dp_);
  scaled_query = a.scale ? pieces.take(kQ * Dp_) : query;
  dquery = pieces.take(kQ * Dp_);
  dout_rows = pieces.take(kQ * Dp_);
}

int64_t BackwardOperands::floats(int64_t T, int64_t D, bool shared) {
  return (shared ? 0 : 5 * padded_keys(T) * padded(D)) + 4 * kQ * padded(D);
}

void BackwardOperands::pack_keys(const Attention& a, int64_t b, int64_t kh, Span keys, float* to,
                                 int64_t stride) {
  const int64_t D = a.q.shape[3], Dp = padded(D);
  float* const from = to + keys.begin * Dp;  // of values on their way
  pack_rows(from, a.v, b, kh, keys.begin, keys.end, Dp, 1);
  transpose_tiles(to + 2 * stride, to, keys.begin, keys.end, D, Dp);
  pack_rows(from, a.k, b, kh, keys.begin, keys.end, Dp, 1);
  transpose_tiles(to + stride, to, keys.begin, keys.end, D, Dp);
}

void BackwardOperands::clear_gradients(Span of) {
  for (int64_t n = 0; n < key_heads_.size(); ++n) {
    for (float* const x : {all_dkeys_, all_dvalues_}) {
      std::fill_n(at(x + n * head_floats_, of.begin), of.size() * Dp_, 0.0f);
    }
  }
}

void BackwardOperands::unpack_gradients(const AttentionGradients& g, Span of) const {
  const int64_t kh = key_heads_.begin;  // q carried the content scale
  unpack_rows(g.dk, b_, kh, of.begin, of.end, at(all_dkeys_, of.begin), Dp_, 1);
  unpack_rows(g.dv, b_, kh, of.begin, of.end, at(all_dvalues_, of.begin), Dp_, 1);
}

void BackwardOperands::set_head(int64_t h) {
  h_ = h;
  const int64_t head = (key_head(h) - key_heads_.begin) * head_floats_;
  keys = all_keys_ + head;
  keys_t_ = all_keys_t_ + head;
  values_t_ = all_values_t_ + head;
  dkeys = all_dkeys_ + head;
  dvalues_ = all_dvalues_ + head;
}

void BackwardOperands::pack_queries(int64_t i0, int64_t i1) {
  pack_rows(query, a_.q, b_, h_, i0, i1, Dp_, 1 / a_.content_divisor<float>());
  std::fill_n(dquery, (i1 - i0) * Dp_, 0.0f);
}
void BackwardOperands::pack_dout(int64_t i0, int64_t i1) const {
  pack_rows(dout_rows, dout_, b_, h_, i0, i1, Dp_, 1);
}

void BackwardOperands::scores(const Block& s, int64_t j0) const {
  tile::product<false>(s.rows(), kK, D_, {query, Dp_, 1}, keys_t_ + j0 * D_, kK, s.at(s.i0, j0),
                       s.stride);
}
void BackwardOperands::dP(const Block& to, int64_t j0) const {
  tile::product<false>(to.rows(), kK, D_, {dout_rows, Dp_, 1}, values_t_ + j0 * D_, kK,
                       to.at(to.i0, j0), to.stride);
}
void BackwardOperands::to_values(const Block& p, int64_t j0, int64_t live) const {
  tile::product<true>(live, Dp_, p.rows(), {p.at(p.i0, j0), 1, p.stride}, dout_rows, Dp_,
                      at(dvalues_, j0), Dp_);
}
void BackwardOperands::to_keys(const Block& dz, int64_t j0, int64_t live) const {
  tile::product<true>(live, Dp_, dz.rows(), {dz.at(dz.i0, j0), 1, dz.stride}, scaled_query, Dp_,
                      at(dkeys, j0), Dp_);
}
void BackwardOperands::to_queries(const Block& dz, int64_t j0, int64_t live) const {
  tile::product<true>(dz.rows(), Dp_, live, {dz.at(dz.i0, j0), dz.stride, 1}, at(keys, j0), Dp_,
                      dquery, Dp_);
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
