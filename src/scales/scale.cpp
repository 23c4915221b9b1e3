#include "scales/scale.h"

namespace bamtrain {

OptionSpec scale_bias_option(const std::string& where_auto) {
  return {"scale_bias",
          "z = t (s + b) instead of t s + b; auto: " + where_auto,
          std::string("auto"),
          {"auto", "true", "false"}};
}

}  // namespace bamtrain
