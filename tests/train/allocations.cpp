// A training step allocates no memory outside the operations of its backend.

#include "catch.h"
#include "dist/backends.h"
#include "model/count_allocations.h"
#include "model/null_backend.h"
#include "record/event_file.h"
#include "train/trainer.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

/// Counts the allocations in the third to eighth step of a run, including results.
int64_t allocations_of_later_steps(const RunConfig& config) {
  NullBackend backend;
  const auto communicator = make_single_communicator();
  Trainer trainer(config, backend, 0, 1);
  trainer.commit();
  trainer.initialize();
  const auto two_steps = [&](int64_t first) {
    trainer.start_step(first, *communicator);
    trainer.start_step(first + 1, *communicator);
    trainer.finish_steps(*communicator);
  };
  two_steps(0);
  const int64_t before = allocations();
  for (int64_t step = 2; step < 8; step += 2) two_steps(step);
  return allocations() - before;
}

}  // namespace

TEST_CASE("steps and their results take no memory once the model has passed some") {
  const Workplace w;
  RunConfig config = small_train_run(w);
  CHECK(allocations_of_later_steps(config) == 0);
  PriorChoice rope(*find_prior("rope"));
  rope.options.set("randomized", true);
  config.model.attention.prior = rope;
  config.optimizer.lr_multipliers.clear();
  CHECK(allocations_of_later_steps(config) == 0);
}

TEST_CASE("events take no memory once the longest was written") {
  const Workplace w;
  EventFile events(w.path("board"), 0);
  const Scalar scalars[] = {{"loss", 1}, {"lr", 2}};
  const std::vector<float> ramp = {1, 2, 3}, equal = {1, 1};
  const auto write = [&](int64_t step) {
    events.write_scalars(step, scalars);
    events.write_histogram(step, "prior/theta_alpha", ramp);
    events.write_histogram(step, "prior/theta_alpha", equal);
  };
  write(kMaxSteps);  // a step takes at most this many bytes
  const int64_t before = allocations();
  for (int64_t step = 1; step < 100; ++step) write(step);
  CHECK(allocations() == before);
}
