#include "ops/cpu/attention_operands.h"

#include <algorithm>
#include <cstring>

#include "ops/cpu/rows.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

namespace {

class Fp32Operands final : public Operands {
 public:
  Fp32Operands(const Attention& a, const OperandsRead& read, Pieces& pieces, int64_t keys,
               int64_t query_tiles)
      : Operands(kQ, false),
        a_(a),
        with_values_(read.values),
        D_(a.q.shape[3]),
        Dp_(padded(D_)),
        keys_(read.packed ? read.packed : pieces.take(keys * Dp_)),
        values_(read.packed ? read.packed + keys * Dp_ : pieces.take(keys * Dp_)),
        query_(pieces.take(query_tiles * kQ * Dp_)) {}

  void pack_keys(int64_t at, int64_t b, int64_t kh, int64_t begin, int64_t end) override {
    float* const rows = values_ + at * Dp_;
    pack_rows(rows, a_.k, b, kh, begin, end, Dp_, 1);  // on their way to keys_
    transpose_tiles(keys_ + at * D_, rows, 0, end - begin, D_, Dp_);
    if (with_values_) pack_rows(rows, a_.v, b, kh, begin, end, Dp_, 1);
  }
  void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) override {
    pack_rows(query_ + n * kQ * Dp_, a_.q, b, h, begin, end, Dp_, 1 / a_.content_divisor<float>());
  }
  void scores(int64_t n, int64_t r, int64_t rows, int64_t j, float* s,
              int64_t stride) const override {
    tile::product<false>(rows, kK, D_, {query_ + (n * kQ + r) * Dp_, Dp_, 1}, keys_ + j * D_, kK, s,
                         stride);
  }
  void add_values(float* out, int64_t rows, const float* p, int64_t stride, int64_t j,
                  int64_t live) const override {
    tile::product<true>(rows, Dp_, live, {p, stride, 1}, values_ + j * Dp_, Dp_, out, Dp_);
  }

 private:
  const Attention& a_;
  const bool with_values_;
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
      : Operands(products.rows_at_once, true),
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

  void pack_keys(int64_t at, int64_t b, int64_t kh, int64_t begin, int64_t end) override {
    const Bf16Rows keys(a_.k, b, kh), values(a_.v, b, kh);
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
            std::memcpy(static_cast<void*>(keys_ + (at + j) * Dk_ / 2 + (c / 2 + r) * kK + l),
                        &columns[r], sizeof columns[r]);
          }
        }
      }
      for (int64_t l = 0; l < kK; l += 2) {
        for (int64_t c = 0; c < Dp_; c += kLanes) {
          const simd::UVec even = l < n ? values.channels(first + l, c) : simd::UVec{};
          const simd::UVec odd = l + 1 < n ? values.channels(first + l + 1, c) : simd::UVec{};
          const simd::UVec pairs = (even >> 16) | odd;
          std::memcpy(static_cast<void*>(values_ + (at + j + l) / 2 * Dp_ + c), &pairs,
                      sizeof pairs);
        }
      }
    }
  }
  void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) override {
    const Bf16Rows queries(a_.q, b, h);
    for (int64_t r = 0; r < kQ; ++r) {
      for (int64_t c = 0; c < Dk_; c += 2 * kLanes) {
        const Vec x = begin + r < end ? queries.pairs(begin + r, c) : Vec{};
        std::memcpy(static_cast<void*>(query_ + (n * kQ + r) * Dk_ + c), &x, sizeof x);
      }
    }
  }
  void scores(int64_t n, int64_t r, int64_t rows, int64_t j, float* s,
              int64_t stride) const override {
    products_.multiply({ceil_div(rows, kLanes) * kLanes, kK, Dk_, Dk_, kK, stride},
                       query_ + (n * kQ + r) * Dk_, keys_ + j * Dk_ / 2, s);
  }
  void add_values(float* out, int64_t rows, const float* p, int64_t stride, int64_t j,
                  int64_t) const override {
    products_.add_in_two({ceil_div(rows, kLanes) * kLanes, Dp_, kK, 2 * stride, Dp_, Dp_},
                         reinterpret_cast<const bf16*>(p), values_ + j / 2 * Dp_, out);
  }
  float score_factor() const override { return 1 / a_.content_divisor<float>(); }

 private:
  static constexpr int64_t kLanes = 16, kInner = 32;

  /// Rows of x (T, D) at (b, h); what lies past D is zero.
  class Bf16Rows {
   public:
    Bf16Rows(const Tensor& x, int64_t b, int64_t h)
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

/// Keys and values where they lie.
template <class A>
class OperandsInPlace final : public Operands {
 public:
  OperandsInPlace(const Attention& a, bool with_values, Pieces& pieces, int64_t query_tiles)
      : Operands(kQ, false),
        a_(a),
        with_values_(with_values),
        D_(a.q.shape[3]),
        Dp_(padded(D_)),
        query_(pieces.take(query_tiles * kQ * Dp_)) {}

  void pack_keys(int64_t, int64_t b, int64_t kh, int64_t begin, int64_t end) override {
    keys_ = Rows(a_.k, b, kh, begin);
    if (with_values_) values_ = Rows(a_.v, b, kh, begin);
    end_ = end - begin;
  }
  void pack_queries(int64_t n, int64_t b, int64_t h, int64_t begin, int64_t end) override {
    pack_rows(query_ + n * kQ * Dp_, a_.q, b, h, begin, end, Dp_, 1 / a_.content_divisor<float>());
  }
  void scores(int64_t n, int64_t r, int64_t rows, int64_t j, float* s,
              int64_t stride) const override {
    const Rows keys = keys_;
    const int64_t live = std::min(kK, end_ - j);
    for (int64_t i = 0; i < rows; ++i) {
      std::fill_n(s + i * stride, kK, 0.0f);
      rows::dots(s + i * stride, query_ + (n * kQ + r + i) * Dp_, D_, live,
                 [&keys, j](int64_t k) { return keys.take(j + k); });
    }
  }
  void add_values(float* out, int64_t rows, const float* p, int64_t stride, int64_t j,
                  int64_t live) const override {
    const auto add = [&]<int kVectors>() {
      for (int64_t i = 0; i < rows; ++i) {
        add_row<kVectors>(out + i * Dp_, p + i * stride, j, live);
      }
    };
    switch (D_ % simd::kWidth == 0 ? D_ / simd::kWidth : 0) {
      case 2:
        return add.template operator()<2>();
      case 3:
        return add.template operator()<3>();
      case 4:
        return add.template operator()<4>();
      case 6:
        return add.template operator()<6>();
      case 8:
        return add.template operator()<8>();
      default:
        return add.template operator()<0>();
    }
  }

 private:
  /// Bytes of keys or values that are prefetched.
  static constexpr int64_t kAhead = 2048;
  /// The rows of a key head.
  struct Rows {
    const A* first = nullptr;
    int64_t stride = 0, bytes = 0;
    uintptr_t ahead = 0;

    Rows() = default;
    Rows(const Tensor& x, int64_t b, int64_t kh, int64_t begin)
        : first(static_cast<const A*>(x.data) + b * x.stride[0] + begin * x.stride[1] +
                kh * x.stride[2]),
          stride(x.stride[1]),
          bytes(x.shape[3] * static_cast<int64_t>(sizeof(A))),
          ahead(static_cast<uintptr_t>(ceil_div(kAhead, bytes) * stride *
                                       static_cast<int64_t>(sizeof(A)))) {}
    /// The n-th, to be read now; prefetches one further on.
    const A* take(int64_t n) const {
      const A* const row = first + n * stride;
      simd::prefetch(reinterpret_cast<uintptr_t>(row) + ahead, bytes);
      return row;
    }
  };

  /// out (D) += p v, kept in kVectors registers, or with 0 in memory.
  template <int kVectors>
  void add_row(float* out, const float* p, int64_t j, int64_t live) const {
    const int64_t D = D_;
    const Rows values = values_;
    Vec sums[std::max(kVectors, 1)];
    for (int n = 0; n < kVectors; ++n) sums[n] = simd::load(out + n * simd::kWidth);
    for (int64_t k = 0; k < live; ++k) {
      const A* const value = values.take(j + k);
      for (int n = 0; n < kVectors; ++n) sums[n] += p[k] * simd::load(value + n * simd::kWidth);
      if (kVectors > 0) continue;
      rows::for_vectors(D, [&](int64_t c, auto lanes) {
        simd::store(out + c, simd::load(out + c) + p[k] * rows::load(value + c, lanes));
      });
    }
    for (int n = 0; n < kVectors; ++n) simd::store(out + n * simd::kWidth, sums[n]);
  }

  const Attention& a_;
  const bool with_values_;
  int64_t D_, Dp_, end_ = 0;
  Rows keys_, values_;
  float* query_;  // (query tiles, kQ, Dp), divided as content scores are
};

}  // namespace

int64_t Operands::floats(int64_t keys, int64_t query_tiles, int64_t Dp) {
  // In bf16 half of each, but up to sixteen channels more of keys and queries.
  return 2 * keys * Dp + query_tiles * kQ * Dp;
}

void with_operands(const Attention& a, const AttentionScratch& s, Pieces& pieces,
                   const OperandsRead& read, int64_t keys, int64_t query_tiles,
                   const std::function<void(Operands&)>& f) {
  if (a.q.dtype == Dtype::bf16 && s.bf16_gemm && read.reading == Reading::packed) {
    if constexpr (Bf16Operands::kThere) {
      Bf16Operands operands(a, *s.bf16_gemm, pieces, keys, query_tiles);
      return f(operands);
    }
  }
  if (read.reading != Reading::in_place) {
    Fp32Operands operands(a, read, pieces, keys, query_tiles);
    return f(operands);
  }
  rows::dispatch_activation(a.q.dtype, [&]<class A>() {
    OperandsInPlace<A> operands(a, read.values, pieces, query_tiles);
    f(operands);
  });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
