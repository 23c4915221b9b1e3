#include "eval/task_bleu.h"

#include <algorithm>

#include "core/checked.h"
#include "core/element.h"
#include "core/error.h"
#include "eval/bleu.h"
#include "model/incremental_decoder.h"
#include "ops/cpu/cpu.h"

namespace bamtrain {

namespace {

int32_t likeliest(const Tensor& logits) {
  int64_t best = 0;
  for (int64_t v = 1; v < logits.size(); ++v) {
    if (get(logits, v) > get(logits, best)) best = v;
  }
  return static_cast<int32_t>(best);
}

/// 1.2 n, rounded up.
int64_t most_written(int64_t n) { return ceil_div(6 * n, 5); }

}  // namespace

int64_t task_bleu_length(const TaskRequest& request, int64_t length) {
  const int64_t inputs = sequences_of(request, length, TaskSet::test).most_inputs();
  return inputs + most_written(inputs);
}

double task_bleu(const TaskRequest& request, int64_t length, const ModelConfig& config,
                 int64_t training_length, const Tensor& master_weights, const TaskShare& share) {
  const TaskInfo& info = *request.task.info;
  require(info.end != kIgnoreIndex, "a task that a decoder continues");
  const Task task = sequences_of(request, length, TaskSet::test);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  IncrementalDecoder text(config, training_length, *backend, Dtype::f32, std::nullopt,
                          task_bleu_length(request, length));
  text.commit(master_weights);
  BleuCounts counts;
  for (int64_t n = share.rank; n < request.samples; n += share.processes) {
    Example e;
    task.draw(n, length, &e);
    const auto begin = std::find_if(e.targets.begin(), e.targets.end(),
                                    [](int32_t t) { return t != kIgnoreIndex; });
    const auto prompt = static_cast<size_t>(begin - e.targets.begin()) + 1;
    const Symbols reference(begin, e.targets.end() - 1);  // without the terminator
    Symbols written;
    text.clear();
    int32_t next = likeliest(text.append({e.inputs.data(), prompt}));
    while (next != info.end && std::ssize(written) < most_written(std::ssize(reference) + 1)) {
      written.push_back(next);
      next = likeliest(text.append({&next, 1}));
    }
    counts.add(written, reference);
  }
  share.sum(counts.matched.data(), BleuCounts::kNumbers);
  return counts.score();
}

}  // namespace bamtrain
