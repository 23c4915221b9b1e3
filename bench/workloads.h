#pragma once
// What the benchmarks of the CPU and of a GPU both time.

#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/model.h"
#include "ops/ops.h"
#include "train/optimizer.h"
#include "train/run_config.h"

namespace bamtrain::bench {

/// Normal numbers, those of the first 2^20 elements over and over. f32 or bf16.
void fill_normal(Backend& backend, const Tensor& t, const std::string& stream);

/// Attention over all earlier keys, with everything that it reads and writes.
class AttentionWorkload {
 public:
  struct Shape {
    int64_t B = 1, T = 0, H = 0, K = 0, D = 0;
    bool table = false, scale = false, scale_bias = false;
  };
  AttentionWorkload(Backend& backend, Dtype activations, const Shape& shape);

  void forward() { backend_.attention_forward(out_, lse_, a_); }
  void backward() { backend_.attention_backward(g_, dout_, out_, lse_, a_); }
  const Attention& arguments() const { return a_; }

 private:
  Backend& backend_;
  Arena arena_;
  Attention a_;
  AttentionGradients g_;
  Tensor out_, dout_, lse_;
};

/// Training steps of one lane on random tokens.
class StepWorkload {
 public:
  StepWorkload(const RunConfig& config, Backend& backend, Dtype activations, int64_t B, int64_t T);

  /// One step of this many micro-batches of B sequences of T tokens, to its end; the mean loss.
  double step(int64_t micro_batches);
  const ParameterLayout& parameters() const { return model_.parameters(); }
  int64_t planned_bytes() const { return arena_.total_bytes(); }

 private:
  const RunConfig& config_;
  Backend& backend_;
  Model model_;
  Optimizer optimizer_;
  Arena arena_;
  Tensor masters_, gradients_, loss_, squares_;
  std::vector<int32_t> tokens_;  // (B T + 1): inputs, and one further on the targets
  int64_t steps_ = 0;
};

}  // namespace bamtrain::bench
