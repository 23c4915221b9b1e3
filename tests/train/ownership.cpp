// What each process of a run keeps and updates.

#include "train/ownership.h"

#include <string>
#include <vector>

#include "catch.h"
#include "ops/cpu/cpu.h"
#include "train/support.h"
#include "train/trainer_run.h"

using namespace bamtrain;
using namespace bamtrain::testing;

namespace {

constexpr int64_t kGroups = 24;
constexpr int64_t kBlock = 4096;

/// Calls f(ownership) for each of the processes.
template <class F>
void for_ranks(const Network& network, int processes, Ownership::MasterWeights weights, F&& f) {
  for (int rank = 0; rank < processes; ++rank) {
    const GroupReduction reduction(rank, processes, kGroups, kBlock);
    f(Ownership(network, reduction, true, weights));
  }
}

std::unique_ptr<Network> small_network(Backend& backend) {
  const Workplace w;
  const RunConfig c = small_train_run(w);
  return make_network(c.model, 64, backend, Dtype::f32);
}

/// Bytes of master weights and moments of the first of `processes`.
int64_t state_bytes(const RunConfig& config, int processes) {
  const auto backend = make_cpu_backend();
  const Trainer trainer(config, *backend, 0, processes, Trainer::Data::absent);
  int64_t bytes = 0;
  for (const Arena::Entry& e : trainer.arena().entries()) {
    const bool of_state = e.name == "weights.masters" || e.name.ends_with("_moments");
    if (of_state) bytes += e.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("processes own all elements, each once, in blocks that begin with a segment") {
  const auto backend = make_cpu_backend();
  const auto network = small_network(*backend);
  const int64_t all = network->parameters().elements();
  for (int processes = 1; processes <= 12; ++processes) {
    INFO(processes << " processes");
    std::vector<int> owners(static_cast<size_t>(all));
    for_ranks(*network, processes, Ownership::MasterWeights::all, [&](const Ownership& o) {
      REQUIRE(o.owned().size() == o.segments().size());
      int64_t end = 0;
      for (size_t s = 0; s < o.segments().size(); ++s) {
        const FlatRange &segment = o.segments()[s], &own = o.owned()[s].elements;
        CHECK(segment.begin == end);
        end = segment.end;
        CHECK(own.begin >= segment.begin);
        CHECK(own.end <= segment.end);
        CHECK((own.size() == 0 || (own.begin - segment.begin) % kBlock == 0));
        CHECK((own.end == segment.end || (own.end - segment.begin) % kBlock == 0));
        for (int64_t i = own.begin; i < own.end; ++i) ++owners[static_cast<size_t>(i)];
      }
      CHECK(end == all);
    });
    CHECK(owners == std::vector<int>(owners.size(), 1));
  }
}

TEST_CASE("a process keeps what it owns one after the other, behind the exact parameters") {
  const auto backend = make_cpu_backend();
  const auto network = small_network(*backend);
  const int64_t exact = network->parameters().exact_elements();
  for (const int processes : {1, 2, 3, 8}) {
    for_ranks(*network, processes, Ownership::MasterWeights::exact, [&](const Ownership& o) {
      int64_t moments = 0, weights = exact;
      for (const OwnedRange& own : o.owned()) {
        CHECK(own.moments == moments);
        moments += own.elements.size();
        if (own.elements.begin < exact) {
          CHECK(own.master_weights == own.elements.begin);
        } else {
          CHECK(own.master_weights == weights);
          weights += own.elements.size();
        }
      }
      CHECK(o.moments() == moments);
      CHECK(o.master_weights() == weights);
      CHECK_FALSE(o.has_all_master_weights());
    });
    // Without rounded copies the network reads all master weights.
    for_ranks(*network, processes, Ownership::MasterWeights::all, [&](const Ownership& o) {
      CHECK(o.master_weights() == network->parameters().elements());
      for (const OwnedRange& own : o.owned()) CHECK(own.master_weights == own.elements.begin);
    });
  }
}

TEST_CASE(
    "each of four processes keeps a quarter of the moments, in bf16 of the master weights too") {
  const Workplace w;
  RunConfig c = small_train_run(w);
  c.model.width = 256;
  c.model.mlp.hidden = 688;
  c.model.vocab = 8192;
  c.train.tokens_per_step *= 2;
  c.train.lanes = 8;
  for (const Precision precision : {Precision::bf16, Precision::f32}) {
    c.train.precision = precision;
    c.train.shard_optimizer = false;
    const auto whole = static_cast<double>(state_bytes(c, 4));
    c.train.shard_optimizer.reset();  // by default
    const auto divided = static_cast<double>(state_bytes(c, 4));
    CHECK(static_cast<double>(state_bytes(c, 1)) == whole);
    // A block of each segment may be more than a quarter; all master weights are a third.
    const double expected = precision == Precision::bf16 ? 0.25 : (1 + 0.25 + 0.25) / 3;
    CHECK(divided / whole == Approx(expected).epsilon(0.02));
  }
}
