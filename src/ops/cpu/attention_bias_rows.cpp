#include "ops/cpu/attention_bias_rows.h"

#include "ops/cpu/attention_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

template <BiasMode kBias>
class BiasRows final : public RowBias {
 public:
  BiasRows(const Attention& a, const AttentionScratch& s, const BiasGradients* g, float* scratch)
      : a_(a), s_(s), g_(g), T_(a.q.shape[1]), pieces_(scratch), memory_(pieces_, T_) {
    if constexpr (kBias == BiasMode::fire) db_ = pieces_.take(kK);
  }

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
    biases_ = biases_of<kBias>(a_, b, h, memory_);
  }
  void set_tile(int64_t i0, int64_t i1, int64_t j_first) override {
    if constexpr (is_sums(kBias)) biases_.sums.set_tile(i0, i1, j_first);
  }
  void clear_head() override {
    const auto of_rows = [this](const Tensor& x) {
      float* const rows = x.ptr<float>() + (b_ * a_.q.shape[2] + h_) * T_;
      std::fill_n(rows, T_, 0.0f);
      return rows;
    };
    if constexpr (is_sums(kBias)) {
      rows_ = of_rows(std::get<SumsBiasGradients>(*g_).dsums);
      keys_ = key_sums(s_, a_, b_, h_);
      std::fill_n(keys_, padded_keys(T_), 0.0f);
    }
    if constexpr (kBias == BiasMode::fire) {
      rows_ = of_rows(std::get<FireBiasGradients>(*g_).dfire_u);
      psi_ = of_rows(std::get<FireBiasGradients>(*g_).dfire_psi);
    }
  }
  void set_part(int64_t part) override {
    if constexpr (kBias == BiasMode::table) {
      keys_ = partial_table(s_, a_, b_, h_, part);
      std::fill_n(keys_, table_length(T_), 0.0f);
    }
    if constexpr (kBias == BiasMode::fire) {
      segments_ = partial_fire(s_, a_, b_, h_, part);
      std::fill_n(segments_, 2 * kFireSegments, 0.0);
    }
  }

  void add(float* z, const RowSpan& row, float t, float of_bias) const override {
    for_biases(row, [&](int64_t n, const Of& b) {
      simd::store(z + n, t * simd::load(z + n) + of_bias * b.bias());
    });
  }

  float adjoint(const float* dz, const RowSpan& row, float of_bias, bool scaled) override {
    Vec dscale{};
    if (scaled) {
      for_biases(row, [&](int64_t n, const Of& b) { dscale += simd::load(dz + n) * b.bias(); });
    }
    if constexpr (kBias == BiasMode::table) {
      float* const to = keys_ + table_offset(T_, row.i, row.first);
      for (int64_t n = 0; n < row.n; n += simd::kWidth) {
        simd::store(to + n, simd::load(to + n) + of_bias * simd::load(dz + n));
      }
    }
    if constexpr (is_sums(kBias)) {
      Vec of_row{};
      float* const to = keys_ + row.first;
      for_biases(row, [&](int64_t n, const Of& b) {
        const Vec dx = b.adjoint(of_bias * simd::load(dz + n));
        const int64_t left = row.n - n;
        const Vec sum =
            left >= simd::kWidth ? simd::load(to + n) + dx : simd::load_partial(to + n, left) + dx;
        left >= simd::kWidth ? simd::store(to + n, sum) : simd::store_partial(to + n, sum, left);
        of_row -= dx;
      });
      rows_[row.i] += simd::sum(of_row);
    }
    if constexpr (kBias == BiasMode::fire) {
      for (int64_t n = 0; n < row.n; n += kK) {
        for (int64_t c = 0; c < kK; ++c) db_[c] = n + c < row.n ? of_bias * dz[n + c] : 0.0f;
        const int64_t j = row.first + n;
        biases_.fire.add(db_, row.i, j, table_offset(T_, row.i, j), segments_, &rows_[row.i],
                         &psi_[row.i]);
      }
    }
    return simd::sum(dscale);
  }

 private:
  // ScaleMode::both: the bias itself, never as a factor of exp(z).
  using Of = BiasOfKeys<kBias, ScaleMode::both>;

  /// f(n, bias) for the vectors of a row, n from 0 on.
  template <class F>
  void for_biases(const RowSpan& row, F&& f) const {
    const Vec of_row = biases_.template of_row<kBias>(row.r);
    for (int64_t tile = 0; tile < row.n; tile += kK) {
      const float* of_keys = biases_.template of_keys<kBias>(T_, row.i, row.first + tile);
      for (int64_t n = tile; n < std::min(row.n, tile + kK); n += simd::kWidth) {
        f(n, Of(of_keys + (n - tile), of_row));
      }
    }
  }

  const Attention& a_;
  const AttentionScratch& s_;
  const BiasGradients* g_;
  int64_t T_, b_ = 0, h_ = 0;
  Pieces pieces_;
  BiasMemory memory_;
  Biases biases_;
  float *keys_ = nullptr, *rows_ = nullptr, *psi_ = nullptr, *db_ = nullptr;
  double* segments_ = nullptr;
};

}  // namespace

int64_t row_bias_floats(int64_t T) { return bias_floats(T) + 2 * kK; }

void with_row_bias(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                   float* scratch, const std::function<void(RowBias&)>& work) {
  dispatch_form(a, [&]<BiasMode kBias, ScaleMode>() {
    BiasRows<kBias> rows(a, s, g, scratch);
    work(rows);
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
