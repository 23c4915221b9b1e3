// What the CUDA backend does besides operations: recordings, and reports of memory.

#include <cstdio>
#include <stdexcept>

#include "catch.h"
#include "config/reader.h"
#include "core/error.h"
#include "cuda/device.h"
#include "engine/calls.h"
#include "model/model.h"
#include "on_terminal.h"
#include "ops/cuda/cuda.h"
#include "priors/registry.h"
#include "run/train.h"
#include "scales/registry.h"

namespace bamtrain::testing {
namespace {

TEST_CASE("work that failed while it was recorded is recorded anew, not replayed") {
  Machine m(Dtype::f32, cuda_device());
  const Memory x = m.memory(constant_values(Role::parameter, {4}, 1)),
               one = m.memory(constant_values(Role::parameter, {4}, 1));
  bool fails = false;
  const auto work = [&] {
    if (fails) throw std::runtime_error("no");
    m.backend().add(x.tensor(), one.tensor());
  };
  const auto value = [&] { return read(x.tensor(), Role::parameter).x.at(3); };
  m.backend().run_captured(7, work);
  CHECK(value() == 2);
  fails = true;
  CHECK_THROWS_AS(m.backend().run_captured(7, work), std::runtime_error);
  fails = false;
  for (int pass = 0; pass < 3; ++pass) {
    m.backend().run_captured(7, work);
    CHECK(value() == 3 + pass);
  }
}

TEST_CASE("a plan that does not fit is told what there is, and never less than nothing") {
  const Device device = cuda_device();
  const auto refusal = [&](int64_t free_mib, int64_t mib) -> std::string {
    const int64_t before = engine::free_bytes;
    engine::free_bytes = free_mib << 20;
    std::string said;
    try {
      device.source->check_fits(mib << 20);
    } catch (const Error& e) {
      CHECK(e.code() == ExitCode::device);
      said = e.what();
    }
    engine::free_bytes = before;
    return said;
  };
  CHECK(refusal(1024, 512).empty());
  CHECK(refusal(1024, 513).find("expected at most 512 MiB (1024 MiB free, 512 MiB reserved for "
                                "CUDA libraries), found 513 MiB") != std::string::npos);
  CHECK(refusal(200, 1).find("expected at most 0 MiB (200 MiB free, ") != std::string::npos);
  CHECK(refusal(200, 1).find("end the programs") != std::string::npos);
}

TEST_CASE("a plan without a device is the device's, and gives no memory") {
  ModelConfig c;
  c.vocab = 64;
  c.width = 32;
  c.layers = 2;
  c.heads = c.kv_heads = 2;
  c.mlp.hidden = 64;
  c.attention.prior = PriorChoice(*find_prior("bam"));
  c.attention.scale = ScaleChoice(*find_scale("ssmax"));
  const Device device = cuda_device();
  const std::unique_ptr<Backend> absent = make_cuda_plan();
  const auto table = [&](Backend& backend, Dtype t) {
    Arena arena;
    Model model(c, 64, backend, t);
    model.plan(arena, 4, 64, ModelUse::training);
    return arena.table();
  };
  for (const Dtype t : {Dtype::f32, Dtype::bf16}) {
    CHECK(table(*absent, t) == table(*device.backend, t));
  }
  CHECK_FALSE(absent->memory().on_host());
  CHECK_NOTHROW(absent->memory().check_fits(int64_t{1} << 50));
  CHECK_THROWS_AS(absent->memory().allocate(1), Error);
}

TEST_CASE("a dry run for a GPU that is not here tells its memory, and of time nothing") {
  TrainRun run;
  run.config = read_run_config_text(R"({
    "config_version": 3,
    "out_dir": "none",
    "device": "cuda",
    "model": {"width": 32, "layers": 1, "heads": 2, "mlp": {"hidden": 64}},
    "data": {"train": {"task": "copy", "length": [3, 9]}},
    "train": {"steps": 4, "sequences_per_step": 8, "micro_batch": 4, "precision": "bf16"}
  })",
                                    "run.json", {});
  run.has_device = false;
  const std::unique_ptr<Backend> absent = make_cuda_plan();
  const std::string told = on_terminal(100, [&] {
    try {
      dry_run(run, *absent, 1);
      std::puts("ended well");
    } catch (const std::exception& e) {
      std::puts(e.what());
    }
  });
  INFO(told);
  CHECK(told.find("memory of one process\r\n  activations ") != std::string::npos);
  CHECK(told.find("  unknown                      no GPU here to measure\r\n") !=
        std::string::npos);
  CHECK(told.find("FLOP/s") == std::string::npos);
  CHECK(told.ends_with("ended well\r\n"));
}

}  // namespace
}  // namespace bamtrain::testing
