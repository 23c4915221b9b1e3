#include "run/shared_saves.h"

#include <algorithm>
#include <optional>

#include "checkpoint/leftovers.h"
#include "core/durable_file.h"
#include "core/input_file.h"
#include "dist/collective.h"
#include "ops/host_copy.h"
#include "record/run_files.h"

namespace bamtrain {
namespace {

/// Whether f fails for reasons of files.
template <class F>
bool fails(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.code() != ExitCode::io) throw;
    return true;
  }
  return false;
}

/// What rank r writes to the file of a trial.
int64_t mark_of(int r) { return 0x62616d747261696e + r; }

}  // namespace

bool is_one_folder(Communicator& comm, const std::string& folder) {
  const std::string path = folder + "/" + leftovers::kTrial;
  const auto mark = mark_of(comm.rank());
  run_on_rank_zero(comm, [&] { DurableFile(path).finish(); });
  // All have it open before one closes it.
  std::optional<PartOfFile> own;
  bool refused = comm.any(fails([&] { own.emplace(path); }));
  if (!refused) {
    refused = comm.any(fails([&] {
      own->write(comm.rank() * int64_t{sizeof(mark)}, &mark, sizeof(mark));
      own->finish();
    }));
  }
  bool one = !refused;
  run_on_rank_zero(comm, [&] {
    const bool unread = fails([&] {
      const InputFile file(path, ExitCode::io, "check the folder");
      for (int r = 0; one && r < comm.size(); ++r) {
        int64_t found = 0;
        file.read(r * int64_t{sizeof(found)}, &found, sizeof(found));
        one = found == mark_of(r);
      }
    });
    one = one && !unread;
    remove_tree(path);
  });
  return !comm.any(!one);
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
