// The CUDA backend in one or several processes: on the engine, where test cases of processes.cpp
// start it, or on GPUs (on_processes_gpu). Usage: on_processes sums ELEMENTS_PER_MESSAGE |
// on_processes train CONFIG [KEY=VALUE ...]

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "config/reader.h"
#include "core/group_reduction.h"
#include "core/rng.h"
#include "core/sha256.h"
#include "dist/collective.h"
#include "dist/communicator.h"
#include "ops/cpu/cpu.h"
#include "ops/cuda/cuda.h"
#include "ops/host_copy.h"
#include "train/trainer.h"

namespace bamtrain {
namespace {

/// Magnitudes differ by up to 2^30, so that the order of additions matters.
std::vector<float> values(int rank, int64_t n) {
  const Rng rng(static_cast<uint64_t>(rank), "values");
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<uint64_t>(i);
    v.push_back(static_cast<float>(rng.normal(k) * std::exp2(static_cast<double>(k * 7 % 31))));
  }
  return v;
}

/// Compares the link's sums with those in host memory. Returns the number of failures.
int sums(Communicator& comm, int64_t piece) {
  const auto backend = make_cuda_backend(comm.local_rank());
  GroupReduction reduction(comm.rank(), comm.size(), comm.size());
  const auto link = backend->connect(peers_of(comm, reduction.partners()));
  int failures = 0;
  for (const int64_t n : {int64_t{1}, int64_t{63}, int64_t{1000}, int64_t{100003}}) {
    Arena arena;
    Tensor data, messages;
    arena.add("data", &data, Dtype::f32, {n});
    arena.add("messages", &messages, Dtype::f32, {PeerLink::kSlots * piece * comm.size()});
    arena.commit(backend->memory());
    const std::vector<float> own = values(comm.rank(), n);
    std::vector<float> expected = own, found = own, library = own;
    std::vector<float> room(static_cast<size_t>(messages.size()));
    const Tensor on_host(expected.data(), Dtype::f32, {n});
    reduction.run(*comm.link(), {&on_host, 1}, Tensor(room.data(), Dtype::f32, {messages.size()}));
    backend->upload(data, own.data());
    reduction.run(*link, {&data, 1}, messages);
    link->join();
    backend->download(found.data(), data);
    if (std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) != 0) {
      std::printf("rank %d: tree sum of %lld: other bits\n", comm.rank(), (long long)n);
      ++failures;
    }
    // The library adds in another order: one rounding of a partial sum for each addition.
    backend->upload(data, own.data());
    link->all_reduce(data);
    backend->download(library.data(), data);
    std::vector<double> magnitude(own.size(), 0.0);
    for (int r = 0; r < comm.size(); ++r) {
      const std::vector<float> theirs = values(r, n);
      for (size_t i = 0; i < theirs.size(); ++i) magnitude[i] += std::abs(theirs[i]);
    }
    for (size_t i = 0; i < library.size(); ++i) {
      const double error = std::abs(static_cast<double>(library[i]) - expected[i]);
      if (error <= 2 * comm.size() * 0x1p-24 * magnitude[i]) continue;
      std::printf("rank %d: the library's sum %g, the tree's %g\n", comm.rank(), library[i],
                  expected[i]);
      ++failures;
    }
  }
  return failures;
}

/// Prints the loss and norm of all steps, then the digest of the weights and moments.
int train(Communicator& comm, const std::string& config,
          const std::vector<std::string>& overrides) {
  const RunConfig run = read_run_config(config, overrides);
  const auto backend =
      run.device == DeviceKind::cuda ? make_cuda_backend(comm.local_rank()) : make_cpu_backend();
  Trainer trainer(run, *backend, comm.rank(), comm.size());
  trainer.connect(comm);
  trainer.commit();
  trainer.initialize();
  for (int64_t step = 0; step < run.train.steps; ++step) {
    trainer.start_step(step, comm);
    if (trainer.in_flight() < 3 && step + 1 < run.train.steps) continue;
    for (const StepResult& r : trainer.finish_steps(comm)) {
      if (comm.rank() == 0) std::printf("step loss %.17g norm %.17g\n", r.loss, r.norm);
    }
  }
  std::string all;
  for (const StateTensor t : kStateTensors) {
    const HostCopy whole(*backend, trainer.state().assemble(t), HostCopy::Contents::downloaded);
    all.append(static_cast<const char*>(whole.tensor().data),
               static_cast<size_t>(whole.tensor().bytes()));
  }
  const std::string digest = sha256_hex(all);
  std::string first = digest;
  comm.broadcast(first.data(), static_cast<int64_t>(first.size()), 0);
  if (comm.any(first != digest)) {
    std::printf("rank %d: state %s\n", comm.rank(), digest.c_str());
    return 1;
  }
  if (comm.rank() == 0) std::printf("state %s\n", digest.c_str());
  return 0;
}

int main_program(int argc, char** argv) {
  const auto comm = make_communicator();
  try {
    const std::string mode = argv[1];
    const int failures = mode == "sums" ? sums(*comm, std::atoll(argv[2]))
                                        : train(*comm, argv[2], {argv + 3, argv + argc});
    std::printf("rank %d: %d failures\n", comm->rank(), failures);
    return failures > 0 ? 1 : 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", comm->rank(), e.what());
    comm->abort(1);
    return 1;
  }
}

}  // namespace
}  // namespace bamtrain

int main(int argc, char** argv) { return argc < 3 ? 2 : bamtrain::main_program(argc, argv); }
