#pragma once
// Kernels with one fault each, in the line that ends in `FAULT`. The tests use the mark to find the
// line that a report must name. All kernels take blocks of 64 threads, 1,024 bytes of dynamic
// shared memory, and a buffer `x` of 128 words.

#include "kernels/device.cuh"

namespace bamtrain::fault_kernels {

BAMTRAIN_DEVICE int thread() { return static_cast<int>(device::thread_index().x); }
BAMTRAIN_DEVICE int block() { return static_cast<int>(device::block_index().x); }

#define BAMTRAIN_WORDS(name)           \
  BAMTRAIN_DYNAMIC_SHARED(raw_##name); \
  auto* name = reinterpret_cast<uint32_t*>(raw_##name)

struct alignas(16) Words4 {
  uint32_t x, y, z, w;
};

// Seen in every build -----------------------------------------------------------------------------

BAMTRAIN_KERNEL barrier_in_a_branch(uint32_t*) {
  if (thread() < 32) {
    device::barrier();  // FAULT
  }
}
BAMTRAIN_KERNEL two_barriers(uint32_t*) {
  if (thread() == 7) {
    device::barrier();
  } else {
    device::barrier();  // FAULT
  }
}
BAMTRAIN_KERNEL barrier_against_shuffle(uint32_t* x) {
  if (thread() < 10) {
    device::barrier();
  } else {
    x[thread()] = device::shuffle_xor(device::kWholeWarp, 1u, 1);  // FAULT
  }
}
BAMTRAIN_KERNEL shuffle_in_a_branch(uint32_t* x) {
  if (thread() % 32 < 30) {
    x[thread()] = device::shuffle_xor(device::kWholeWarp, 1u, 2);  // FAULT
  }
}
BAMTRAIN_KERNEL masks_that_overlap(uint32_t* x) {
  const uint32_t mask = thread() % 32 < 16 ? 0x0001FFFFu : 0xFFFF0000u;
  x[thread()] = device::ballot(mask, true);  // FAULT
}
BAMTRAIN_KERNEL caller_outside_mask(uint32_t* x) {
  x[thread()] = device::ballot(0x0000FFFFu, true);  // FAULT
}
BAMTRAIN_KERNEL source_outside_mask(uint32_t* x) {
  const uint32_t half = thread() % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  x[thread()] = device::shuffle(half, 1u, 16);  // FAULT
}
BAMTRAIN_KERNEL address_of_global(uint32_t* x) {
  x[0] = device::shared_address(x);  // FAULT
}
BAMTRAIN_KERNEL copy_without_wait(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  device::copy_async_16(device::shared_address(s), x);  // FAULT
  device::copy_async_commit();
}
BAMTRAIN_KERNEL ldmatrix_past_the_end(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  for (int i = thread(); i < 256; i += 64) s[i] = 0;
  device::barrier();
  uint32_t r[1];
  device::ldmatrix(r, device::shared_address(s + 240 + thread() % 8 * 4));  // FAULT
  x[thread()] = r[0];
}
BAMTRAIN_KERNEL ldmatrix_misaligned(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  for (int i = thread(); i < 256; i += 64) s[i] = 0;
  device::barrier();
  uint32_t r[1];
  device::ldmatrix(r, device::shared_address(s + thread() % 8 * 2));  // FAULT
  x[thread()] = r[0];
}
BAMTRAIN_KERNEL copy_misaligned(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  device::copy_async_16(device::shared_address(s), x + 1);  // FAULT
  device::copy_async_wait<0>();
}
BAMTRAIN_KERNEL far_past_the_end(uint32_t* x) {
  x[thread() + 65536] = 1;  // FAULT
}
BAMTRAIN_KERNEL exhausted_shared(uint32_t* x) {
  BAMTRAIN_SHARED(uint32_t, much, 60000);  // FAULT
  x[0] = much[0];
}

// Seen after the launch, without a line -----------------------------------------------------------

BAMTRAIN_KERNEL just_before_the_start(uint32_t* x) {
  if (thread() == 0) x[-1] = 1;  // FAULT
}
BAMTRAIN_KERNEL shared_past_the_end(uint32_t*) {
  BAMTRAIN_WORDS(s);
  if (thread() == 63) s[thread() + 193] = 1;  // FAULT
}

// Seen by the checker -----------------------------------------------------------------------------

BAMTRAIN_KERNEL no_barrier(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  s[thread()] = 0;
  device::barrier();
  s[thread()] = 1;
  x[thread()] = s[63 - thread()];  // FAULT
}
BAMTRAIN_KERNEL no_barrier_before_overwriting(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  s[thread()] = 1;
  device::barrier();
  x[thread()] = s[63 - thread()];
  s[thread()] = 2;  // FAULT
}
BAMTRAIN_KERNEL two_writers(uint32_t*) {
  BAMTRAIN_WORDS(s);
  s[thread() / 2] = static_cast<uint32_t>(thread());  // FAULT
}
BAMTRAIN_KERNEL no_sync_in_the_warp(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  s[thread()] = 1;
  const uint32_t ignored = device::ballot(device::kWholeWarp, true);
  x[thread()] = s[thread() ^ 1] + ignored;  // FAULT
}
BAMTRAIN_KERNEL sync_of_the_wrong_half(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  s[thread()] = 0;
  device::barrier();
  s[thread()] = 1;
  device::sync_warp(thread() % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u);
  x[thread()] = s[thread() ^ 16];  // FAULT
}
BAMTRAIN_KERNEL race_in_global_memory(uint32_t* x) {
  x[thread()] = x[thread() ^ 32];  // FAULT
}
BAMTRAIN_KERNEL ldmatrix_before_barrier(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  for (int i = thread(); i < 256; i += 64) s[i] = 0;
  uint32_t r[4];
  device::ldmatrix(r, device::shared_address(s + thread() % 32 * 4));  // FAULT
  x[thread()] = r[0];
}
BAMTRAIN_KERNEL never_written(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  if (thread() != 5) s[thread()] = 1;
  device::barrier();
  x[thread()] = s[63 - thread()];  // FAULT
}
BAMTRAIN_KERNEL written_by_an_earlier_block(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  if (block() == 0) s[thread()] = 1;
  x[block() * 64 + thread()] = s[thread()];  // FAULT
}
BAMTRAIN_KERNEL read_before_wait(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  device::copy_async_16(device::shared_address(s + thread() * 4), x);
  device::copy_async_commit();
  x[thread() + 64] = s[thread() * 4];  // FAULT
  device::copy_async_wait<0>();
}
BAMTRAIN_KERNEL wait_for_too_few(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  device::copy_async_16(device::shared_address(s + thread() * 4), x);
  device::copy_async_commit();
  device::copy_async_wait<1>();
  device::barrier();
  x[thread() + 64] = s[252 - thread() * 4];  // FAULT
  device::copy_async_wait<0>();
}
BAMTRAIN_KERNEL copy_over_what_is_read(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  for (int i = thread(); i < 256; i += 64) s[i] = 0;
  device::barrier();
  x[thread() + 64] = s[252 - thread() * 4];
  device::copy_async_16(device::shared_address(s + thread() * 4), x);  // FAULT
  device::copy_async_commit();
  device::copy_async_wait<0>();
}
BAMTRAIN_KERNEL no_barrier_after_wait(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  for (int i = thread(); i < 256; i += 64) s[i] = 0;
  device::barrier();
  device::copy_async_16(device::shared_address(s + thread() * 4), x);
  device::copy_async_commit();
  device::copy_async_wait<0>();
  x[thread() + 64] = s[252 - thread() * 4];  // FAULT
}
BAMTRAIN_KERNEL one_past_the_end(uint32_t* x) {
  x[thread()] = x[65 + thread()];  // FAULT
}
BAMTRAIN_KERNEL one_before_the_start(uint32_t* x) {
  if (thread() == 0) x[0] = x[-1];  // FAULT
}
BAMTRAIN_KERNEL copy_past_the_end(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  const device::SharedAddress to = device::shared_address(s + thread() * 4);
  device::copy_async_16(to, x + thread() * 4);  // FAULT
  device::copy_async_commit();
  device::copy_async_wait<0>();
}
BAMTRAIN_KERNEL one_past_shared(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  x[thread()] = s[256];  // FAULT
}
BAMTRAIN_KERNEL between_two_arrays(uint32_t* x) {
  BAMTRAIN_SHARED(uint32_t, first, 64);
  BAMTRAIN_SHARED(uint32_t, second, 64);
  second[thread()] = 1;
  uint32_t* following = first + 1;
  following[thread()] = 1;  // FAULT
  x[thread()] = second[thread()];
}
/// Compiled without the compiler's own alignment check, which would come first.
BAMTRAIN_KERNEL __attribute__((no_sanitize("alignment"))) word_misaligned(uint32_t* x) {
  const auto bytes = reinterpret_cast<uintptr_t>(x);
  *reinterpret_cast<uint32_t*>(bytes + 2) = 1;  // FAULT
}
BAMTRAIN_KERNEL vector_misaligned(uint32_t* x) {
  BAMTRAIN_WORDS(s);
  for (int i = thread(); i < 256; i += 64) s[i] = 0;
  device::barrier();
  const auto v = *reinterpret_cast<const Words4*>(s + 2 + thread());  // FAULT
  x[thread()] = v.x;
}
BAMTRAIN_KERNEL two_blocks_write(uint32_t* x) {
  x[thread()] = static_cast<uint32_t>(block());  // FAULT
}
BAMTRAIN_KERNEL one_block_reads(uint32_t* x) {
  x[64 * block() + thread()] = x[64 * (1 - block()) + thread()];  // FAULT
}
BAMTRAIN_KERNEL memory_of_the_host(uint32_t* x) {
  static uint32_t of_the_host;
  x[thread()] = of_the_host;
  of_the_host = 1;  // FAULT
}
BAMTRAIN_KERNEL shift_too_far(uint32_t* x) {
  x[thread()] = 1u << thread();  // FAULT
}
BAMTRAIN_KERNEL register_array_overrun(uint32_t* x) {
  uint32_t registers[4] = {1, 2, 3, 4};
  x[thread()] = registers[(thread() % 2) * 4];  // FAULT
}

#undef BAMTRAIN_WORDS

}  // namespace bamtrain::fault_kernels
