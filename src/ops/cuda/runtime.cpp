#include "ops/cuda/runtime.h"

#include <cuda_runtime.h>

#include <array>
#include <cstring>

#include "core/error.h"
#include "core/memory_source.h"

namespace bamtrain::cuda {

namespace {

[[noreturn]] void fail(cudaError_t error, const std::string& what, const std::string& remedy) {
  throw Error::fault(ExitCode::device, "CUDA",
                     what + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")",
                     remedy);
}

/// "12.8" of 12080.
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fail(error, what,
       "an error of a kernel shows at a later call: run with CUDA_LAUNCH_BLOCKING=1, or under "
       "compute-sanitizer");
}

}  // namespace

int device_count() {
  int count = 0, driver = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return count;
  const bool installed = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  if (!installed || error == cudaErrorNoDevice) return 0;
  fail(error,
       "NVIDIA's driver of CUDA " + version(driver) + " with this program's CUDA " +
           version(CUDART_VERSION),
       "update the driver, or set device to \"cpu\"");
}

std::string open_device(int index) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    fail(error, "no usable GPU",
         "install NVIDIA's driver (nvidia-smi must list the GPU), or set device to \"cpu\"");
  }
  if (count == 1) index = 0;  // the launcher gives each process its own device
  if (index >= count) {
    throw Error(
        ExitCode::device, "CUDA", "device " + std::to_string(index),
        std::to_string(count) + " devices",
        "start at most as many processes on a node as it has GPUs, and check CUDA_VISIBLE_DEVICES");
  }
  cudaDeviceProp p = {};
  check(cudaGetDeviceProperties(&p, index), "the properties of the device");
  if (p.major < 8) {
    throw Error(ExitCode::device, p.name, "compute capability 8.0 or later",
                std::to_string(p.major) + "." + std::to_string(p.minor),
                "use a GPU of the Ampere generation or later, or set device to \"cpu\"");
  }
  check(cudaSetDevice(index), "the device");
  return p.name;
}

void* allocate(int64_t bytes) {
  void* memory = nullptr;
  if (const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(bytes));
      error != cudaSuccess) {
    (void)cudaGetLastError();
    fail(error, std::to_string(bytes >> 20) + " MiB of device memory", kPlanRemedy);
  }
  check(cudaMemset(memory, 0, static_cast<size_t>(bytes)), "a zeroed allocation");
  // The work's stream does not wait for the default stream, which runs the memset.
  check(cudaDeviceSynchronize(), "a zeroed allocation");
  return memory;
}

void release(void* memory) { (void)cudaFree(memory); }

int64_t free_memory() {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the device's free memory");
  return static_cast<int64_t>(free);
}

/// Pinned memory for uploads, in slots used in turn; an event marks when a slot has been read.
struct WorkStream::State {
  static constexpr int64_t kSlotBytes = int64_t{1} << 20;
  static constexpr size_t kSlots = 8;  // the four arrays of two batches

  Stream stream = nullptr;
  char* memory = nullptr;
  std::array<cudaEvent_t, kSlots> read = {};
  size_t next = 0;

  ~State() {
    for (cudaEvent_t e : read) {
      if (e != nullptr) (void)cudaEventDestroy(e);
    }
    if (memory != nullptr) (void)cudaFreeHost(memory);
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
  }
};

WorkStream::WorkStream() : state_(std::make_unique<State>()) {
  State& s = *state_;
  check(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "a stream");
  check(cudaMallocHost(&s.memory, State::kSlots * State::kSlotBytes), "pinned memory");
  for (cudaEvent_t& e : s.read) {
    check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "an event");
  }
}
WorkStream::WorkStream(NoDevice) {}
WorkStream::~WorkStream() = default;

Stream WorkStream::get() const { return state_->stream; }

void WorkStream::upload(void* to, const void* from, int64_t bytes) {
  State& s = *state_;
  const auto size = static_cast<size_t>(bytes);
  if (bytes > State::kSlotBytes) {
    check(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, s.stream),
          "a copy to the device");
    // A copy from pageable memory has usually read its source on return, but there is no guarantee.
    return synchronize(s.stream);
  }
  const size_t slot = s.next++ % State::kSlots;
  check(cudaEventSynchronize(s.read[slot]), "a copy to the device");
  void* const staged = s.memory + slot * State::kSlotBytes;
  std::memcpy(staged, from, size);
  check(cudaMemcpyAsync(to, staged, size, cudaMemcpyHostToDevice, s.stream),
        "a copy to the device");
  check(cudaEventRecord(s.read[slot], s.stream), "an event");
}

void fill_zero(void* to, int64_t bytes, Stream stream) {
  check(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), stream), "a fill with zeros");
}

void fill_ones(void* to, int64_t bytes, Stream stream) {
  check(cudaMemsetAsync(to, 0xff, static_cast<size_t>(bytes), stream), "a fill with ones");
}

void download(void* to, const void* from, int64_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream),
        "a copy from the device");
  synchronize(stream);
}

void synchronize(Stream stream) { check(cudaStreamSynchronize(stream), "pending work"); }

void check(device::LaunchStatus status, const char* what) {
  if (status.ok()) return;
  require(status.code != device::LaunchStatus::kRefused, status.message);
  throw Error::fault(ExitCode::device, what, std::string("launch failed: ") + status.message,
                     "build for this GPU's architecture, or report it");
}

struct CapturedGraph::State {
  cudaGraphExec_t executable = nullptr;
  ~State() {
    if (executable != nullptr) (void)cudaGraphExecDestroy(executable);
  }
};

CapturedGraph::CapturedGraph() : state_(std::make_unique<State>()) {}
CapturedGraph::~CapturedGraph() = default;
CapturedGraph::CapturedGraph(CapturedGraph&&) noexcept = default;
CapturedGraph& CapturedGraph::operator=(CapturedGraph&&) noexcept = default;

void CapturedGraph::begin(Stream stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
        "the begin of a recording");
}

void CapturedGraph::end(Stream stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "the end of a recording");
  const cudaError_t error = cudaGraphInstantiate(&state_->executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(error, "an executable recording");
}

void CapturedGraph::give_up(Stream stream) {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}

void CapturedGraph::replay(Stream stream) const {
  require(state_->executable != nullptr, "a recording before its replay");
  check(cudaGraphLaunch(state_->executable, stream), "the replay of a recording");
}

}  // namespace bamtrain::cuda
