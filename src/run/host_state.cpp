#include "run/host_state.h"

#include "dist/collective.h"
#include "ops/host_copy.h"
#include "record/run_files.h"

namespace bamtrain {

HostTensor::HostTensor(const Trainer& trainer, StateTensor t) : tensor_(trainer.state().place(t)) {
  const int64_t own = bytes(trainer, t);
  if (own == 0) return;
  memory_.resize(static_cast<size_t>(own));
  tensor_.data = memory_.data();
}

int64_t HostTensor::bytes(const Trainer& trainer, StateTensor t) {
  if (trainer.state().is_whole(t) && trainer.backend().memory().on_host()) return 0;
  return trainer.layout().elements() * size_of(trainer.backend().parameter_dtype());
}

HostState::HostState(Trainer& trainer, const Communicator& comm) : trainer_(trainer) {
  if (comm.rank() != 0) return;
  tensors_.reserve(kStateTensors.size());
  for (const StateTensor t : kStateTensors) tensors_.emplace_back(trainer, t);
}

int64_t HostState::bytes(const Trainer& trainer) {
  int64_t sum = 0;
  for (const StateTensor t : kStateTensors) sum += HostTensor::bytes(trainer, t);
  return sum;
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
  for (size_t i = 0; i < kStateTensors.size(); ++i) {
    bamtrain::scatter(kStateTensors[i], comm.rank() == 0 ? &tensors_[i] : nullptr, comm, trainer_);
  }
}

std::vector<NamedTensor> HostState::model() const {
  return model_tensors(trainer_.layout(), of(StateTensor::master_weights));
}

std::vector<NamedTensor> HostState::optimizer() const {
  return optimizer_tensors(trainer_.layout(), of(StateTensor::first_moments),
                           of(StateTensor::second_moments));
}

void scatter(StateTensor t, const HostTensor* on_first, Communicator& comm, Trainer& trainer) {
  const Tensor& place = trainer.state().place(t);
  if (on_first != nullptr) {
    const Tensor& whole = on_first->tensor();
    if (comm.size() > 1) comm.broadcast(whole.data, whole.bytes(), 0);
    if (whole.data != place.data) trainer.backend().upload(place, whole.data);
  } else {
    HostCopy whole(trainer.backend(), place, HostCopy::Contents::undefined);
    comm.broadcast(whole.tensor().data, whole.tensor().bytes(), 0);
    whole.upload();
  }
  trainer.state().take(t);
}

}  // namespace bamtrain
