#pragma once
// Every bias of the CPU attention, and its stage.

#include "ops/cpu/bias.h"
#include "ops/cpu_stages.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Calls f.template operator()<Stage>() for the bias of `a`.
template <class F>
inline void dispatch_bias(const Attention& a, F&& f) {
  std::visit([&f](const auto& bias) { with_stage(bias, f); }, a.bias);
}

/// Calls f.template operator()<Stage, kScale>() for the form of z that `a` asks for.
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
