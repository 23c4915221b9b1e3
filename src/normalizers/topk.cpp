#include "normalizers/topk.h"

#include "normalizers/normalizer.h"

namespace bamtrain {

NormalizerInfo topk_normalizer() {
  NormalizerInfo n;
  n.name = "topk";
  n.formula = "softmax over the k largest z_ij of a row; of equal ones the first keys";
  n.kind = NormalizerKind::topk;
  OptionSpec k = {
      "k", "how many keys a row keeps; n/2: half of them, at least one", 32.0, {}, 0, 1e9, true};
  k.word = "n/2";
  n.options = {k,
               {"of",
                "what n counts: the keys that the row sees, or the tokens of the whole sequence "
                "(the published "
                "form; a text that grows has none)",
                std::string("row"),
                {"row", "sequence"}}};
  n.form = [](const Options& o) -> NormalizerForm {
    return {NormalizerKind::topk,
            1.5,
            false,
            {static_cast<int64_t>(o.number("k")), o.text("of") == "sequence"}};
  };
  return n;
}

}  // namespace bamtrain
