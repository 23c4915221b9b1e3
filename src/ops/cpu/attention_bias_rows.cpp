#include "ops/cpu/attention_bias_rows.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>

#include "ops/cpu/biases.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {

using namespace tiles;

namespace {

constexpr int64_t kRowBiasBytes = 512;

template <class Stage>
class BiasRows final : public RowBias {
 public:
  BiasRows(const Attention& a, const AttentionScratch& s, const BiasGradients* g, float* scratch)
      : a_(a), s_(s), pieces_(scratch), memory_(pieces_, a.q.shape[1]) {
    if (g) to_.emplace(*g, a, s, pieces_.take(kK));
  }

  void set_head(int64_t b, int64_t h) override {
    b_ = b;
    h_ = h;
    stage_.emplace(a_, b, h, memory_);
  }
  void set_tile(int64_t i0, int64_t i1, int64_t j_first, int64_t j_end) override {
    stage_->set_tile(i0, i1, j_first, j_end);
  }
  void clear_head() override {
    const Span all = {0, a_.q.shape[1]};
    to_->set_head({b_, h_, all, all});
  }
  void set_part(int64_t part) override { to_->set_part(part, true); }
  void clear_part(int64_t part) override {
    const Span queries = query_part(a_.q.shape[1], part);
    TaskHead head = {b_, h_, queries, {0, keys_of_part(a_, part)}};
    head.for_keys = false;
    head.other_keys = partial_table(s_, a_, b_, h_, part);
    to_->set_head(head);
    to_->set_part(part, true);
  }

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
  const AttentionScratch& s_;
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
  EveryBias::each([&f]<class B>() { with_content<B>(f); });
}

/// In scratch, so that their number takes no memory.
template <class Stage>
class EveryHead final : public RowBiases {
  using Rows = BiasRows<Stage>;
  static_assert(sizeof(Rows) <= kRowBiasBytes && alignof(Rows) <= alignof(Vec));

 public:
  EveryHead(const Attention& a, const AttentionScratch& s, const BiasGradients* g, float* scratch)
      : H_(a.q.shape[2]), heads_(reinterpret_cast<std::byte*>(scratch)) {
    float* const memory = scratch + H_ * kRowBiasBytes / static_cast<int64_t>(sizeof(float));
    for (int64_t h = 0; h < H_; ++h) {
      new (heads_ + h * kRowBiasBytes)
          Rows(a, s, g, memory + h * padded(row_bias_floats(a.q.shape[1], 0, {})));
    }
  }
  EveryHead(const EveryHead&) = delete;
  EveryHead& operator=(const EveryHead&) = delete;
  ~EveryHead() override {
    for (int64_t h = 0; h < H_; ++h) std::destroy_at(&rows(h));
  }
  RowBias& of(int64_t h) override { return rows(h); }

 private:
  Rows& rows(int64_t h) {
    return *std::launder(reinterpret_cast<Rows*>(heads_ + h * kRowBiasBytes));
  }

  int64_t H_;
  std::byte* heads_;
};

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

void with_row_biases(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                     float* scratch, const std::function<void(RowBiases&)>& work) {
  dispatch_bias(a, [&]<class Stage>() {
    EveryHead<Stage> heads(a, s, g, scratch);
    work(heads);
  });
}

int64_t row_biases_floats(int64_t T, int64_t H) {
  return H *
         (kRowBiasBytes / static_cast<int64_t>(sizeof(float)) + padded(row_bias_floats(T, 0, {})));
}

}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
