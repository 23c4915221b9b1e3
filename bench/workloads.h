#pragma once
// Workloads shared by the CPU and GPU benchmarks.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/model.h"
#include "ops/attention_call.h"
#include "ops/ops.h"
#include "train/optimizer.h"
#include "train/run_config.h"

namespace bamtrain::bench {

/// Fills with normal numbers; repeats the first 2^20. f32 or bf16.
void fill_normal(Backend& backend, const Tensor& t, const std::string& stream);

/// Normalizers by option name; "general" is softmax on the path that supports every normalizer.
const std::map<std::string, NormalizerForm>& normalizer_forms();

/// Attention over all earlier keys, with all inputs and outputs.
class AttentionWorkload {
 public:
  AttentionWorkload(Backend& backend, Dtype activations, AttentionForm form,
                    const AttentionShape& shape, double content = 1);

  void forward() { backend_.attention_forward(x_.out, x_.saved, x_.a); }
  void backward() { backend_.attention_backward(x_.g, x_.dout, x_.out, x_.saved, x_.a); }
  const Attention& arguments() const { return x_.a; }
  /// The share of visible blocks that the last forward pass gave weight to.
  double live_share() const;

 private:
  /// Fills the bias as a model initialises its form, fire's for training at T; other forms get
  /// normal numbers.
  template <class B>
  void fill(const B& bias) {
    for_tensors(bias,
                [this](const char* name, const Tensor& t) { fill_normal(backend_, t, name); });
  }
  void fill(const TableBias& bias);
  void fill(const TokenBias& bias);
  void fill(const FireBias& bias);
  void add_theta();

  Backend& backend_;
  Arena arena_;
  AttentionShape shape_;
  AttentionCall x_;
  std::vector<Tensor> fire_theta_;
};

/// The program's own training steps (Trainer::step) on a shard of random tokens: one process, one
/// gradient accumulation group.
class StepWorkload {
 public:
  /// Microbatches of B sequences of T tokens, `micro_batches` per step; everything else is from the
  /// config.
  StepWorkload(const RunConfig& config, Backend& backend, int64_t B, int64_t T,
               int64_t micro_batches);
  ~StepWorkload();

  /// Runs one step to completion and returns the mean loss.
  double step();
  const ParameterLayout& parameters() const;
  int64_t planned_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bamtrain::bench
