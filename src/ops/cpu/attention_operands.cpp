#include "ops/cpu/attention_operands.h"

#include <algorithm>
#include <cstring>

#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

namespace {

template <class A>
class Fp32Operands final : public Operands {
 public:
  Fp32Operands(const Attention& a, Pieces& pieces, int64_t keys, int64_t query_tiles)
      : Operands(pieces, kQ, false),
        a_(a),
        D_(a.q.shape[3]),
        Dp_(padded(D_)),
        keys_(pieces.take(keys * Dp_)),
        values_(pieces.take(keys * Dp_)),
        query_(pieces.take(query_tiles * kQ * Dp_)) {}

  void pack_keys(int64_t b, int64_t kh, int64_t begin, int64_t end) override {
    pack_rows<A>(values_, a_.k, b, kh, begin, end, Dp_, 1);  // on their way to keys_
    transpose_tiles(keys_, values_, 0, end - begin, D_, Dp_);
    pack_rows<A>(values_, a_.v, b, kh, begin, end, Dp_, 1);
  }
  void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) override {
    pack_rows<A>(query_ + n * kQ * Dp_, a_.q, b, h, begin, end, Dp_,
                 1 / a_.content_divisor<float>());
  }
  void scores(int64_t n, int64_t r, int64_t rows, int64_t j) const override {
    tile::product<false>(rows, kK, D_, {query_ + (n * kQ + r) * Dp_, Dp_, 1}, keys_ + j * D_, kK,
                         strip().memory, kK);
  }
  void add_values(float* out, int64_t rows, int64_t j, int64_t live) const override {
    tile::product<true>(rows, Dp_, live, {strip().memory, kK, 1}, values_ + j * Dp_, Dp_, out, Dp_);
  }
  float score_factor() const override { return 1; }
  void unpack(const Tensor& out, int64_t b, int64_t h, int64_t begin, int64_t end,
              const float* rows) const override {
    unpack_rows<A>(out, b, h, begin, end, rows, Dp_, 1);
  }

 private:
  const Attention& a_;
  int64_t D_, Dp_;
  float* keys_;    // (tiles, D, kK)
  float* values_;  // (keys, Dp)
  float* query_;   // (query tiles, kQ, Dp), divided as content scores are
};

/// The order of Bf16Gemm, whose vectors are of sixteen pairs.
class Bf16Operands final : public Operands {
 public:
  static constexpr bool kThere = simd::kWidth == 16;

  Bf16Operands(const Attention& a, const Bf16Gemm& products, Pieces& pieces, int64_t keys,
               int64_t query_tiles)
      : Operands(pieces, products.rows_at_once, true),
        a_(a),
        products_(products),
        D_(a.q.shape[3]),
        Dp_(padded(D_)),
        Dk_(ceil_div(D_, kInner) * kInner),
        keys_(reinterpret_cast<Bf16Pair*>(pieces.take(keys * Dk_ / 2))),
        values_(reinterpret_cast<Bf16Pair*>(pieces.take(keys * Dp_ / 2))),
        query_(reinterpret_cast<bf16*>(pieces.take(query_tiles * kQ * Dk_ / 2))) {
    products_.begin();
  }
  ~Bf16Operands() override { products_.end(); }

  void pack_keys(int64_t b, int64_t kh, int64_t begin, int64_t end) override {
    const Rows keys(a_.k, b, kh), values(a_.v, b, kh);
    for (int64_t j = 0; j < end - begin; j += kK) {
      const int64_t first = begin + j, n = std::min(kK, end - first);
      for (int64_t l = 0; l < kK; l += kLanes) {
        for (int64_t c = 0; c < Dk_; c += 2 * kLanes) {
          Vec columns[simd::kWidth];
          for (int64_t r = 0; r < kLanes; ++r) {
            columns[r] = l + r < n ? keys.pairs(first + l + r, c) : Vec{};
          }
          simd::transpose(columns);
          for (int64_t r = 0; r < kLanes; ++r) {
            std::memcpy(static_cast<void*>(keys_ + j * Dk_ / 2 + (c / 2 + r) * kK + l), &columns[r],
                        sizeof columns[r]);
          }
        }
      }
      for (int64_t l = 0; l < kK; l += 2) {
        for (int64_t c = 0; c < Dp_; c += kLanes) {
          const simd::UVec even = l < n ? values.channels(first + l, c) : simd::UVec{};
          const simd::UVec odd = l + 1 < n ? values.channels(first + l + 1, c) : simd::UVec{};
          const simd::UVec pairs = (even >> 16) | odd;
          std::memcpy(static_cast<void*>(values_ + (j + l) / 2 * Dp_ + c), &pairs, sizeof pairs);
        }
      }
    }
  }
  void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) override {
    const Rows queries(a_.q, b, h);
    for (int64_t r = 0; r < kQ; ++r) {
      for (int64_t c = 0; c < Dk_; c += 2 * kLanes) {
        const Vec x = begin + r < end ? queries.pairs(begin + r, c) : Vec{};
        std::memcpy(static_cast<void*>(query_ + (n * kQ + r) * Dk_ + c), &x, sizeof x);
      }
    }
  }
  void scores(int64_t n, int64_t r, int64_t rows, int64_t j) const override {
    products_.multiply({ceil_div(rows, kLanes) * kLanes, kK, Dk_, Dk_, kK, kK},
                       query_ + (n * kQ + r) * Dk_, keys_ + j * Dk_ / 2, strip().memory);
  }
  void add_values(float* out, int64_t rows, int64_t j, int64_t) const override {
    products_.add_in_two({ceil_div(rows, kLanes) * kLanes, Dp_, kK, 2 * kK, Dp_, Dp_},
                         reinterpret_cast<const bf16*>(strip().memory), values_ + j / 2 * Dp_, out);
  }
  float score_factor() const override { return 1 / a_.content_divisor<float>(); }
  void unpack(const Tensor& out, int64_t b, int64_t h, int64_t begin, int64_t end,
              const float* rows) const override {
    unpack_rows<bf16>(out, b, h, begin, end, rows, Dp_, 1);
  }

 private:
  static constexpr int64_t kLanes = 16, kInner = 32;

  /// Rows of x (T, D) at (b, h); what lies past D is zero.
  class Rows {
   public:
    Rows(const Tensor& x, int64_t b, int64_t h)
        : base_(static_cast<const bf16*>(x.data) + b * x.stride[0] + h * x.stride[2]),
          stride_(x.stride[1]),
          D_(x.shape[3]) {}
    /// Sixteen pairs of channels of row t from c on.
    Vec pairs(int64_t t, int64_t c) const {
      const bf16* const from = base_ + t * stride_ + c;
      Vec v{};
      if (c + 2 * kLanes <= D_) [[likely]] {
        std::memcpy(&v, from, sizeof v);
      } else {
        std::memcpy(&v, from, static_cast<size_t>(D_ - c) * sizeof(bf16));
      }
      return v;
    }
    /// Sixteen channels of row t from c on, one in each upper half.
    simd::UVec channels(int64_t t, int64_t c) const {
      const bf16* const from = base_ + t * stride_ + c;
      return reinterpret_cast<simd::UVec>(c + kLanes <= D_ ? simd::load(from)
                                                           : simd::load_partial(from, D_ - c));
    }

   private:
    const bf16* base_;
    int64_t stride_, D_;
  };

  const Attention& a_;
  const Bf16Gemm& products_;
  int64_t D_, Dp_, Dk_;
  Bf16Pair* keys_;    // (tiles, Dk / 2, kK)
  Bf16Pair* values_;  // (keys / 2, Dp)
  bf16* query_;       // (query tiles, kQ, Dk)
};

}  // namespace

int64_t Operands::floats(int64_t keys, int64_t query_tiles, int64_t Dp) {
  // In bf16 half of each, but up to sixteen channels more of keys and queries.
  return 2 * keys * Dp + query_tiles * kQ * Dp + kQ * kK;
}

void with_operands(const Attention& a, const AttentionScratch& s, Pieces& pieces, int64_t keys,
                   int64_t query_tiles, const std::function<void(Operands&)>& f) {
  if (a.q.dtype == Dtype::bf16 && s.bf16_gemm) {
    if constexpr (Bf16Operands::kThere) {
      Bf16Operands operands(a, *s.bf16_gemm, pieces, keys, query_tiles);
      return f(operands);
    }
  }
  rows::dispatch_activation(a.q.dtype, [&]<class A>() {
    Fp32Operands<A> operands(a, pieces, keys, query_tiles);
    f(operands);
  });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
