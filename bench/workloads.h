#pragma once
// What the benchmarks of the CPU and of a GPU both time.

#include <cstdint>
#include <optional>
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
    std::optional<SumBias> sums = std::nullopt;
    bool fire = false;  // the prior as a model begins with it, trained at T
  };
  AttentionWorkload(Backend& backend, Dtype activations, const Shape& shape);

  void forward() { backend_.attention_forward(out_, lse_, a_); }
  void backward() { backend_.attention_backward(g_, dout_, out_, lse_, a_); }
  const Attention& arguments() const { return a_; }

 private:
  void add_fire(const Shape& shape);
  void fill_fire(const Shape& shape);

  Backend& backend_;
  Arena arena_;
  Attention a_;
  AttentionGradients g_;
  Tensor out_, dout_, lse_;
  std::vector<Tensor> fire_theta_;
};

/// The program's own training steps (Trainer::step), one process and one lane, on a shard of random
/// tokens.
class StepWorkload {
 public:
  /// Micro-batches of B sequences of T tokens, `micro_batches` to a step; all else is the config's.
  StepWorkload(const RunConfig& config, Backend& backend, int64_t B, int64_t T,
               int64_t micro_batches);
  ~StepWorkload();

  /// One step, to its end; the mean loss.
  double step();
  const ParameterLayout& parameters() const;
  int64_t planned_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::bench
