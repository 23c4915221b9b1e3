// Keys of a run configuration: optimizer, schedule, train, checkpoint.

#include "config/key_table.h"

namespace bamtrain {

using namespace key_table;

namespace {

Key betas() {
  const std::string path = "optimizer.betas";
  const ValueSchema schema = tuple_of(number_in_range(0, 1), 2);
  Key k{path, "decay rates of the first and second moment", schema};
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
          "decoupled decay of matrices and of embeddings, a learned position table among them, and "
          "of the parameters that decay of a prior, a scale or a normalizer names, where that is "
          "true; not of norms, nor of the biases of linear layers",
          number_from(0), FIELD(optimizer.weight_decay)),
      key("optimizer.clip", "largest global gradient norm; 0: no clipping", number_from(0),
          FIELD(optimizer.clip)),
      key("optimizer.lr_multipliers",
          "factors on the learning rate by group (prior; mix: of prior, what mixes heads beside "
          "its base; scale; normalizer) or by trained parameter of those chosen (theta_alpha); the "
          "parameter wins over the group, mix over prior",
          map_of(number_from(0)), FIELD(optimizer.lr_multipliers)),

      choice<ScheduleKind>("schedule.name",
                           "learning rate after the warm-up; wsd: constant, then a decay",
                           {{"cosine", ScheduleKind::cosine},
                            {"linear", ScheduleKind::linear},
                            {"constant", ScheduleKind::constant},
                            {"wsd", ScheduleKind::wsd}},
                           FIELD(schedule.name)),
      key("schedule.warmup_steps", "steps of linear warm-up", integer_value(0, kMaxSteps),
          FIELD(schedule.warmup_steps)),
      key("schedule.min_ratio",
          "learning rate after the last step, as a fraction of the peak; wsd: at the last step",
          number_within(0, 1), FIELD(schedule.min_ratio)),
      key("schedule.decay_steps", "length of the final decay; for wsd only",
          integer_value(0, kMaxSteps), FIELD(schedule.decay_steps)),
      choice<DecayShape>("schedule.decay_shape", "of the final decay; for wsd only",
                         {{"linear", DecayShape::linear}, {"cosine", DecayShape::cosine}},
                         FIELD(schedule.decay_shape)),

      required(key("train.steps", "optimizer steps of the whole schedule",
                   integer_value(1, kMaxSteps), FIELD(train.steps))),
      resumable(key("train.stop_at",
                    "end with a checkpoint after this step, the schedule still running to "
                    "train.steps; 0: at train.steps",
                    integer_value(0, kMaxSteps), FIELD(train.stop_at))),
      needed(counts_no_sequences,
             key("train.tokens_per_step",
                 "tokens per optimizer step, a multiple of train.micro_batch * "
                 "data.sequence_length; needed without train.sequences_per_step",
                 integer_value(0, kMaxTokens), FIELD(train.tokens_per_step))),
      key("train.sequences_per_step",
          "sequences per optimizer step, in place of train.tokens_per_step: a multiple of "
          "train.micro_batch",
          integer_value(0, kMaxTokens), FIELD(train.sequences_per_step)),
      required(key("train.micro_batch", "sequences in one forward and backward pass",
                   integer_value(1, 1 << 20), FIELD(train.micro_batch))),
      key("train.lanes",
          "partial gradient sums, a power of two that divides the micro-batches of a step; every "
          "number of processes that divides it gives the same bits; 0: the largest up to 8",
          integer_value(0, 1 << 16), FIELD(train.lanes)),
      choice<Reduction>("train.reduction",
                        "how processes add their gradients; tree: the same bits on any number of "
                        "processes; library: MPI's or NCCL's own sum, faster, other bits on other "
                        "numbers of processes",
                        {{"tree", Reduction::tree}, {"library", Reduction::library}},
                        FIELD(train.reduction)),
      choice<Precision>("train.precision",
                        "activations and products; masters and sums stay fp32; tf32: fp32 whose "
                        "products are in TF32, on GPUs",
                        kPrecisionNames, FIELD(train.precision)),
      resumable(choice<Recompute>(
          "train.recompute",
          "what the backward pass computes again to save memory, to the same bits; mlp: the mlps' "
          "hidden layers; block: all but the stream between the blocks",
          {{"none", Recompute::none}, {"mlp", Recompute::mlp}, {"block", Recompute::block}},
          FIELD(train.recompute))),

      resumable(key("checkpoint.every", "steps between checkpoints; 0: at the end and on signals",
                    integer_value(0, kMaxSteps), FIELD(checkpoint.every))),
      resumable(key("checkpoint.keep",
                    "newest checkpoints kept, and one more until a loss of the newest was seen",
                    integer_value(1, kMaxInt32), FIELD(checkpoint.keep))),
      resumable(key("checkpoint.keep_every",
                    "checkpoints whose step divides by this are kept for good; a multiple of "
                    "checkpoint.every; 0: none",
                    integer_value(0, kMaxSteps), FIELD(checkpoint.keep_every))),
      resumable(key("checkpoint.resume",
                    "auto: the newest good checkpoint of out_dir if any; never: an error where "
                    "out_dir is not empty; else a checkpoint folder",
                    nonempty_text(), FIELD(checkpoint.resume))),
      resumable(key("checkpoint.allow_change",
                    "keys, or groups of keys, that may differ from the run that is resumed",
                    set_of(nonempty_text()), FIELD(checkpoint.allow_change))),
      resumable(key("checkpoint.best.metric",
                    "of validation, as validation/loss, or of a task of eval.tasks that is "
                    "measured every some steps, as copy@128/exact_match: the checkpoint at which "
                    "it was best is kept, and is the one that the results at the end are of; "
                    "empty: the last is",
                    any_text(), FIELD(checkpoint.best_metric))),
      resumable(choice<bool>("checkpoint.best.mode", "what is best of it",
                             {{"min", false}, {"max", true}}, FIELD(checkpoint.best_is_highest))),
  };
}

}  // namespace bamtrain
