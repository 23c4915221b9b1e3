// A step of training takes no memory beside the operations of its backend.

#include "catch.h"
#include "dist/backends.h"
#include "model/count_allocations.h"
#include "model/null_backend.h"
#include "train/trainer.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

TEST_CASE("steps and their results take no memory once the loader holds two steps") {
  const Workplace w;
  const TrainRun run = small_train_run(w);
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
  CHECK(allocations() - before == 0);
}
