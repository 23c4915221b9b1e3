#pragma once
// A model with random weights, as the evaluations take it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "eval/task_scores.h"
#include "model/model.h"
#include "model/parameters.h"
#include "ops/reference/reference.h"
#include "priors/registry.h"
#include "scales/registry.h"

namespace bamtrain::testing {

/// The id that begins a text.
constexpr int32_t kStart = 1;

struct SmallModel {
  static constexpr int64_t kTrained = 12;

  ModelConfig config;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ParameterLayout> layout;
  Arena arena;
  Tensor master_weights;

  explicit SmallModel(const std::string& prior, bool document_mask = false,
                      std::unique_ptr<Backend> of = make_reference_backend(),
                      Dtype dtype = Dtype::f64, int64_t vocab = 40)
      : backend(std::move(of)) {
    config.vocab = vocab;
    config.width = 16;
    config.layers = 2;
    config.heads = config.kv_heads = 2;
    config.mlp.hidden = 16;
    config.init = InitKind::torch;
    config.attention.prior = PriorChoice(*find_prior(prior));
    config.attention.scale = ScaleChoice(*find_scale("ssmax"));
    config.attention.document_mask = document_mask;
    layout = std::make_unique<ParameterLayout>(config, kTrained);
    arena.add("masters", &master_weights, dtype, {layout->elements()});
    arena.commit();
    for (const Parameter& p : layout->all()) {
      initialize(p, config, kTrained, 7, master_weights.slice(0, p.offset, p.size));
    }
  }

  /// The logits (T, vocab) after every token of a text, in `memory`.
  Tensor logits(const std::vector<int32_t>& ids, std::optional<int64_t> document_start,
                Arena& memory) const {
    const auto T = std::ssize(ids);
    Model network(config, kTrained, *backend, master_weights.dtype);
    Tensor logits;
    memory.add("logits", &logits, master_weights.dtype, {T, config.vocab});
    network.plan(memory, 1, T, ModelUse::evaluation);
    memory.commit();
    network.set_master_weights(master_weights);
    network.refresh();
    network.logits(ids.data(), 1, T, document_start, logits);
    return logits;
  }
  ScoredModel model() const {
    return {config, kTrained, *backend, master_weights.dtype, master_weights};
  }
};

}  // namespace bamtrain::testing
