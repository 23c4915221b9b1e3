#pragma once
// Every bias of the CPU attention, and its stage.

#include "ops/cpu/bias.h"
#include "ops/cpu/bias_fire.h"
#include "ops/cpu/bias_sums.h"
#include "ops/cpu/bias_table.h"

namespace bamtrain {
inline namespace BAMTRAIN_ISA {
namespace tiles {

/// Calls f.template operator()<Stage>() for a bias.
template <class F>
struct StageOfBias {
  F& f;

  void operator()(const Nothing&) const { f.template operator()<NoBias>(); }
  void operator()(const TableBias&) const { f.template operator()<TableStage>(); }
  void operator()(const FireBias&) const { f.template operator()<FireStage>(); }
  void operator()(const SumsBias& bias) const {
    switch (bias.form) {
      case SumBias::difference:
        return f.template operator()<SumsStage<SumBias::difference>>();
      case SumBias::log_square:
        return f.template operator()<SumsStage<SumBias::log_square>>();
    }
  }
};
template <class F>
inline void dispatch_bias(const Attention& a, F&& f) {
  std::visit(StageOfBias<F>{f}, a.bias);
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
