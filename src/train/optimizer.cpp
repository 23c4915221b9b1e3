#include "train/optimizer.h"

namespace bamtrain {

namespace {

std::string group_name(ParameterGroup g) {
  if (g == ParameterGroup::prior) return "prior";
  if (g == ParameterGroup::scale) return "scale";
  return "";
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterLayout& layout, Backend& backend)
    : config_(config), layout_(layout), backend_(backend) {
  for (const auto& [name, factor] : config_.lr_multipliers) {
    bool known = false;
    for (const Parameter& p : layout_.all()) {
      known |= name == group_name(p.group) || (!group_name(p.group).empty() && name == p.leaf());
    }
    if (!known) {
      throw Error(ExitCode::config, "optimizer.lr_multipliers." + name,
                  "prior, scale or a parameter name of the model's prior or scale",
                  "a name that none of its parameters has", "remove it or correct it");
    }
  }
  for (const Parameter& p : layout_.all()) multipliers_.push_back(multiplier(p));
}

void Optimizer::plan(Arena& arena) {
  const Dtype P = backend_.parameter_dtype();
  arena.add("optimizer.first_moments", &m_, P, {layout_.elements()});
  arena.add("optimizer.second_moments", &v_, P, {layout_.elements()});
}

double Optimizer::clip_factor(double norm) const {
  if (config_.clip <= 0 || norm <= config_.clip) return 1;
  return config_.clip / norm;
}

double Optimizer::multiplier(const Parameter& p) const {
  const std::string group = group_name(p.group);
  if (group.empty()) return 1;
  const auto by_name = config_.lr_multipliers.find(p.leaf());
  if (by_name != config_.lr_multipliers.end()) return by_name->second;
  const auto by_group = config_.lr_multipliers.find(group);
  return by_group == config_.lr_multipliers.end() ? 1 : by_group->second;
}

void Optimizer::step(int64_t step, double lr, double gradient_scale, Tensor masters,
                     Tensor gradients) {
  for (size_t i = 0; i < multipliers_.size(); ++i) {
    const Parameter& p = layout_.all()[i];
    if (!p.trained) continue;
    OptimizerStep s;
    s.kind = config_.name;
    s.step = step;
    s.lr = lr * multipliers_[i];
    s.beta1 = config_.beta1;
    s.beta2 = config_.beta2;
    s.eps = config_.eps;
    s.weight_decay = p.decays() ? config_.weight_decay : 0;
    s.gradient_scale = gradient_scale;
    const auto part = [&](const Tensor& flat) { return flat.slice(0, p.offset, p.size); };
    backend_.optimizer_step(part(masters), part(m_), part(v_), part(gradients), s);
  }
}

}  // namespace bamtrain
