#pragma once
// What the priors, scales and normalizers of a model have learned, in the form that pictures show.

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "report/downsample.h"
#include "report/run.h"

namespace bamtrain {

/// b(d) of each head in one layer, or in several that share the prior's parameters or have none.
/// Beside a mix of heads it is what that reads, and not what is added to a logit.
struct PriorCurves {
  std::string prior;
  std::string mix;  // empty: none
  std::vector<int64_t> layers;
  std::vector<std::vector<Point>> heads;  // d = 1 up to T - 1, evenly on a logarithmic axis
};

/// Of the layers whose prior is a function of head and distance (family table), and of fire, whose
/// bias also depends on the query's position: that of the last one in a sequence of training, T
/// - 1. Layers whose parameters `values` has not are left out. Error (ExitCode::io) at `where` for
/// parameters of another size than `model` has.
std::vector<PriorCurves> prior_curves(const ModelConfig& model, int64_t training_length,
                                      const MechanismValues& values, const std::string& where);

/// The points of all these curves together, at most.
int64_t most_curve_points(const ModelConfig& model);

/// A head of a layer with two of its parameters, or a parameter in its layer.
struct HeadPoint {
  int64_t layer = 0, head = 0;
  Point at;
};

/// (theta_beta, theta_alpha) of every head of the layers with bam. Errors as prior_curves.
std::vector<HeadPoint> bam_points(const ModelConfig& model, int64_t training_length,
                                  const MechanismValues& values, const std::string& where);

/// A parameter of the logit scale that has one value per head: (layer, value).
struct ScaleParameter {
  std::string name;  // "s"
  std::vector<HeadPoint> points;
};

/// Errors as prior_curves.
std::vector<ScaleParameter> scale_parameters(const ModelConfig& model, int64_t training_length,
                                             const MechanismValues& values,
                                             const std::string& where);

}  // namespace bamtrain
