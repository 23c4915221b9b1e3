#pragma once
// Learned priors, scales and normalizers of a model, prepared for charts.

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "report/downsample.h"
#include "report/run.h"

namespace bamtrain {

/// b(d) of each head in one layer, or in several that share the prior's parameters or have none.
/// With a mix of heads, b is the mix's input, not what is added to a logit.
struct PriorCurves {
  std::string prior;
  std::string mix;  // empty: no mix
  std::vector<int64_t> layers;
  std::vector<std::vector<Point>> heads;  // d from 1 to T - 1, log-spaced
};

/// Curves of the layers whose prior is a function of head and distance (family table), and of fire.
/// The bias of fire also depends on the query's position; its curves use the last one in training,
/// T - 1. Layers whose parameters are missing from `values` are skipped. Throws Error
/// (ExitCode::io) at `where` if parameters have another size than in `model`.
std::vector<PriorCurves> prior_curves(const ModelConfig& model, int64_t training_length,
                                      const MechanismValues& values, const std::string& where);

/// Upper bound on the total points of these curves.
int64_t most_curve_points(const ModelConfig& model);

/// A point of a layer's head: two parameters, or layer and parameter.
struct HeadPoint {
  int64_t layer = 0, head = 0;
  Point at;
};

/// (theta_beta, theta_alpha) of every head of the layers with bam. Errors as prior_curves.
std::vector<HeadPoint> bam_points(const ModelConfig& model, int64_t training_length,
                                  const MechanismValues& values, const std::string& where);

/// A parameter of the logit scale with one value per head: (layer, value).
struct ScaleParameter {
  std::string name;  // "s"
  std::vector<HeadPoint> points;
};

/// Errors as prior_curves.
std::vector<ScaleParameter> scale_parameters(const ModelConfig& model, int64_t training_length,
                                             const MechanismValues& values,
                                             const std::string& where);

}  // namespace bamtrain
