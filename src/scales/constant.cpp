#include "scales/constant.h"

namespace bamtrain {

ScaleInfo constant_scale() {
  ScaleInfo s;
  s.name = ConstantScale<double>::kName;
  s.formula = "t_i = t";
  s.options = {{"t", "inverse temperature", 1.0, {}, 0, 1e4}, scale_bias_option("false")};
  s.constants = [](const Options& o, const ModelShape&) -> FormulaConstants {
    return {{o.number("t")}};
  };
  s.kind = length_kind<ConstantScale>();
  return s;
}

}  // namespace bamtrain
