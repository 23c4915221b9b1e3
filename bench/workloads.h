#pragma once
// What the benchmarks of the CPU and of a GPU both time.

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

/// Normal numbers, those of the first 2^20 elements over and over. f32 or bf16.
void fill_normal(Backend& backend, const Tensor& t, const std::string& stream);

/// Normalizers by what options call them; "general" is softmax by the path that takes every one.
const std::map<std::string, NormalizerForm>& normalizer_forms();

/// Attention over all earlier keys, with everything that it reads and writes.
class AttentionWorkload {
 public:
  AttentionWorkload(Backend& backend, Dtype activations, const AttentionForm& form,
                    const AttentionShape& shape, double content = 1);

  void forward() { backend_.attention_forward(x_.out, x_.saved, x_.a); }
  void backward() { backend_.attention_backward(x_.g, x_.dout, x_.out, x_.saved, x_.a); }
  const Attention& arguments() const { return x_.a; }
  /// Of the tiles that any row sees, those that the last forward pass gave weight to.
  double live_share() const;

 private:
  /// The bias as a model of a form begins with it, fire's trained at T; of others normal numbers.
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
