// The CUDA backend's runtime, for the engine: memory that the checker knows, transfers by
// assignment, recorded work as a list of calls.

#include "ops/cuda/runtime.h"

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "engine/calls.h"
#include "engine/engine.h"

namespace bamtrain {

namespace engine {

namespace {
std::vector<std::function<void()>>* recorded = nullptr;  // null unless recording
}

int64_t free_bytes = int64_t{1} << 30;

bool recording() { return recorded != nullptr; }
void record(std::function<void()> work) { recorded->push_back(std::move(work)); }

}  // namespace engine

namespace cuda {

namespace {

/// Fails if a device would refuse the call while it records.
void require_no_recording() {
  require(!engine::recording(), "no transfer, allocation or wait while work is recorded");
}

}  // namespace

/// A machine with one device per process of the tests.
int device_count() { return 8; }

std::string open_device(int index) {
  require(index >= 0 && index < device_count(), "a device of the engine");
  return "the CPU engine";
}

void* allocate(int64_t bytes) {
  require_no_recording();
  return engine::global_allocate(static_cast<size_t>(bytes), engine::GlobalFill::zeros);
}
void release(void* memory) { engine::global_free(memory); }
int64_t free_memory() { return engine::free_bytes; }

struct WorkStream::State {};
WorkStream::WorkStream() = default;
WorkStream::WorkStream(NoDevice) {}
WorkStream::~WorkStream() = default;
Stream WorkStream::get() const { return nullptr; }
void WorkStream::upload(void* to, const void* from, int64_t bytes) {
  require_no_recording();
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

namespace {
void fill(void* to, int byte, int64_t bytes) {
  const auto work = [=] { std::memset(to, byte, static_cast<size_t>(bytes)); };
  if (engine::recording()) {
    engine::record(work);
  } else {
    work();
  }
}
}  // namespace

void fill_zero(void* to, int64_t bytes, Stream) { fill(to, 0, bytes); }
void fill_ones(void* to, int64_t bytes, Stream) { fill(to, 0xff, bytes); }

void download(void* to, const void* from, int64_t bytes, Stream) {
  require_no_recording();
  std::memcpy(to, from, static_cast<size_t>(bytes));
}
void synchronize(Stream) { require_no_recording(); }

void check(device::LaunchStatus status, const char* what) {
  require(status.ok(), (std::string(what) + ": " + status.message).c_str());
}

struct CapturedGraph::State {
  std::vector<std::function<void()>> work;
};

CapturedGraph::CapturedGraph() : state_(std::make_unique<State>()) {}
CapturedGraph::~CapturedGraph() = default;
CapturedGraph::CapturedGraph(CapturedGraph&&) noexcept = default;
CapturedGraph& CapturedGraph::operator=(CapturedGraph&&) noexcept = default;

void CapturedGraph::begin(Stream) {
  require(!engine::recording() && state_->work.empty(), "one recording at a time");
  engine::recorded = &state_->work;
}
void CapturedGraph::end(Stream) { engine::recorded = nullptr; }
void CapturedGraph::give_up(Stream) {
  engine::recorded = nullptr;
  state_->work.clear();
}
void CapturedGraph::replay(Stream) const {
  require(!state_->work.empty(), "a recording before its replay");
  for (const auto& work : state_->work) work();
}

}  // namespace cuda
}  // namespace bamtrain
