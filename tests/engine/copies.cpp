// Asynchronous copies: issued, grouped, waited for.

#include <cstring>

#include "engine/checker.h"
#include "engine/state.h"

namespace bamtrain::engine {

namespace {

constexpr size_t kBytes = 16;

void complete(Copy& copy) {
  char* to = machine.arena + (copy.to - kSharedBase);
  if (copy.wanted) {
    std::memcpy(to, copy.from, kBytes);
  } else {
    std::memset(to, 0, kBytes);
  }
  copy.done = true;
}

}  // namespace

void copy_async_16(uint32_t to, const void* from, bool wanted, Place at) {
  const void* issued = __builtin_return_address(0);
  const EngineScope inside;
  Thread& thread = self();
  shared_bytes(to, kBytes, thread, at, "an asynchronous copy");
  if (reinterpret_cast<uintptr_t>(from) % kBytes != 0) {
    fail(FaultKind::misaligned, thread, at, "a source at a multiple of 16 bytes",
         "one at " + hex(reinterpret_cast<uintptr_t>(from)));
  }
  Copy copy = {to, from, wanted, false, thread.groups, at, issued};
  checker::at_copy_issued(thread, copy);
  const Completion when = options().copies;
  if (when == Completion::eager || (when == Completion::random && (next_random() & 1) != 0)) {
    complete(copy);
  }
  thread.copies.push_back(copy);
}

void copy_async_commit() { ++self().groups; }

void copy_async_wait(int left) {
  const EngineScope inside;
  Thread& thread = self();
  size_t kept = 0;
  for (Copy& copy : thread.copies) {
    // The open group has the number thread.groups. Of the groups before it, the latest `left` may
    // remain pending.
    const bool waited = copy.group + static_cast<uint32_t>(left) < thread.groups;
    if (!waited) {
      thread.copies[kept++] = copy;
      continue;
    }
    if (!copy.done) complete(copy);
    checker::at_copy_done(thread, copy);
  }
  thread.copies.resize(kept);
}

}  // namespace bamtrain::engine
