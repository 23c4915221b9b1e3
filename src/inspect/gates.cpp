#include "inspect/gates.h"

#include <cmath>

#include "core/element.h"
#include "model/parameters.h"
#include "priors/softplus.h"
#include "scales/adaptive.h"

namespace bamtrain {

namespace {

/// Number of gate columns of a layer's prior; those of the scale follow.
int64_t prior_columns(const ModelConfig& config, int64_t layer, const ModelShape& shape) {
  int64_t columns = 0;
  for (const MechanismParameter& p : config.attention.prior.of(layer).parameters(shape)) {
    if (p.gate) columns += p.shape[0];
  }
  return columns;
}

}  // namespace

std::vector<GateRows> gate_rows(const ModelConfig& config, int64_t training_length, int64_t layer,
                                const Attention& a, const Tensor& gates,
                                const Tensor& master_weights) {
  const int64_t T = a.q.shape[1], H = a.q.shape[2];
  const ModelShape shape = config.shape(training_length);
  std::vector<GateRows> out;
  const auto add = [&](const char* name) -> std::vector<double>& {
    return out.emplace_back(GateRows{name, std::vector<double>(static_cast<size_t>(H * T))}).values;
  };
  if (const auto* const sums = std::get_if<TokenBias>(&a.bias)) {
    std::vector<double>& u = add("u");
    for (int64_t h = 0; h < H; ++h) {
      const int64_t row = h * sums->numbers.stride[1];
      for (int64_t i = 0; i < T; ++i) {
        const double before = i > 0 ? get(sums->numbers, row + i - 1) : 0;
        u[static_cast<size_t>(h * T + i)] = get(sums->numbers, row + i) - before;
      }
    }
  }
  const ScaleChoice& scale = config.attention.scale;
  if (!scale || !scale.info().is<AdaptiveKind>()) return out;
  const ParameterLayout layout(config, training_length);
  const Adaptive rule(scale.info().constants_of(scale.options, shape));
  const auto bias_of = [&](const char* name, int64_t h) {
    MechanismParameter parameter;
    parameter.name = name;
    const Tensor bias =
        layout.view(master_weights, mechanism_parameter_name(parameter, "scale", layer));
    return bias ? get(bias, h) : 0.0;
  };
  const int64_t first = prior_columns(config, layer, shape);
  // Gates of one kind are adjacent, one column per head.
  const auto gate = [&](int64_t i, int64_t kind, int64_t h) {
    return get(gates, i * gates.stride[1] + (first + kind * H + h) * gates.stride[2]);
  };
  std::vector<double> beta(static_cast<size_t>(H * T)), gamma(beta.size());
  for (int64_t h = 0; h < H; ++h) {
    const double beta_bias = bias_of("beta_bias", h), gamma_bias = bias_of("gamma_bias", h);
    for (int64_t i = 0; i < T; ++i) {
      const auto at = static_cast<size_t>(h * T + i);
      beta[at] = softplus(gate(i, 0, h) + beta_bias);
      gamma[at] = rule.g * std::tanh(gate(i, 1, h) + gamma_bias);
    }
  }
  out.push_back({"beta", std::move(beta)});
  out.push_back({"gamma", std::move(gamma)});
  return out;
}

}  // namespace bamtrain
