#include "normalizers/topk.h"

#include "normalizers/normalizer.h"

namespace bamtrain {

NormalizerInfo Topk::info() {
  NormalizerInfo n;
  n.name = "topk";
  n.formula = "softmax over the k largest z_ij of a row; ties go to the first keys";
  OptionSpec k = {"k", "keys kept per row; n/2: half of them, at least one", 32.0, {}, 0, 1e9,
                  true};
  k.word = "n/2";
  n.options = {k,
               {"of",
                "what n counts; row: the keys that the row sees; sequence: the tokens of the whole "
                "sequence (the published form; undefined in incremental decoding)",
                std::string("row"),
                {"row", "sequence"}}};
  n.parameters = [](const Options& o, const ModelShape&) {
    if (o.text("of") == "sequence" && o.number("k") != 0) {
      throw Error(ExitCode::config, "{of}", "\"row\" unless {k} is \"n/2\"",
                  "\"sequence\", which has no effect there", "remove it, or set {k} to \"n/2\"");
    }
    return MechanismParameters();
  };
  n.form = [](const Options& o) -> NormalizerForm {
    return {.keys = {static_cast<int64_t>(o.number("k")), o.text("of") == "sequence"}};
  };
  n.examples = {
      {{"k", 7.0}}, {{"k", 1.0}}, {{"k", 0.0}}, {{"k", 0.0}, {"of", std::string("sequence")}}};
  return n;
}

}  // namespace bamtrain
