#pragma once

#include "priors/registry.h"
#include "scales/registry.h"
#include "train/support.h"
#include "train/trainer.h"

namespace bamtrain::testing {

/// The run of small_run, with four lanes in this process.
inline RunConfig small_train_run(const Workplace& w) {
  small_run(w);  // writes the shards
  RunConfig c;
  c.data.train = w.path("train");
  c.data.sequence_length = 64;
  c.data.document_start = 1;
  c.data.shuffle = true;
  c.model.vocab = 211;
  c.model.width = 64;
  c.model.layers = 2;
  c.model.heads = c.model.kv_heads = 4;
  c.model.mlp.hidden = 96;
  c.model.attention.prior = PriorChoice(*find_prior("bam"));
  c.model.attention.scale = ScaleChoice(*find_scale("ssmax"));
  c.model.attention.document_mask = true;
  c.optimizer.lr_multipliers = {{"prior", 2}, {"theta_beta", 3}};
  c.train.steps = 100;
  c.train.tokens_per_step = 1024;
  c.train.micro_batch = 2;
  c.train.lanes = 4;
  return c;
}

}  // namespace bamtrain::testing
