#pragma once
// Every bias of the CPU attention, and its stage.

#include "ops/cpu/bias.h"
#include "ops/cpu/bias_cope.h"
#include "ops/cpu/bias_fire.h"
#include "ops/cpu/bias_table.h"
#include "ops/cpu/bias_tokens.h"
#include "ops/cpu/bias_transformer_xl.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Calls f.template operator()<Stage>() for the bias of `a`. REQUIRES: it does not read queries and
/// keys.
template <class F>
inline void dispatch_bias(const Attention& a, F&& f) {
  const auto with = [&f]<class B>(const B& bias) {
    if constexpr (reads_content<B>()) {
      require(false, "a bias of the general path, which forms it of rows");
    } else {
      with_stage(bias, f);
    }
  };
  std::visit(with, a.bias);
}

/// The same for any bias: if it reads queries and keys, f gets its RowBias instead of a stage.
template <class F>
inline void dispatch_rows(const Attention& a, F&& f) {
  const auto with = [&f]<class B>(const B& bias) {
    if constexpr (reads_content<B>()) {
      with_rows(bias, f);
    } else {
      with_stage(bias, f);
    }
  };
  std::visit(with, a.bias);
}

/// Calls f.template operator()<Stage, kScale>() for the form of z in `a`.
template <class F>
inline void dispatch_form(const Attention& a, F&& f) {
  dispatch_bias(a, [&]<class Stage>() {
    if (a.scale.t && a.scale.on_bias && Stage::kThere) {
      return f.template operator()<Stage, ScaleMode::both>();
    }
    if (a.scale.t) return f.template operator()<Stage, ScaleMode::content>();
    return f.template operator()<Stage, ScaleMode::none>();
  });
}

}  // namespace tiles
}  // namespace BAMTRAIN_ISA
}  // namespace bamtrain
