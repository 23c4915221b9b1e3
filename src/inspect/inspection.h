#pragma once
// A model's attention to one prompt, and what its depth makes of it: on the CPU, in fp32.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "inspect/collapse.h"
#include "inspect/layer_view.h"
#include "model/model_config.h"

namespace bamtrain {

/// Rows are formed one logit at a time: what more tokens take grows with their square.
inline constexpr int64_t kMostInspected = 4096;

struct InspectionRequest {
  ModelConfig config;
  int64_t training_length = 0;
  std::vector<int32_t> ids;               // 1 to kMostInspected
  std::optional<int64_t> document_start;  // as Network::evaluate's
  std::vector<int64_t> layers;            // to look into, ascending
};

/// Of the norms along the depth, by the number of the stream (LayerObserver): before each layer and
/// behind the last. Empty where they are not defined, with the reason.
struct Depth {
  std::vector<double> values;  // (L + 1)
  std::string missing;
};

/// A probe of a normalizer.
struct CollapseCurve {
  std::string normalizer;
  CollapsePrefix prefix = CollapsePrefix::constant;
  std::vector<CollapseGap> gaps;
};

struct Inspection {
  std::vector<LayerView> layers;  // those of the request
  std::vector<double> losses;     // (T): of the next token, NaN where none is known
  // The L2 norm of the gradient of the mean loss with respect to the stream, and by token.
  Depth gradient;
  std::vector<double> token_gradient;  // (L + 1, T)
  // The L1 distance between the last token's stream, and that of its repetition where the last
  // token is given once more; over the L1 norm of the first.
  Depth repeated;
  std::vector<CollapseCurve> collapse;
};

/// Error (ExitCode::config) for a model that is no decoder, or whose positions are drawn in
/// evaluation.
void check_inspectable(const ModelConfig& config);

/// Host memory that inspect() takes beside the master weights. Errors of mechanisms that know no
/// text of that length (ExitCode::config).
int64_t inspection_bytes(const InspectionRequest& request);

/// master_weights: ParameterLayout's, f32 in host memory.
Inspection inspect(const InspectionRequest& request, const Tensor& master_weights);

}  // namespace bamtrain
