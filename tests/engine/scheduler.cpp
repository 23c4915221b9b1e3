// Threads, warps, the barrier, and the rendezvous of collectives.

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/checker.h"
#include "engine/state.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace bamtrain::engine {

Machine machine;
const Coordinates* running = nullptr;

namespace {

Options launch_options;  // of the running launch: options() may change only between launches
Counters counted;

inline uint32_t pick(uint32_t set) {
  switch (launch_options.lanes) {
    case Order::ascending:
      return static_cast<uint32_t>(std::countr_zero(set));
    case Order::descending:
      return 31u - static_cast<uint32_t>(std::countl_zero(set));
    case Order::random:
      break;
  }
  for (auto skip = next_random() % static_cast<uint64_t>(std::popcount(set)); skip > 0; --skip) {
    set &= set - 1;
  }
  return static_cast<uint32_t>(std::countr_zero(set));
}

/// Round robin from the current warp, in the order of the options.
uint32_t next_warp(uint32_t can_run) {
  const uint32_t lower = (1u << machine.current_warp) - 1;
  const uint32_t higher = ~(lower << 1 | 1u);
  const uint32_t preferred = launch_options.lanes == Order::ascending    ? can_run & higher
                             : launch_options.lanes == Order::descending ? can_run & lower
                                                                         : can_run;
  return pick(preferred != 0 ? preferred : can_run);
}

Thread* next_thread() {
  uint32_t warp = machine.current_warp;
  if (launch_options.alternate_warps || machine.warps[warp].ready == 0) {
    uint32_t can_run = 0;
    for (uint32_t w = 0; w < machine.warp_count; ++w) {
      can_run |= static_cast<uint32_t>(machine.warps[w].ready != 0) << w;
    }
    if (can_run == 0) return nullptr;
    warp = launch_options.alternate_warps ? next_warp(can_run) : pick(can_run);
    machine.current_warp = warp;
  }
  const uint32_t lane = pick(machine.warps[warp].ready);
  machine.warps[warp].ready &= ~(1u << lane);
  return &machine.threads[warp * kLanes + lane];
}

void release_barrier() {
  ++counted.barriers;
  machine.barrier.arrived = 0;
  for (uint32_t w = 0; w < machine.warp_count; ++w) {
    machine.warps[w].ready |= machine.barrier.lanes[w];
    machine.barrier.lanes[w] = 0;
  }
  checker::at_barrier();
}

/// Fails because a thread has returned while others wait at the barrier, or vice versa.
[[noreturn]] void fail_returned(const Thread& thread, Place at) {
  fail(FaultKind::divergent_barrier, thread, at, "every thread of the block at this barrier",
       "threads that have returned");
}

void thread_main() {
  Thread& thread = self();
  machine.in_engine = false;
  try {
    machine.entry(machine.arguments);
  } catch (...) {
    machine.exception = std::current_exception();
  }
  machine.in_engine = true;
  if (machine.exception) switch_context(thread.context, machine.launcher);
  if (!thread.copies.empty()) {
    fail(FaultKind::unfinished_copy, thread, thread.copies.front().at,
         "a wait for this asynchronous copy before the thread returns", "none");
  }
  thread.wait = Wait::returned;
  --machine.live;
  machine.warps[thread.warp].live &= ~(1u << thread.lane);
  if (machine.barrier.arrived > 0) fail_returned(thread, machine.barrier.where);
  leave();
  std::terminate();  // a returned thread does not run again
}

void map_stacks(uint32_t count) {
  const size_t stride = kStackBytes + kStackGuard;
  if (machine.stacks == nullptr) {
    void* pages = mmap(nullptr, kMaxThreads * stride, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(pages != MAP_FAILED, "address space for the stacks of a block");
    machine.stacks = static_cast<char*>(pages);
    machine.threads.resize(kMaxThreads);
  }
  for (; machine.stacks_mapped < count; ++machine.stacks_mapped) {
    const size_t i = machine.stacks_mapped;
    Thread& thread = machine.threads[i];
    thread.bottom = machine.stacks + i * stride + kStackGuard;
    // Staggered: with equal offsets, the hot ends of all stacks would share a few cache sets.
    thread.top = thread.bottom + kStackBytes - i * 7 % 64 * 64;
    require(mprotect(thread.bottom, kStackBytes, PROT_READ | PROT_WRITE) == 0,
            "memory for the stacks of a block");
  }
}

void run_block(Index grid, Index block, Index index) {
  machine.live = machine.thread_count;
  machine.current_warp = 0;
  machine.barrier = {};
  for (uint32_t w = 0; w < machine.warp_count; ++w) machine.warps[w].ready = 0;
  for (uint32_t i = 0; i < machine.thread_count; ++i) {
    Thread& t = machine.threads[i];
    t.at = {{i % block.x, i / block.x % block.y, i / block.x / block.y}, index, block, grid};
    t.number = i;
    t.lane = i % kLanes;
    t.warp = i / kLanes;
    t.wait = Wait::none;
    t.copies.clear();
    t.groups = 0;
#ifdef __SANITIZE_ADDRESS__
    // A thread that was stopped by a fault has left its frames' red zones.
    __asan_unpoison_memory_region(t.bottom, kStackBytes);
#endif
    prepare(t.context, t.bottom, t.top, thread_main);
    machine.warps[t.warp].ready |= 1u << t.lane;
  }
  for (uint32_t w = 0; w < machine.warp_count; ++w) {
    machine.warps[w].live = machine.warps[w].ready;
    machine.warps[w].open = 0;
  }
  ++counted.blocks;
  checker::at_block();

  Thread* first = next_thread();
  running = &first->at;
  machine.in_kernel = machine.in_engine = true;
  switch_context(machine.launcher, first->context);
  const Thread& last = self();
  running = nullptr;
  machine.in_kernel = machine.in_engine = false;
  if (machine.exception) std::rethrow_exception(std::exchange(machine.exception, nullptr));
  if (has_report()) throw take_report(last);
}

}  // namespace

Options& options() {
  static Options current;
  return current;
}

Counters& counters() { return counted; }

uint64_t next_random() {
  machine.random ^= machine.random << 13;
  machine.random ^= machine.random >> 7;
  machine.random ^= machine.random << 17;
  return machine.random;
}

void leave() {
  Thread& from = self();
  Thread* to = next_thread();
  if (to == &from) return;
  ++counted.switches;
  if (to != nullptr) {
    running = &to->at;
    return switch_context(from.context, to->context);
  }
  if (machine.live == 0) return switch_context(from.context, machine.launcher);
  const bool at_barrier = machine.barrier.arrived > 0;
  const Thread* waits = &from;
  for (uint32_t i = 0; i < machine.thread_count && waits->wait != Wait::collective; ++i) {
    if (machine.threads[i].wait == Wait::collective) waits = &machine.threads[i];
  }
  fail(at_barrier ? FaultKind::divergent_barrier : FaultKind::divergent_collective, *waits,
       waits->where, "all threads that it is for, in the same " + std::string(waits->what),
       "no thread that can run");
}

namespace {

// Separate from collective(), whose frame stays small: kernels spend most of their time in it.
[[noreturn]] void fail_mask(const Thread& thread, const Warp& warp, uint32_t mask, const char* what,
                            Place at) {
  if ((mask >> thread.lane & 1) == 0) {
    fail(FaultKind::divergent_collective, thread, at, "a mask that names the calling lane",
         what + (" with mask " + hex(mask) + " in lane " + std::to_string(thread.lane)));
  }
  fail(FaultKind::divergent_collective, thread, at, "every lane of the mask in this call",
       what + (" with mask " + hex(mask) + ", of which " + hex(mask & ~warp.live) +
               " have returned or do not exist"));
}

[[noreturn]] void fail_divergent(const Thread& thread, const Rendezvous& other, uint32_t mask,
                                 const char* what, Place at) {
  fail(FaultKind::divergent_collective, thread, at, "every lane of the mask in this call",
       what + (" with mask " + hex(mask) + ", and lanes " + hex(other.arrived) + " in " +
               other.what + " with mask " + hex(other.mask) + " at " + other.where.file + ":" +
               std::to_string(other.where.line)));
}

}  // namespace

void barrier(Place at) {
  const EngineScope inside;
  Thread& thread = self();
  Barrier& b = machine.barrier;
  if (machine.live < machine.thread_count) fail_returned(thread, at);
  if (b.arrived == 0) {
    b.where = at;
  } else if (!same_place(b.where, at)) {
    fail(FaultKind::divergent_barrier, thread, at, "every thread of the block at this barrier",
         "threads at the one at " + std::string(b.where.file) + ":" + std::to_string(b.where.line));
  }
  ++b.arrived;
  b.lanes[thread.warp] |= 1u << thread.lane;
  thread.wait = Wait::barrier;
  thread.what = "barrier";
  thread.where = at;
  if (b.arrived == machine.thread_count) release_barrier();
  leave();
  thread.wait = Wait::none;
}

void collective(Execute execute, void* operand, uint32_t mask, const char* what, Place at,
                const void* called_from) {
  Thread& thread = self();
  Warp& warp = machine.warps[thread.warp];
  const uint32_t own = 1u << thread.lane;
  if ((mask & own) == 0 || (mask & ~warp.live) != 0) fail_mask(thread, warp, mask, what, at);
  Rendezvous* r = nullptr;
  for (uint32_t i = 0; i < warp.open; ++i) {
    Rendezvous& other = warp.collectives[i];
    if ((other.mask & mask) == 0) continue;
    if (other.mask != mask || other.execute != execute || !same_place(other.where, at)) {
      fail_divergent(thread, other, mask, what, at);
    }
    r = &other;
    break;
  }
  if (r == nullptr) {
    r = &warp.collectives[warp.open++];
    r->mask = mask;
    r->arrived = 0;
    r->execute = execute;
    r->what = what;
    r->where = at;
  }
  r->operands[thread.lane] = operand;
  r->arrived |= own;
  if (r->arrived != mask) {
    thread.wait = Wait::collective;
    thread.what = what;
    thread.where = at;
    leave();
    thread.wait = Wait::none;
    return;
  }
  ++counted.collectives;
  execute(r->operands, mask, called_from);
  const Rendezvous& last = warp.collectives[--warp.open];
  if (r != &last) *r = last;
  warp.ready |= mask & ~own;
}

const char* run(Index grid, Index block, size_t dynamic_bytes, void (*entry)(void*),
                void* arguments, size_t argument_bytes) {
  require(running == nullptr, "a launch outside kernels");
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads || block.z > 64) return "invalid block size";
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  if (blocks == 0 || grid.x > 0x7FFFFFFFu || grid.y > 65535 || grid.z > 65535) {
    return "invalid grid size";
  }
  launch_options = options();
  if (dynamic_bytes > launch_options.shared_capacity) return "too much dynamic shared memory";
  machine.thread_count = static_cast<uint32_t>(threads);
  machine.warp_count = (machine.thread_count + kLanes - 1) / kLanes;
  machine.entry = entry;
  machine.arguments = arguments;
  machine.argument_bytes = argument_bytes;
  machine.random = launch_options.seed * 0x9E3779B97F4A7C15u | 1;
  map_stacks(machine.thread_count);

  std::vector<uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (launch_options.blocks == Order::descending) std::reverse(order.begin(), order.end());
  if (launch_options.blocks == Order::random) {
    for (uint64_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[next_random() % i]);
  }

  const SignalGuard signals;
  checker::at_launch();
  for (const uint64_t b : order) {
    reset_shared(dynamic_bytes);
    run_block(grid, block,
              {static_cast<uint32_t>(b % grid.x), static_cast<uint32_t>(b / grid.x % grid.y),
               static_cast<uint32_t>(b / grid.x / grid.y)});
    verify_shared_red_zones();
  }
  verify_guard_zones();
  return nullptr;
}

std::vector<Options> schedules() {
  std::vector<Options> all;
  uint64_t seed = 1;
  for (const Order order : {Order::ascending, Order::descending, Order::random}) {
    for (const bool alternate : {false, true}) {
      for (const Completion copies : {Completion::eager, Completion::lazy, Completion::random}) {
        Options o;
        o.lanes = o.blocks = order;
        o.alternate_warps = alternate;
        o.copies = copies;
        o.seed = seed++;
        all.push_back(o);
      }
    }
  }
  return all;
}

}  // namespace bamtrain::engine
