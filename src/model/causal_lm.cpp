#include "model/causal_lm.h"

#include "core/error.h"

namespace bamtrain {

void check_causal_lm(const ModelConfig& config) {
  if (config.kind != ModelKind::decoder) {
    throw Error(ExitCode::config, "model.kind", "decoder, to evaluate text", "max_retrieval",
                "use bamtrain eval --task, or another checkpoint");
  }
  if (!config.attention.causal) {
    throw Error(ExitCode::config, "model.attention.causal", "true, to evaluate text",
                "false: a position would see the token it has to predict",
                "use bamtrain eval --task, or another checkpoint");
  }
  for (const PriorChoice& prior : config.attention.prior.pattern) {
    if (!prior.info().randomization(prior.options, 1).in_evaluation) continue;
    throw Error(ExitCode::config, "model.attention.prior.eval_positions",
                "\"counted\": a text has no random positions", "\"drawn\"",
                "--set model.attention.prior.eval_positions=counted");
  }
  if (config.outputs() == config.vocab) return;
  throw Error(ExitCode::config, "model.classes",
              "0, to evaluate text: a model that predicts token ids",
              std::to_string(config.classes) + " classes of the answers of a task",
              "use bamtrain eval --task, or another checkpoint");
}

}  // namespace bamtrain
