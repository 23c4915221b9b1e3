#include "inspect/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/checked.h"
#include "core/element.h"
#include "core/ignore_index.h"
#include "inspect/attention_copy.h"
#include "inspect/gates.h"
#include "model/model.h"
#include "model/sequence.h"
#include "normalizers/registry.h"
#include "ops/cpu/cpu.h"

namespace bamtrain {

namespace {

/// Sum of |x| over a token's channels.
double l1(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += std::abs(v);
  return sum;
}

/// One token of the stream (N, C).
std::vector<double> token_of(const Tensor& stream, int64_t i) {
  std::vector<double> out(static_cast<size_t>(stream.shape[1]));
  for (size_t c = 0; c < out.size(); ++c) {
    out[c] = get(stream, i * stream.stride[0] + static_cast<int64_t>(c) * stream.stride[1]);
  }
  return out;
}

/// Collects views of the requested layers, and the last token's stream at every layer.
class ForwardObserver final : public LayerObserver {
 public:
  /// `views`: null if attention is not inspected.
  ForwardObserver(const InspectionRequest& request, const Tensor& master_weights,
                  std::vector<LayerView>* views)
      : request_(request),
        master_weights_(master_weights),
        views_(views),
        paths_(std::ssize(request.ids)) {}

  void stream(int64_t, const Tensor& x) override { last_.push_back(token_of(x, x.shape[0] - 1)); }
  void attention(int64_t l, const Attention& a, const Tensor& gates, const Tensor& out) override {
    const std::vector<int64_t>& layers = request_.layers;
    if (!views_ || !std::binary_search(layers.begin(), layers.end(), l)) return;
    const AttentionCopy copy(a);
    // Paths through a layer that is not inspected are unknown.
    if (!views_->empty() && views_->back().layer != l - 1) paths_ = Paths(std::ssize(request_.ids));
    views_->push_back(view_of_layer(l, copy.attention(), out, paths_));
    views_->back().gates =
        gate_rows(request_.config, request_.training_length, l, a, gates, master_weights_);
    if (!a.alphas) return;
    for (int64_t h = 0; h < a.q.shape[2]; ++h) alphas_.push_back(get(a.alphas, h));
  }

  const std::vector<std::vector<double>>& last() const { return last_; }
  const std::vector<double>& alphas() const { return alphas_; }

 private:
  const InspectionRequest& request_;
  const Tensor& master_weights_;
  std::vector<LayerView>* views_;
  Paths paths_;
  std::vector<std::vector<double>> last_;  // (L + 1, C)
  std::vector<double> alphas_;             // learned, of heads of inspected layers
};

class GradientObserver final : public LayerObserver {
 public:
  GradientObserver(Inspection& to, int64_t layers, int64_t T) : to_(to), T_(T) {
    to.gradient.values.assign(static_cast<size_t>(layers + 1), 0);
    to.token_gradient.assign(static_cast<size_t>((layers + 1) * T), 0);
  }
  void stream_gradient(int64_t l, const Tensor& x) override {
    double sum = 0;
    for (int64_t i = 0; i < T_; ++i) {
      double of_token = 0;
      for (const double d : token_of(x, i)) of_token += d * d;
      sum += of_token;
      to_.token_gradient[static_cast<size_t>(l * T_ + i)] = std::sqrt(of_token);
    }
    to_.gradient.values[static_cast<size_t>(l)] = std::sqrt(sum);
  }

 private:
  Inspection& to_;
  int64_t T_;
};

/// The request's model, planned for a batch of one text of T tokens.
struct Planned {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Model model;
  Arena arena;
  Tensor gradients;  // (elements) f32, in training
  Tensor loss;       // (1) f64, in training

  Planned(const InspectionRequest& r, int64_t T, ModelUse use)
      : model(r.config, r.training_length, *backend, Dtype::f32) {
    model.check_length(T);
    if (use == ModelUse::training) {
      arena.add("gradients.flat", &gradients, Dtype::f32, {model.parameters().elements()});
      arena.add("gradients.loss", &loss, Dtype::f64, {1});
    }
    model.plan(arena, 1, T, use, Recompute::block);
  }
  void commit(const Tensor& master_weights) {
    arena.commit();
    model.set_master_weights(master_weights);
    model.refresh();
  }
};

/// The next token at each position; ignored at the last one and if the model's classes are not
/// tokens.
std::vector<int32_t> targets_of(const InspectionRequest& r) {
  std::vector<int32_t> targets(r.ids.size(), kIgnoreIndex);
  if (r.config.attention.causal && r.config.outputs() == r.config.vocab) {
    std::copy(r.ids.begin() + 1, r.ids.end(), targets.begin());
  }
  return targets;
}

/// Why there is no gradient; empty if there is one.
std::string gradient_missing(const InspectionRequest& r) {
  const ScaleChoice& scale = r.config.attention.scale;
  if (!r.config.attention.causal) return "the model sees the tokens that it would predict";
  if (r.config.outputs() != r.config.vocab) return "the model's classes are no tokens";
  if (scale && scale.info().evaluation_only) return "the scale has no backward pass";
  return r.ids.size() < 2 ? "one token has no next one" : "";
}

/// Why the last token cannot be repeated; empty if it can.
std::string repetition_missing(const InspectionRequest& r) {
  const auto T = std::ssize(r.ids);
  try {
    const std::unique_ptr<Backend> backend = make_cpu_backend();
    Model(r.config, r.training_length, *backend, Dtype::f32).check_length(T + 1);
  } catch (const Error&) {
    return "the model knows no text of one token more";
  }
  return "";
}

/// Regular positions, or distances, in place of those that training draws: (draws, T).
std::vector<int32_t> counted(const InspectionRequest& r, const Model& model) {
  const auto T = std::ssize(r.ids);
  std::vector<int32_t> one(r.ids.size()), first_key(r.ids.size()), out;
  if (model.draws() == 0) return out;
  const bool documents =
      r.config.attention.document_mask && model.randomization().what == Randomized::positions;
  lay_out_sequence(r.ids.data(), T, documents ? r.document_start : std::nullopt, 0,
                   first_key.data(), one.data());
  for (int64_t d = 0; d < model.draws(); ++d) out.insert(out.end(), one.begin(), one.end());
  return out;
}

void look_forward(const InspectionRequest& r, const Tensor& master_weights, Inspection& to,
                  std::vector<double>* alphas) {
  const auto T = std::ssize(r.ids);
  to.repeated.missing = repetition_missing(r);
  const bool repeats = to.repeated.missing.empty();
  Planned planned(r, repeats ? T + 1 : T, ModelUse::evaluation);
  planned.commit(master_weights);
  const auto pass = [&](const std::vector<int32_t>& ids, const std::vector<int32_t>& targets,
                        LayerObserver& observer) {
    std::vector<double> losses(ids.size());
    const auto length = static_cast<int32_t>(ids.size());
    planned.model.observe(&observer);
    planned.model.evaluate(ids.data(), targets.data(), 1, length, r.document_start, losses.data(),
                           nullptr, nullptr, nullptr, &length);
    return losses;
  };
  const std::vector<int32_t> targets = targets_of(r);
  ForwardObserver once(r, master_weights, &to.layers), again(r, master_weights, nullptr);
  to.losses = pass(r.ids, targets, once);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == kIgnoreIndex) to.losses[i] = std::numeric_limits<double>::quiet_NaN();
  }
  *alphas = once.alphas();
  if (!repeats) return;
  std::vector<int32_t> ids = r.ids;
  ids.push_back(ids.back());
  pass(ids, std::vector<int32_t>(ids.size(), kIgnoreIndex), again);
  for (size_t l = 0; l < once.last().size(); ++l) {
    std::vector<double> difference = once.last()[l];
    for (size_t c = 0; c < difference.size(); ++c) difference[c] -= again.last()[l][c];
    to.repeated.values.push_back(l1(difference) / l1(once.last()[l]));
  }
}

void look_back(const InspectionRequest& r, const Tensor& master_weights, Inspection& to) {
  to.gradient.missing = gradient_missing(r);
  if (!to.gradient.missing.empty()) return;
  const auto T = std::ssize(r.ids);
  Planned planned(r, T, ModelUse::training);
  planned.commit(master_weights);
  GradientObserver observer(to, r.config.layers, T);
  planned.model.observe(&observer);
  const std::vector<int32_t> targets = targets_of(r), positions = counted(r, planned.model);
  planned.model.load(r.ids.data(), targets.data(), T, r.document_start,
                     positions.empty() ? nullptr : positions.data());
  planned.model.forward_backward(1 / static_cast<double>(T - 1), planned.gradients, planned.loss);
}

std::vector<CollapseCurve> probe(const ModelConfig& config, const std::vector<double>& alphas) {
  const NormalizerChoice& chosen = config.attention.normalizer;
  NormalizerForm own;
  if (chosen) own = chosen.info().form_of(chosen.options);
  std::string name = chosen ? chosen.name() : "softmax";
  if (!alphas.empty()) {
    own.alpha = 0;
    for (const double alpha : alphas) own.alpha += alpha / static_cast<double>(alphas.size());
    name += " at its heads' mean alpha";
  }
  own.learned = false;
  std::vector<CollapseCurve> curves;
  const auto add = [&](const std::string& of, const NormalizerForm& form) {
    for (const CollapsePrefix prefix : {CollapsePrefix::constant, CollapsePrefix::random}) {
      curves.push_back({of, prefix, collapse_gaps(form, prefix)});
    }
  };
  add(name, own);
  // For comparison, the paper's normalizers, without the model's own.
  if (own.kind != NormalizerKind::softmax) add("softmax", {});
  for (const double alpha : {1.5, 1.75, 2.0}) {
    if (own.kind == NormalizerKind::entmax && own.alpha == alpha) continue;
    add(fmt::format("entmax {}", alpha), {.kind = NormalizerKind::entmax, .alpha = alpha});
  }
  return curves;
}

}  // namespace

void check_inspectable(const ModelConfig& config) {
  if (config.kind != ModelKind::decoder) {
    throw Error(ExitCode::config, "model.kind", "decoder", "max_retrieval",
                "use another checkpoint");
  }
  for (const PriorChoice& prior : config.attention.prior.pattern) {
    if (!prior.info().randomization(prior.options, 1).in_evaluation) continue;
    throw Error(ExitCode::config, "model.attention.prior.eval_positions",
                "\"counted\": a prompt has no random positions", "\"drawn\"",
                "--set model.attention.prior.eval_positions=counted");
  }
}

int64_t inspection_bytes(const InspectionRequest& r) {
  const auto T = std::ssize(r.ids);
  const ModelConfig& c = r.config;
  const bool repeats = repetition_missing(r).empty();
  const auto planned = [&](int64_t tokens, ModelUse use) {
    return Planned(r, tokens, use).arena.total_bytes();
  };
  // For one layer at a time: q, k, v, biases by distance, and each thread's sums for the maps'
  // current row of blocks.
  const int64_t copy =
      (c.heads + 2 * c.kv_heads) * c.head_dim() * T * static_cast<int64_t>(sizeof(double)) +
      8 * c.heads * T * (c.head_dim() + 2) * static_cast<int64_t>(sizeof(double));
  const int64_t views = std::ssize(r.layers) * LayerView::bytes(T, c.heads);
  const int64_t forward = planned(repeats ? T + 1 : T, ModelUse::evaluation) + copy;
  const int64_t backward = gradient_missing(r).empty() ? planned(T, ModelUse::training) : 0;
  return std::max(forward, backward) + views;
}

Inspection inspect(const InspectionRequest& request, const Tensor& master_weights) {
  require(
      !request.ids.empty() && std::ssize(request.ids) <= kMostInspected && !request.layers.empty(),
      "a prompt within the limit, and layers to look into");
  Inspection found;
  std::vector<double> alphas;
  look_forward(request, master_weights, found, &alphas);
  look_back(request, master_weights, found);
  found.collapse = probe(request.config, alphas);
  return found;
}

}  // namespace bamtrain
