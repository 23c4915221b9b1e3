#include "run/host_state.h"

#include <cstring>

#include "dist/collective.h"
#include "ops/host_copy.h"
#include "record/run_files.h"

namespace bamtrain {

HostState::HostState(Trainer& trainer, const Communicator& comm) : trainer_(trainer) {
  if (comm.rank() != 0) return;
  for (const StateTensor t : kStateTensors) {
    const auto i = static_cast<size_t>(t);
    tensors_[i] = trainer.state().place(t);
    if (trainer.state().is_whole(t) && trainer.backend().memory().on_host()) continue;
    memory_[i].resize(static_cast<size_t>(tensors_[i].bytes()));
    tensors_[i].data = memory_[i].data();
  }
}

void HostState::gather(Communicator& comm) {
  for (const StateTensor t : kStateTensors) {
    const Tensor& whole = trainer_.state().assemble(t);
    run_on_rank_zero(comm, [&] {
      if (of(t).data != whole.data) trainer_.backend().download(of(t).data, whole);
    });
  }
}

void HostState::scatter(Communicator& comm) {
  for (const StateTensor t : kStateTensors) bamtrain::scatter(t, of(t), comm, trainer_);
}

std::vector<NamedTensor> HostState::model() const {
  return model_tensors(trainer_.layout(), of(StateTensor::master_weights));
}

std::vector<NamedTensor> HostState::optimizer() const {
  return optimizer_tensors(trainer_.layout(), of(StateTensor::first_moments),
                           of(StateTensor::second_moments));
}

void scatter(StateTensor t, const Tensor& from_first, Communicator& comm, Trainer& trainer) {
  HostCopy whole(trainer.backend(), trainer.state().place(t), HostCopy::Contents::undefined);
  if (comm.rank() == 0 && from_first.data != whole.tensor().data) {
    std::memcpy(whole.tensor().data, from_first.data, static_cast<size_t>(from_first.bytes()));
  }
  if (comm.size() > 1) comm.broadcast(whole.tensor().data, whole.tensor().bytes(), 0);
  whole.upload();
  trainer.state().take(t);
}

}  // namespace bamtrain
