#pragma once
// Corpus BLEU of a model's answers to a task, by which ASEntmax chooses some checkpoints.

#include "eval/task_scores.h"

namespace bamtrain {

/// Most tokens of a prompt and its answer.
int64_t task_bleu_length(const TaskRequest& request, int64_t length);

/// BLEU (eval/bleu.h) of the answers that greedy decoding gives to the prompts of the test
/// sequences of that length, without the terminator. An answer has at most 1.2 times the tokens of
/// the right one. Runs in fp32 on the CPU, from master weights in host memory. Collective; bitwise
/// identical for any number of processes. REQUIRES: the task's answers have a terminator;
/// check_task_request accepts the request.
double task_bleu(const TaskRequest& request, int64_t length, const ModelConfig& config,
                 int64_t training_length, const Tensor& master_weights, const TaskShare& share);

}  // namespace bamtrain
