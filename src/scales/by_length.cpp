#include "scales/by_length.h"

namespace bamtrain {

namespace {

/// Entries per head of by_length's table.
int64_t lengths_of(const Options& o, const ModelShape& shape) {
  const auto n = static_cast<int64_t>(o.number("lengths"));
  return n ? n : shape.sequence_length;
}

}  // namespace

ScaleInfo by_length_scale() {
  ScaleInfo s;
  s.name = "by_length";
  s.formula = "t_i = t[h][n_i - 1], learned";
  s.options = {
      length_option("lengths", "entries per head; 0: those of init_from, else the training length",
                    [](const Options&, int64_t T, int64_t) { return static_cast<double>(T); }),
      scale_bias_option("false"), decay_option("t", false)};
  s.parameters = [](const Options& o, const ModelShape& shape) {
    const int64_t lengths = lengths_of(o, shape);
    if (lengths < shape.sequence_length) {
      throw Error(ExitCode::config, "{lengths}",
                  "at least {model.sequence_length} = " + std::to_string(shape.sequence_length),
                  std::to_string(lengths), "raise it, or set it to 0");
    }
    MechanismParameter table = {"t", {shape.heads, lengths}, true, false, "1"};
    table.decays = o.flag("decay");
    return MechanismParameters{table};
  };
  s.initial = [](const Options&, const ModelShape&, const MechanismParameter&, int64_t, double,
                 double) { return 1.0; };
  s.constants = [](const Options& o, const ModelShape& shape) -> FormulaConstants {
    return {{static_cast<double>(lengths_of(o, shape))}};
  };
  s.kind = LengthKind{ByLengthScale::value, ByLengthScale::accumulate, ByLengthScale::longest};
  return s;
}

}  // namespace bamtrain
