// From a violated rule to the exception that the launch throws.

#include <signal.h>

#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "engine/state.h"
#include "engine/symbols.h"

namespace bamtrain::engine {

namespace {

constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};

struct Interruption {
  int signal = 0;
  const void* instruction = nullptr;
  const char* address = nullptr;
};
Interruption interruption;

std::array<struct sigaction, kSignals.size()> previous_actions;
stack_t previous_stack;
alignas(16) std::array<char, 64 * 1024> signal_stack;  // a full stack has no room for a handler

void on_signal(int signal, siginfo_t* info, void* context) {
  if (!machine.in_kernel || running == nullptr) {  // not caused by a kernel
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (kSignals[i] == signal) sigaction(signal, &previous_actions[i], nullptr);
    }
    return;  // retries the instruction
  }
  interruption = {signal, interrupted_instruction(context),
                  static_cast<const char*>(info->si_addr)};
  resume_after_signal(context, machine.launcher);
}

std::string triple(const Index& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

std::string line_of(const Place& place) {
  return std::string(place.file) + ":" + std::to_string(place.line);
}

/// What each lane of the block is doing, for faults of threads that wait for each other.
std::string where_everybody_is() {
  std::string text;
  for (uint32_t w = 0; w < machine.warp_count; ++w) {
    std::map<std::string, uint32_t> lanes;
    for (uint32_t l = 0; l < kLanes && w * kLanes + l < machine.thread_count; ++l) {
      const Thread& t = machine.threads[w * kLanes + l];
      std::string doing = "can run";
      if (t.wait == Wait::returned) doing = "returned";
      if (t.wait == Wait::barrier || t.wait == Wait::collective) {
        doing = std::string("wait in ") + t.what + " at " + line_of(t.where);
      }
      lanes[doing] |= 1u << l;
    }
    for (const auto& [doing, mask] : lanes) {
      text += "\n  warp " + std::to_string(w) + ", lanes " + hex(mask) + ": " + doing;
    }
  }
  return text;
}

Fault fault_of_signal(const Interruption& what, const Thread& thread) {
  const std::string who =
      " in block " + triple(thread.at.block) + ", thread " + triple(thread.at.thread);
  const auto* after = static_cast<const char*>(what.instruction) + 1;
  const std::string where = source_line(after) + who;
  if (what.signal != SIGSEGV && what.signal != SIGBUS) {
    return {
        FaultKind::undefined_behaviour, where, "defined behaviour",
        what.signal == SIGFPE ? "an integer division by zero" : "a trap of the compiler's checks"};
  }
  if (what.address >= thread.bottom - kStackGuard && what.address < thread.bottom) {
    return {FaultKind::misuse, where, "a thread that fits its stack", "an overflow of the stack"};
  }
  return {FaultKind::global_bounds, where, "an address inside a buffer",
          "an access at " + hex(reinterpret_cast<uintptr_t>(what.address)) +
              describe_global(what.address)};
}

}  // namespace

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::divergent_barrier:
      return "divergent barrier";
    case FaultKind::divergent_collective:
      return "divergent collective";
    case FaultKind::shuffle_source:
      return "shuffle source";
    case FaultKind::misuse:
      return "misuse";
    case FaultKind::unfinished_copy:
      return "unfinished copy";
    case FaultKind::shared_bounds:
      return "shared memory bounds";
    case FaultKind::global_bounds:
      return "global memory bounds";
    case FaultKind::foreign_memory:
      return "foreign memory";
    case FaultKind::misaligned:
      return "misaligned access";
    case FaultKind::uninitialised:
      return "uninitialised shared memory";
    case FaultKind::pending_copy:
      return "pending copy";
    case FaultKind::race:
      return "race in a block";
    case FaultKind::block_race:
      return "race between blocks";
    case FaultKind::undefined_behaviour:
      return "undefined behaviour";
  }
  return "?";
}

std::string hex(uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

void fail(FaultKind kind, const Thread& thread, Place place, const std::string& expected,
          const std::string& found) {
  machine.report.reset(new Report{kind, &thread, place, nullptr, expected, found, nullptr});
  switch_context(self().context, machine.launcher);
  std::terminate();
}

void fail_at(FaultKind kind, const Thread& thread, const void* pc, const std::string& expected,
             const std::string& found, const void* other_pc) {
  machine.report.reset(new Report{kind, &thread, {}, pc, expected, found, other_pc});
  switch_context(self().context, machine.launcher);
  std::terminate();
}

bool has_report() { return machine.report != nullptr || interruption.signal != 0; }

Fault take_report(const Thread& last) {
  if (interruption.signal != 0) return fault_of_signal(std::exchange(interruption, {}), last);
  const std::unique_ptr<Report> r = std::exchange(machine.report, nullptr);
  std::string found = r->found;
  if (r->other_pc != nullptr) found += " at " + source_line(r->other_pc);
  if (r->kind == FaultKind::divergent_barrier || r->kind == FaultKind::divergent_collective) {
    found += where_everybody_is();
  }
  return {r->kind,
          (r->pc != nullptr ? source_line(r->pc) : line_of(r->place)) + " in block " +
              triple(r->thread->at.block) + ", thread " + triple(r->thread->at.thread),
          r->expected, std::string(name_of(r->kind)) + ": " + found};
}

SignalGuard::SignalGuard() {
  stack_t stack = {};
  stack.ss_sp = signal_stack.data();
  stack.ss_size = signal_stack.size();
  sigaltstack(&stack, &previous_stack);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &previous_actions[i]);
  }
}

SignalGuard::~SignalGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
  sigaltstack(&previous_stack, nullptr);
}

}  // namespace bamtrain::engine
