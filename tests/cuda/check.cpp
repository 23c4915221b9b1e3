// device "check": runs each operation of a step on the CUDA and the CPU backend and compares them.

#include "ops/check/check.h"

#include "catch.h"
#include "cuda/device.h"
#include "model/build.h"
#include "ops/cpu/cpu.h"
#include "train/optimizer.h"

namespace bamtrain::testing {
namespace {

/// Loss, gradients, their norm and an update, each operation on both backends.
struct CheckedStep {
  Device device = checked();
  Backend& backend = *device.backend;
  MemorySource& source = *device.source;
  Run run;
  Optimizer optimizer;
  Arena arena;
  Tensor squares, squared_norm;  // f64

  CheckedStep(const ModelConfig& c, Dtype t)
      : run(c, t, 2, 40, std::move(device)),
        optimizer(OptimizerConfig(), run.model().parameters(), backend) {
    const int64_t n = run.model().parameters().elements();
    optimizer.plan(arena, {{{0, n}}}, n);
    arena.add("squares", &squares, Dtype::f64, {squares_blocks(n)});
    arena.add("squared_norm", &squared_norm, Dtype::f64, {1});
    arena.commit(source);
    run.differentiate(random_batch(2, 40, c.vocab));
    backend.squares(squares, run.gradients());
    backend.zero(squared_norm);
    backend.sum(squared_norm, squares);
    optimizer.prepare(1, 1e-3, 1);
    optimizer.clip(squared_norm);
    const FlatRange all = {0, n};
    optimizer.update({&all, 1}, run.master_weights(), run.model().rounded_weights(),
                     run.gradients());
  }

  static Device checked() {
    Device cuda = cuda_device();
    return {make_check_backend(std::move(cuda.backend), make_cpu_backend()), cuda.source};
  }
};

TEST_CASE("a whole step of the CUDA backend agrees with the CPU backend, operation by operation") {
  ModelConfig c = small_config();
  c.width = 64;
  c.heads = 4;
  c.kv_heads = 2;
  c.mlp.hidden = 40;
  c.attention.prior = prior("bam");
  c.attention.scale = scale("ssmax");
  c.attention.document_mask = true;
  for (Dtype t : {Dtype::f32, Dtype::bf16}) {
    INFO(name_of(t));
    const CheckedStep step(c, t);
    CHECK(norm(read(step.run.gradients(), Role::parameter).x) > 0);
  }
}

}  // namespace
}  // namespace bamtrain::testing
