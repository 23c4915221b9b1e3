#include "report/mechanism_curves.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/checked.h"
#include "core/error.h"
#include "model/parameters.h"
#include "priors/fire.h"

namespace bamtrain {

namespace {

constexpr int kDistances = 120;  // most points of a curve

using Theta = std::vector<const double*>;

/// A run's model and trained values.
struct Trained {
  const ModelConfig& model;
  ModelShape shape;
  const MechanismValues& values;
  const std::string& where;

  /// The parameter's values in a layer; null if not written yet.
  const double* find(const MechanismParameter& p, const char* kind, int64_t layer) const {
    const std::string name = mechanism_parameter_name(p, kind, layer);
    const auto it = values.find(name);
    if (it == values.end()) return nullptr;
    int64_t size = 1;
    for (const int64_t n : p.shape) size *= n;
    if (static_cast<int64_t>(it->second.size()) != size) {
      throw Error(ExitCode::io, where + ": parameters: " + name,
                  std::to_string(size) + " values, by the config of the run's checkpoint",
                  std::to_string(it->second.size()), "restore the file from a copy");
    }
    return it->second.data();
  }

  /// All parameters of a layer's prior except gates; nullopt if one is missing.
  std::optional<Theta> theta(const MechanismParameters& parameters, int64_t layer) const {
    Theta out;
    for (const MechanismParameter& p : parameters) {
      if (p.gate) continue;
      out.push_back(find(p, "prior", layer));
      if (out.back() == nullptr) return std::nullopt;
    }
    return out;
  }
};

/// Distinct distances from 1 to `last`, log-spaced.
std::vector<int64_t> distances(int64_t last) {
  std::vector<int64_t> out;
  for (int k = 0; k < kDistances && last >= 1; ++k) {
    const double share = static_cast<double>(k) / (kDistances - 1);
    const auto d = static_cast<int64_t>(std::llround(std::pow(static_cast<double>(last), share)));
    if (out.empty() || d > out.back()) out.push_back(d);
  }
  return out;
}

std::vector<std::vector<Point>> table_curves(const PriorChoice& prior, const Theta& theta,
                                             const ModelShape& shape) {
  const int64_t H = shape.heads, T = shape.sequence_length;
  const TableFamily& family = *prior.info().as<TableFamily>();
  const TableShape table = table_shape(prior.info(), prior.options, shape, T);
  std::vector<std::vector<Point>> heads(static_cast<size_t>(H));
  for (int64_t h = 0; h < H; ++h) {
    for (const int64_t d : distances(T - 1)) {
      heads[static_cast<size_t>(h)].push_back(
          {static_cast<double>(d), family.bias(theta.data(), table, h, d)});
    }
  }
  return heads;
}

std::vector<std::vector<Point>> fire_curves(const PriorChoice& prior, const Theta& theta,
                                            const ModelShape& shape) {
  const int64_t H = shape.heads, T = shape.sequence_length;
  const double L0 = prior.info().as<FireFamily>()->threshold_length(prior.options, T);
  // theta is in the order of the parameters: c, m, w1, b1, w2, b2.
  const FireParameters p = {
      theta[2], theta[3],  theta[4],
      theta[5], *theta[0], *theta[1],
      H,        L0,        prior.info().as<FireFamily>()->negative_slope(prior.options)};
  const FireSegments segments(p);
  const double N = FireNormalizer(p, T - 1).N;
  std::vector<std::vector<Point>> heads(static_cast<size_t>(H));
  for (int64_t h = 0; h < H; ++h) {
    for (const int64_t d : distances(T - 1)) {
      const double u = fire_psi(p.c, static_cast<double>(d)) / N;
      const FireLine line = segments.line(p, h, segments.segment_of(u));
      heads[static_cast<size_t>(h)].push_back(
          {static_cast<double>(d), line.slope * u + line.offset});
    }
  }
  return heads;
}

}  // namespace

int64_t most_curve_points(const ModelConfig& model) {
  return checked_mul(checked_mul(model.layers, model.heads, "model.heads"), kDistances,
                     "model.heads");
}

std::vector<PriorCurves> prior_curves(const ModelConfig& model, int64_t training_length,
                                      const MechanismValues& values, const std::string& where) {
  const Trained trained = {model, model.shape(training_length), values, where};
  std::vector<PriorCurves> out;
  // For each prior without per-layer parameters, the curves of its first layer.
  std::vector<std::pair<const PriorChoice*, size_t>> shared;
  for (int64_t l = 0; l < model.layers; ++l) {
    const PriorChoice& prior = model.attention.prior.of(l);
    const bool table = prior.info().is<TableFamily>();
    if (!table && !prior.info().is<FireFamily>()) continue;
    const MixChoice& of_layer = model.attention.prior.mix_of(l);
    const std::string mix = of_layer ? of_layer.name() : "";
    const auto first = std::find_if(shared.begin(), shared.end(), [&](const auto& s) {
      return *s.first == prior && out[s.second].mix == mix;
    });
    if (first != shared.end()) {
      out[first->second].layers.push_back(l);
      continue;
    }
    const MechanismParameters parameters = prior.parameters(trained.shape);
    const std::optional<Theta> theta = trained.theta(parameters, l);
    if (!theta) continue;
    const auto curves = table ? table_curves : fire_curves;
    out.push_back({prior.name(), mix, {l}, curves(prior, *theta, trained.shape)});
    if (std::all_of(parameters.begin(), parameters.end(),
                    [](const MechanismParameter& p) { return p.shared; })) {
      shared.emplace_back(&prior, out.size() - 1);
    }
  }
  return out;
}

std::vector<HeadPoint> bam_points(const ModelConfig& model, int64_t training_length,
                                  const MechanismValues& values, const std::string& where) {
  const Trained trained = {model, model.shape(training_length), values, where};
  std::vector<HeadPoint> out;
  bool shared = false;
  for (int64_t l = 0; l < model.layers && !shared; ++l) {
    const PriorChoice& prior = model.attention.prior.of(l);
    if (prior.name() != "bam") continue;
    const MechanismParameters parameters = prior.parameters(trained.shape);
    const std::optional<Theta> theta = trained.theta(parameters, l);
    if (!theta) continue;
    for (int64_t h = 0; h < model.heads; ++h) {
      out.push_back({l, h, {(*theta)[1][h], (*theta)[0][h]}});  // theta_beta, theta_alpha
    }
    shared = parameters[0].shared;
  }
  return out;
}

std::vector<ScaleParameter> scale_parameters(const ModelConfig& model, int64_t training_length,
                                             const MechanismValues& values,
                                             const std::string& where) {
  const Trained trained = {model, model.shape(training_length), values, where};
  std::vector<ScaleParameter> out;
  for (const MechanismParameter& p : model.attention.scale.parameters(trained.shape)) {
    if (p.gate || p.shape != std::vector<int64_t>{model.heads}) continue;
    ScaleParameter of = {p.name, {}};
    for (int64_t l = 0; l < model.layers; ++l) {
      const double* const value = trained.find(p, "scale", l);
      for (int64_t h = 0; value != nullptr && h < model.heads; ++h) {
        of.points.push_back({l, h, {static_cast<double>(l), value[h]}});
      }
    }
    if (!of.points.empty()) out.push_back(std::move(of));
  }
  return out;
}

}  // namespace bamtrain
