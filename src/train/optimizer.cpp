#include "train/optimizer.h"

#include <algorithm>

#include "ops/optimizer_math.h"

namespace bamtrain {

std::string group_name(ParameterGroup g) {
  if (g == ParameterGroup::prior) return "prior";
  if (g == ParameterGroup::scale) return "scale";
  if (g == ParameterGroup::normalizer) return "normalizer";
  return "";
}

namespace {

/// The names of `p` in optimizer.lr_multipliers; the first one with a factor counts.
std::vector<std::string> names_of(const Parameter& p) {
  const std::string group = group_name(p.group);
  if (group.empty()) return {};
  if (p.of_mix) return {p.leaf(), "mix", group};
  return {p.leaf(), group};
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterLayout& layout, Backend& backend)
    : config_(config), layout_(layout), backend_(backend) {
  for (const auto& [name, factor] : config_.lr_multipliers) {
    bool known = false;
    for (const Parameter& p : layout_.all()) {
      const std::vector<std::string> names = names_of(p);
      known |= p.trained && std::find(names.begin(), names.end(), name) != names.end();
    }
    if (!known) {
      throw Error(ExitCode::config, "optimizer.lr_multipliers." + name,
                  "prior, mix, scale, normalizer or a trained parameter of the model",
                  "another name", "remove it or correct it");
    }
  }
  std::vector<const Parameter*> trained;
  for (const Parameter& p : layout_.all()) {
    if (p.trained) trained.push_back(&p);
  }
  std::sort(trained.begin(), trained.end(),
            [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
  for (const Parameter* p : trained) {
    const double decay = p->decays() ? config_.weight_decay : 0;
    const ParameterRange next = {p->offset, p->size, multiplier(*p), decay, p->minimum, p->maximum};
    ParameterRange* const last = ranges_.empty() ? nullptr : &ranges_.back();
    if (last && last->offset + last->size == next.offset && last->multiplier == next.multiplier &&
        last->weight_decay == next.weight_decay && last->minimum == next.minimum &&
        last->maximum == next.maximum) {
      last->size += next.size;
    } else {
      ranges_.push_back(next);
    }
  }
}

void Optimizer::plan(Arena& arena, const std::vector<OwnedRange>& owned, int64_t moments) {
  for (size_t range = 0; range < ranges_.size(); ++range) {
    const FlatRange all = {ranges_[range].offset, ranges_[range].offset + ranges_[range].size};
    for (const OwnedRange& own : owned) {
      const FlatRange part = {std::max(all.begin, own.elements.begin),
                              std::min(all.end, own.elements.end)};
      if (part.size() <= 0) continue;
      const int64_t skipped = part.begin - own.elements.begin;
      updates_.push_back({range, {part, own.master_weights + skipped, own.moments + skipped}});
    }
  }
  const Dtype P = backend_.parameter_dtype();
  arena.add("optimizer.first_moments", &m_, P, {moments});
  arena.add("optimizer.second_moments", &v_, P, {moments});
  arena.add("optimizer.clip_factor", &clip_factor_, Dtype::f64, {1});
  const int64_t factors = 1 + std::ssize(ranges_) * kOptimizerFactors;
  arena.add("optimizer.factors", &factors_, Dtype::f64, {factors});
  host_factors_.resize(static_cast<size_t>(factors));
}

double Optimizer::multiplier(const Parameter& p) const {
  for (const std::string& name : names_of(p)) {
    const auto it = config_.lr_multipliers.find(name);
    if (it != config_.lr_multipliers.end()) return it->second;
  }
  return 1;
}

void Optimizer::prepare(int64_t step, double lr, double scale) {
  host_factors_[0] = scale;
  double* next = host_factors_.data() + 1;
  for (const ParameterRange& run : ranges_) {
    OptimizerStep s;
    s.kind = config_.name;
    s.step = step;
    s.lr = lr * run.multiplier;
    s.weight_decay = run.weight_decay;
    s.rule = rule(run);
    write_factors(optimizer_factors(s), next);
    next += kOptimizerFactors;
  }
  backend_.upload(factors_, host_factors_.data());
}

void Optimizer::clip(Tensor squared_norm) {
  backend_.clip_factor(clip_factor_, squared_norm, config_.clip, factors_.slice(0, 0, 1));
}

void Optimizer::update(std::span<const FlatRange> ranges, Tensor master_weights, Tensor rounded,
                       Tensor gradients) {
  for (const auto& [range, own] : updates_) {
    const auto has = [&](const FlatRange& r) {
      return r.begin <= own.elements.begin && own.elements.end <= r.end;
    };
    if (std::none_of(ranges.begin(), ranges.end(), has)) continue;
    const int64_t n = own.elements.size(),
                  factors = 1 + static_cast<int64_t>(range) * kOptimizerFactors;
    backend_.optimizer_step(master_weights.slice(0, own.master_weights, n),
                            m_.slice(0, own.moments, n), v_.slice(0, own.moments, n),
                            rounded ? own.elements.of(rounded) : rounded,
                            own.elements.of(gradients), clip_factor_,
                            factors_.slice(0, factors, kOptimizerFactors), rule(ranges_[range]));
  }
}

OptimizerHyperparameters Optimizer::rule(const ParameterRange& run) const {
  return {config_.beta1, config_.beta2, config_.eps, run.minimum, run.maximum};
}

}  // namespace bamtrain
