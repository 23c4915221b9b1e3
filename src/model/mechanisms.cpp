#include "model/mechanisms.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace bamtrain {

int64_t layer_window(const ModelConfig& config, int64_t layer, int64_t training_length) {
  const PriorChoice& prior = config.attention.prior.of(layer);
  return prior.info().window_of(prior.options, training_length, config.attention.window);
}

bool scale_bias(const ModelConfig& config, int64_t layer) {
  const Options& options = config.attention.scale.options;
  if (options.has("scale_bias") && options.text("scale_bias") != "auto") {
    return options.text("scale_bias") == "true";
  }
  const ScaleInfo& scale = config.attention.scale.info();
  return scale.default_scale_bias &&
         scale.default_scale_bias(config.attention.prior.of(layer).name());
}

namespace {

/// Calls add(part) for every family of priors.
template <class Add, size_t... kIndex>
void for_families(const PartSource& from, Add&& add, std::index_sequence<kIndex...>) {
  (add(make_prior_part<std::variant_alternative_t<kIndex, Family>>(from)), ...);
}

}  // namespace

Mechanisms::Mechanisms(const ModelConfig& config, int64_t training_length,
                       const ParameterLayout& layout, Backend& backend)
    : config_(config) {
  const PartSource from = {config_, layout, backend, training_length};
  const auto add = [this](std::unique_ptr<MechanismPart> part) {
    if (part) parts_.push_back(std::move(part));
  };
  for_families(from, add, std::make_index_sequence<std::variant_size_v<Family>>());
  add(make_mix_part(from));
  add(make_normalizer_part(from));
  add(make_scale_part(from));
  for (int64_t l = 0; l < config.layers && !randomization_; ++l) {
    randomization_ = from.randomization(l);
  }
  for (int64_t l = 0; l < config.layers; ++l) {
    const int64_t window = layer_window(config, l, training_length);
    const auto at = std::find(windows_.begin(), windows_.end(), window);
    window_.push_back(at - windows_.begin());
    if (at == windows_.end()) windows_.push_back(window);
    AttentionForm& form = forms_.emplace_back();
    for_parts(l, [&](const MechanismPart& part) { part.form(l, form); });
  }
}

int64_t Mechanisms::largest_parameter() const {
  int64_t most = 0;
  for (const auto& part : parts_) most = std::max(most, part->largest_parameter());
  return most;
}

int64_t Mechanisms::gates(int64_t layer) const {
  int64_t columns = 0;
  for_parts(layer, [&](const MechanismPart& part) { columns += part.gates(layer); });
  return columns;
}

void Mechanisms::plan(Arena& arena, int64_t B, int64_t T, ModelUse use) {
  check_random_length(T);
  for (const auto& part : parts_) part->plan(arena, B, T, use);
}

void Mechanisms::check_length(int64_t T) const {
  for (const auto& part : parts_) part->check_length(T);
  check_random_length(T);
}

void Mechanisms::check_random_length(int64_t T) const {
  const Randomization& r = randomization_;
  const bool limited = r && (r.what == Randomized::positions || r.in_evaluation);
  if (!limited || T <= r.range) return;
  const bool positions = r.what == Randomized::positions;
  throw Error(ExitCode::config, "model.attention.prior.randomized_length",
              "at most " + std::to_string(r.range) + (positions ? " positions" : " distances") +
                  ", as in training",
              std::to_string(T),
              std::string("evaluate at shorter lengths, or train with more ") +
                  (positions ? "positions" : "distances"));
}

int64_t Mechanisms::draws() const {
  if (!randomization_) return 0;
  return randomization_.of_step && !has<EmbeddingFamily>() ? config_.layers : 1;
}

void Mechanisms::draw(const int32_t* distances, int64_t B, int64_t T) {
  for (const auto& part : parts_) part->draw(distances, B, T);
}

void Mechanisms::refresh(const Tensor& master_weights) {
  for (const auto& part : parts_) {
    if (!constants_ready_) part->upload_constants();
    part->refresh(master_weights);
  }
  constants_ready_ = true;
}

void Mechanisms::attach(int64_t layer, Attention& a, const Tensor& gates, const Tensor& positions) {
  a.form = forms_[static_cast<size_t>(layer)];
  with_gates(layer, gates, [&](MechanismPart& part, const Tensor& own) {
    part.attach(layer, a, {own, positions});
  });
}

void Mechanisms::attach(int64_t layer, AttentionGradients& g, int64_t B, int64_t T) const {
  for_parts(layer, [&](const MechanismPart& part) { part.attach_gradients(layer, g, B, T); });
}

void Mechanisms::backward(int64_t layer, const AttentionGradients& g, const Attention& a,
                          const Tensor& gates, const Tensor& positions, const Tensor& dgates,
                          const Tensor& gradients) {
  int64_t column = 0;
  with_gates(layer, gates, [&](MechanismPart& part, const Tensor& own) {
    const int64_t columns = part.gates(layer);
    part.backward(layer, g, a, {own, positions},
                  columns > 0 ? dgates.slice(2, column, columns) : Tensor(), gradients);
    column += columns;
  });
}

void Mechanisms::shift_cache(int64_t layer, int64_t from, int64_t count) {
  for_parts(layer, [&](MechanismPart& part) { part.shift_cache(layer, from, count); });
}

Rotation Mechanisms::rotation(int64_t layer) const {
  Rotation found;  // a layer has one prior
  for_parts(layer, [&](const MechanismPart& part) {
    if (const Rotation own = part.rotation(layer); own.cosine) found = own;
  });
  return found;
}

Tensor Mechanisms::position_table() const {
  for (const auto& part : parts_) {
    if (const Tensor table = part->position_table()) return table;
  }
  return {};
}

}  // namespace bamtrain
