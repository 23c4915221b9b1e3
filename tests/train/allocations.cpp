// A step of training takes no memory beside the operations of its backend.

#include "catch.h"
#include "dist/backends.h"
#include "model/count_allocations.h"
#include "model/null_backend.h"
#include "train/trainer.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// How often the fifth to eighth step of a run take memory, results included.
int64_t allocations_of_later_steps(const TrainRun& run) {
  NullBackend backend;
  const auto communicator = make_single_communicator();
  Trainer trainer(run, backend, 0, 1);
  trainer.commit();
  trainer.initialize();
  const auto two_steps = [&](int64_t first) {
    trainer.start_step(first, *communicator);
    trainer.start_step(first + 1, *communicator);
    trainer.finish_steps(*communicator);
  };
  for (int64_t step = 0; step < 4; step += 2) two_steps(step);
  const int64_t before = allocations();
  for (int64_t step = 4; step < 8; step += 2) two_steps(step);
  return allocations() - before;
}

}  // namespace

TEST_CASE("steps and their results take no memory once the loader holds two steps") {
  const Workplace w;
  TrainRun run = small_train_run(w);
  CHECK(allocations_of_later_steps(run) == 0);
  MechanismConfig rope = {"rope", default_options(find_prior("rope")->options)};
  rope.options.set("randomized", true);
  run.config.model.attention.prior = rope;
  run.config.optimizer.lr_multipliers.clear();
  CHECK(allocations_of_later_steps(run) == 0);
}
