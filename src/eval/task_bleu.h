#pragma once
// Corpus BLEU of what a model writes for a task, as ASEntmax chooses some checkpoints by.

#include "eval/task_scores.h"

namespace bamtrain {

/// The most tokens of a prompt with what is written behind it.
int64_t task_bleu_length(const TaskRequest& request, int64_t length);

/// BLEU (eval/bleu.h) of the answers that greedy decoding writes behind the prompts of the test
/// sequences of that length, without their end, up to 1.2 times the right one's tokens. In fp32 on
/// the CPU, from master weights in host memory. Collective; the same bits for every number of
/// processes. REQUIRES: the task's answers have an end; check_task_request accepts the request.
double task_bleu(const TaskRequest& request, int64_t length, const ModelConfig& config,
                 int64_t training_length, const Tensor& master_weights, const TaskShare& share);

}  // namespace bamtrain
