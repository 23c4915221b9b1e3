#include "ops/cpu/attention_bias_rows.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "ops/cpu/biases.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

template <class Stage>
class BiasRows final : public RowBias {
 public:
  BiasRows(const Attention& a, const AttentionScratch& s, const BiasGradients* g, float* scratch)
      : a_(a), pieces_(scratch), memory_(pieces_, a.q.shape[1]) {
    if (g) to_.emplace(*g, a, s, pieces_.take(kK));
  }

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
    stage_.emplace(a_, b, h, memory_);
  }
  void set_tile(int64_t i0, int64_t i1, int64_t j_first) override {
    stage_->set_tile(i0, i1, j_first);
  }
  void clear_head() override {
    const Span all = {0, a_.q.shape[1]};
    to_->set_head({b_, h_, all, all});
  }
  void set_part(int64_t part) override { to_->set_part(part, true); }

  void add(float* z, const RowSpan& row, float t, float of_bias) override {
    for_biases(*stage_, row, [&](int64_t n, const auto& b) {
      simd::store(z + n, t * simd::load(z + n) + of_bias * b.bias());
    });
  }

  float adjoint(float* dz, const RowSpan& row, float, float of_bias, bool scaled) override {
    Vec dscale{};
    if (scaled) {
      for_biases(*stage_, row,
                 [&](int64_t n, const auto& b) { dscale += simd::load(dz + n) * b.bias(); });
    }
    to_->add_row(*stage_, dz, row, of_bias);
    return simd::sum(dscale);
  }

 private:
  const Attention& a_;
  int64_t b_ = 0, h_ = 0;
  Pieces pieces_;
  BiasMemory memory_;
  std::optional<Stage> stage_;
  std::optional<typename Stage::Adjoint> to_;  // empty in a forward pass
};

/// f.template operator()<Rows>() where a bias reads queries and keys.
template <class B, class F>
void with_content(F&& f) {
  if constexpr (reads_content<B>()) with_rows(B(), f);
}
/// The same for every such bias.
template <class F>
void for_content(F&& f) {
#define BAMTRAIN_ROWS(Bias) with_content<Bias>(f);
  BAMTRAIN_BIASES(BAMTRAIN_ROWS)
#undef BAMTRAIN_ROWS
}

}  // namespace

int64_t row_bias_floats(int64_t T, int64_t D, const ContentShape& content) {
  int64_t floats = bias_floats(T) + 2 * kK;
  if (!content.any) return floats;
  for_content([&]<class Rows>() { floats = std::max(floats, Rows::floats(T, D, content)); });
  return floats;
}

int64_t content_partial_floats(int64_t T, int64_t D, const ContentShape& content) {
  int64_t floats = 0;
  for_content(
      [&]<class Rows>() { floats = std::max(floats, Rows::partial_floats(T, D, content)); });
  return floats;
}

void with_row_bias(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                   float* scratch, const std::function<void(RowBias&)>& work) {
  dispatch_rows(a, [&]<class Stage>() {
    using Rows = std::conditional_t<std::is_base_of_v<RowBias, Stage>, Stage, BiasRows<Stage>>;
    Rows rows(a, s, g, scratch);
    work(rows);
  });
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
