#pragma once
// A model's attention over one prompt, and norms along its depth: on the CPU, in fp32.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "inspect/collapse.h"
#include "inspect/layer_view.h"
#include "model/model_config.h"

namespace bamtrain {

/// Limit on tokens. Rows are computed one logit at a time, so time is quadratic in the tokens.
inline constexpr int64_t kMostInspected = 4096;

struct InspectionRequest {
  ModelConfig config;
  int64_t training_length = 0;
  std::vector<int32_t> ids;               // 1 to kMostInspected
  std::optional<int64_t> document_start;  // as Network::evaluate's
  std::vector<int64_t> layers;            // layers to inspect, ascending
};

/// Norms along the depth, by index of the residual stream (LayerObserver): before each layer and
/// after the last. Empty if undefined; then `missing` is the reason.
struct Depth {
  std::vector<double> values;  // (L + 1)
  std::string missing;
};

/// Result of a normalizer's collapse probe.
struct CollapseCurve {
  std::string normalizer;
  CollapsePrefix prefix = CollapsePrefix::constant;
  std::vector<CollapseGap> gaps;
};

struct Inspection {
  std::vector<LayerView> layers;  // the requested layers
  std::vector<double> losses;     // (T): loss of the next token, NaN if unknown
  // L2 norm of the gradient of the mean loss with respect to the residual stream; in total and by
  // token.
  Depth gradient;
  std::vector<double> token_gradient;  // (L + 1, T)
  // Relative L1 change of the last token's stream if that token is repeated: the distance between
  // its stream and that of its repetition, over the L1 norm of the first.
  Depth repeated;
  std::vector<CollapseCurve> collapse;
};

/// Throws Error (ExitCode::config) for a model that is not a decoder, or draws positions in
/// evaluation.
void check_inspectable(const ModelConfig& config);

/// Host memory of inspect() in addition to the master weights. Throws errors of mechanisms that do
/// not support the length (ExitCode::config).
int64_t inspection_bytes(const InspectionRequest& request);

/// master_weights: ParameterLayout's, f32 in host memory.
Inspection inspect(const InspectionRequest& request, const Tensor& master_weights);

}  // namespace bamtrain
