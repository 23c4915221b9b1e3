#include "run/shared_saves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "checkpoint/leftovers.h"
#include "core/durable_file.h"
#include "core/input_file.h"
#include "dist/collective.h"
#include "ops/host_copy.h"
#include "record/run_files.h"

namespace bamtrain {
namespace {

/// Why f fails, with the ranks of which it does; empty: of none. Collective.
template <class F>
std::string failures_of(Communicator& comm, F&& f) {
  std::string own = "nothing";
  bool failed = false;
  try {
    f();
  } catch (const Error& e) {
    if (e.code() != ExitCode::io) throw;
    own = e.what();
    failed = true;
  }
  if (!comm.any(failed)) return "";
  const std::string different = different_names(comm, own);
  return different.empty() ? own : different;
}

/// What rank r writes to the file of a trial.
int64_t mark_of(int r) { return 0x62616d747261696e + r; }

uint64_t sum_of_all(Communicator& comm, uint64_t own) {
  std::array<double, 4> sums = {};  // of 16 bits each, so that they are exact
  for (size_t n = 0; n < sums.size(); ++n) sums[n] = static_cast<double>(own >> 16 * n & 0xffff);
  comm.sum(sums.data(), std::ssize(sums));
  uint64_t all = 0;
  for (size_t n = 0; n < sums.size(); ++n) all += static_cast<uint64_t>(sums[n]) << 16 * n;
  return all;
}

}  // namespace

std::string try_shared_file(Communicator& comm, const std::string& folder) {
  constexpr int64_t kBytes = sizeof(int64_t);
  const std::string path = folder + "/" + leftovers::kTrial;
  run_on_rank_zero(comm, [&] {
    DurableFile file(path);
    file.extend(comm.size() * kBytes);
    file.finish();
  });
  // All have it open before one closes it: stores that take a file whole keep what the last wrote.
  std::optional<PartOfFile> own;
  std::string failures = failures_of(comm, [&] { own.emplace(path); });
  if (failures.empty()) {
    failures = failures_of(comm, [&] {
      const int64_t mark = mark_of(comm.rank());
      own->write(comm.rank() * kBytes, &mark, kBytes);
      own->finish();
    });
  }
  int64_t lost = -1;  // a rank whose mark is not there
  run_on_rank_zero(comm, [&] {
    for (int r = 0; failures.empty() && lost < 0 && r < comm.size(); ++r) {
      int64_t found = 0;
      InputFile(path, ExitCode::io, "check the folder").read(r * kBytes, &found, kBytes);
      if (found != mark_of(r)) lost = r;
    }
    remove_tree(path);
  });
  comm.broadcast(&lost, sizeof lost, 0);
  if (lost >= 0) return fmt::format("{}: what rank {} wrote is not there", path, lost);
  return failures;
}

CheckpointSums sum_over_ranks(Communicator& comm, const CheckpointSums& own) {
  return {sum_of_all(comm, own.model), sum_of_all(comm, own.optimizer)};
}

CheckpointContents outline_of(const Trainer& trainer) {
  const Tensor all(nullptr, trainer.backend().parameter_dtype(), {trainer.layout().elements()});
  CheckpointContents contents;
  contents.model = model_tensors(trainer.layout(), all);
  contents.optimizer = optimizer_tensors(trainer.layout(), all, all);
  return contents;
}

void write_own(const Trainer& trainer, CheckpointPart& part) {
  for (const StateTensor t : kStateTensors) {
    const bool weights = t == StateTensor::master_weights;
    const char* const suffix = weights                           ? ""
                               : t == StateTensor::first_moments ? kFirstMoment
                                                                 : kSecondMoment;
    SafetensorsPart& file = weights ? part.model : part.optimizer;
    trainer.state().for_own(t, [&](FlatRange own, const Tensor& tensor) {
      const HostCopy host(trainer.backend(), tensor, HostCopy::Contents::downloaded);
      for (const Parameter& p : trainer.layout().all()) {
        const FlatRange both = {std::max(own.begin, p.offset),
                                std::min(own.end, p.offset + p.size)};
        if (both.size() <= 0 || (!weights && !p.trained)) continue;
        const Tensor values = both.shifted(-own.begin).of(host.tensor());
        file.write(p.name + suffix, (both.begin - p.offset) * size_of(values.dtype), values.data,
                   values.bytes());
      }
    });
  }
}

}  // namespace bamtrain
