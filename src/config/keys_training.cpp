// Keys of a run configuration: optimizer, schedule, train, checkpoint.

#include "config/key_table.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key betas() {
  const std::string path = "optimizer.betas";
  const ValueSchema schema = tuple_of(number_in_range(0, 1), 2);
  Key k{path, "decay rates of the first and second moments", schema};
  k.get = [](const RunConfig& c) {
    return ordered_json::array({c.optimizer.beta1, c.optimizer.beta2});
  };
  k.set = [path, schema](RunConfig& c, const json& v, const Origin& origin) {
    check_value(v, schema, origin.at(path));
    c.optimizer.beta1 = v[0].get<double>();
    c.optimizer.beta2 = v[1].get<double>();
  };
  return k;
}

bool counts_no_sequences(const json& document) {
  return find_value(document, "train.sequences_per_step") == nullptr;
}

}  // namespace

std::vector<Key> training_keys() {
  return {
      choice<OptimizerKind>("optimizer.name", "both with decoupled weight decay",
                            {{"radam", OptimizerKind::radam}, {"adamw", OptimizerKind::adamw}},
                            FIELD(optimizer.name)),
      key("optimizer.lr", "peak learning rate", number_above(0), FIELD(optimizer.lr)),
      betas(),
      key("optimizer.eps", "added to the root of the second moment, in fp32",
          number_within(kMinEps, kMaxEps), FIELD(optimizer.eps)),
      key("optimizer.weight_decay",
          "decoupled weight decay of matrices and embeddings, including a learned position table. "
          "Parameters of a prior, scale or normalizer decay where its option decay says so. Norms "
          "and biases of linear layers do not decay",
          number_from(0), FIELD(optimizer.weight_decay)),
      key("optimizer.clip", "maximum global gradient norm; 0: no clipping", number_from(0),
          FIELD(optimizer.clip)),
      key("optimizer.lr_multipliers",
          "learning rate factors by group or by trained parameter (theta_alpha). Groups: prior, "
          "scale, normalizer, mix (what mixes heads in prior, without its base). A parameter "
          "overrides its group, mix overrides prior",
          map_of(number_from(0)), FIELD(optimizer.lr_multipliers)),

      choice<ScheduleKind>("schedule.name",
                           "learning rate after the warmup; wsd: constant, then a decay",
                           {{"cosine", ScheduleKind::cosine},
                            {"linear", ScheduleKind::linear},
                            {"constant", ScheduleKind::constant},
                            {"wsd", ScheduleKind::wsd}},
                           FIELD(schedule.name)),
      key("schedule.warmup_steps", "steps of linear warmup", integer_value(0, kMaxSteps),
          FIELD(schedule.warmup_steps)),
      key("schedule.min_ratio",
          "final learning rate as a fraction of the peak, reached right after the last step; wsd: "
          "at the last step",
          number_within(0, 1), FIELD(schedule.min_ratio)),
      key("schedule.decay_steps", "steps of the final decay; wsd only", integer_value(0, kMaxSteps),
          FIELD(schedule.decay_steps)),
      choice<DecayShape>("schedule.decay_shape", "shape of the final decay; wsd only",
                         {{"linear", DecayShape::linear}, {"cosine", DecayShape::cosine}},
                         FIELD(schedule.decay_shape)),

      required(key("train.steps", "optimizer steps of the whole schedule",
                   integer_value(1, kMaxSteps), FIELD(train.steps))),
      resumable(key("train.stop_at",
                    "stop with a checkpoint after this step; the schedule still spans train.steps; "
                    "0: train.steps",
                    integer_value(0, kMaxSteps), FIELD(train.stop_at))),
      needed(counts_no_sequences,
             key("train.tokens_per_step",
                 "tokens per optimizer step, a multiple of train.micro_batch * "
                 "data.sequence_length; required without train.sequences_per_step",
                 integer_value(0, kMaxTokens), FIELD(train.tokens_per_step))),
      key("train.sequences_per_step",
          "sequences per optimizer step, instead of train.tokens_per_step; a multiple of "
          "train.micro_batch",
          integer_value(0, kMaxTokens), FIELD(train.sequences_per_step)),
      required(key("train.micro_batch", "sequences in one forward and backward pass",
                   integer_value(1, 1 << 20), FIELD(train.micro_batch))),
      key("train.lanes",
          "gradient accumulation groups, a divisor of the micro-batches of a step. "
          "Every number of processes up to it gives bitwise identical results; 0: the largest "
          "power of two up to 8",
          integer_value(0, kMaxGroups), FIELD(train.lanes)),
      choice<Reduction>(
          "train.reduction",
          "gradient all-reduce; tree: bitwise identical on any number of processes; library: MPI's "
          "or NCCL's own sum, faster, but results depend on the number of processes",
          {{"tree", Reduction::tree}, {"library", Reduction::library}}, FIELD(train.reduction)),
      resumable(key("train.peer_timeout",
                    "seconds that a process waits for the others in a step, and that one may be "
                    "silent; then all end with exit code 8. Ten times as long while connecting, in "
                    "the first step and while saving. 0: for ever",
                    number_within(0, kMaxPeerTimeout), FIELD(train.peer_timeout))),
      resumable(key("train.overlap",
                    "exchange gradients and weights of some blocks with the other processes while "
                    "others are computed, with bitwise identical results; reduction tree only",
                    boolean_value(), FIELD(train.overlap))),
      resumable(key("train.shard_optimizer",
                    "divide the optimizer's state and master weights among the processes (ZeRO-1), "
                    "with bitwise identical results; null: where there are several",
                    or_null(boolean_value()), FIELD(train.shard_optimizer))),
      choice<Precision>("train.precision",
                        "precision of activations and matrix products. Master weights and sums "
                        "stay fp32; tf32: fp32 with TF32 products, on GPUs",
                        kPrecisionNames, FIELD(train.precision)),
      resumable(choice<Recompute>(
          "train.recompute",
          "activation checkpointing, with bitwise identical results. The backward pass recomputes "
          "the MLPs' hidden layers (mlp), or everything but the residual stream between blocks "
          "(block)",
          {{"none", Recompute::none}, {"mlp", Recompute::mlp}, {"block", Recompute::block}},
          FIELD(train.recompute))),

      resumable(key("checkpoint.every",
                    "steps between checkpoints; 0: only at the end and on signals",
                    integer_value(0, kMaxSteps), FIELD(checkpoint.every))),
      resumable(key("checkpoint.keep",
                    "number of newest checkpoints kept. One more is kept until a loss has been "
                    "computed with the newest",
                    integer_value(1, kMaxInt32), FIELD(checkpoint.keep))),
      resumable(key("checkpoint.keep_every",
                    "checkpoints at multiples of this step are never deleted; a multiple of "
                    "checkpoint.every; 0: none",
                    integer_value(0, kMaxSteps), FIELD(checkpoint.keep_every))),
      resumable(key("checkpoint.resume",
                    "auto: the newest valid checkpoint in out_dir, if any; never: an error unless "
                    "out_dir is empty; otherwise the folder of a checkpoint, or of a run: its best "
                    "checkpoint with "
                    "checkpoint.best, else its newest",
                    nonempty_text(), FIELD(checkpoint.resume))),
      resumable(key("checkpoint.allow_change",
                    "keys, or groups of keys, that may differ from the resumed run",
                    set_of(nonempty_text()), FIELD(checkpoint.allow_change))),
      resumable(key("checkpoint.best.metric",
                    "metric whose best checkpoint is kept; the results at the end come from it. It "
                    "is one of validation (validation/loss), or of a task in eval.tasks with every "
                    "(copy@128/exact_match). Empty: results come from the last checkpoint",
                    any_text(), FIELD(checkpoint.best_metric))),
      resumable(choice<bool>("checkpoint.best.mode",
                             "whether the lowest or the highest value is best",
                             {{"min", false}, {"max", true}}, FIELD(checkpoint.best_is_highest))),
  };
}

}  // namespace bamtrain
