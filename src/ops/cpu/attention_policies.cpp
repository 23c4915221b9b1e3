#include "ops/cpu/attention_policies.h"

#include <algorithm>
#include <variant>

#include "ops/cpu/bias_cope.h"
#include "ops/cpu/bias_fire.h"
#include "ops/cpu/bias_table.h"
#include "ops/cpu/bias_tokens.h"
#include "ops/cpu/bias_transformer_xl.h"
#include "ops/cpu/softmax_tiles.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

namespace {

template <class Bias, bool kScaled>
struct LanesOf {
  using Type = FormedLanes<kScaled>;
};
template <bool kScaled>
struct LanesOf<NoBias, kScaled> {
  using Type = NoLanes;
};
template <class Of, bool kScaled>
struct LanesOf<TokenRows<Of>, kScaled> {
  using Type = TokenLanes<Of, kScaled>;
};

template <class F>
void with_type(const EveryBias::Any& bias, F&& f) {
  std::visit([&f](const auto& b) { with_type_of(b, f); }, bias);
}

}  // namespace

Weighing weighing_of(const Attention& a, const AttentionScratch& s) {
  require(!reads_content(a.bias) || (s.content.any && !a.mix),
          "a bias that was planned, and of mixed heads one that reads no queries and keys");
  require(!a.mix || s.mix_shared, "a mix that was planned");
  if (a.mix || a.form.normalizer.kind != NormalizerKind::softmax || s.general ||
      reads_content(a.bias)) {
    return Weighing::rows;
  }
  return Weighing::tiles;
}

void with_policies(const Attention& a, const AttentionScratch& s, const BiasGradients* g,
                   Pieces& pieces, Weighing weighing,
                   const std::function<void(const Policies&)>& work) {
  with_type(a.bias, [&]<class Bias>() {
    Bias bias(a, s, g, pieces);
    const auto with_tiles = [&]<class Lanes>() {
      SoftmaxTilesOf<Lanes> tiles(bias);
      work({bias, &tiles, nullptr});
    };
    if (weighing == Weighing::rows) {
      const auto with_rows = [&](RowNormalizer& rows) { work({bias, nullptr, &rows}); };
      with_row_normalizer(a, std::ref(with_rows));
    } else if (a.scale && a.form.scale_bias) {
      with_tiles.template operator()<typename LanesOf<Bias, true>::Type>();
    } else {
      with_tiles.template operator()<typename LanesOf<Bias, false>::Type>();
    }
  });
}

int64_t bias_floats(int64_t keys, int64_t D, const ContentShape& content) {
  int64_t floats = 0;
  EveryBias::each([&]<class B>() {
    if (reads_content<B>() && !content.any) return;
    with_type_of(B(),
                 [&]<class Bias>() { floats = std::max(floats, Bias::floats(keys, D, content)); });
  });
  return floats + 16 * simd::kWidth;  // each of its pieces is rounded up
}

int64_t content_partial_floats(int64_t T, int64_t D, const ContentShape& content) {
  int64_t floats = 0;
  EveryBias::each([&]<class B>() {
    if constexpr (reads_content<B>()) {
      with_type_of(B(), [&]<class Bias>() {
        floats = std::max(floats, Bias::partial_floats(T, D, content));
      });
    }
  });
  return floats;
}

void join_gradients(const BiasGradients& g, const Attention& a, const AttentionScratch& s) {
  with_type(a.bias, [&]<class Bias>() { Bias::join(g, a, s); });
}

void form_logits(const Block& row, const BiasRows& b, float content, float bias) {
  for (int64_t n = 0; n < row.keys(); n += simd::kWidth) {
    simd::store(row.data + n, content * simd::load(row.data + n) + bias * b.of_row(n));
  }
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
