// Every kernel of fault_kernels.cuh is reported with its kind, and with its line where the engine
// can know it. Compiled twice: with the checker's instrumentation all faults must be reported,
// without it those that the engine detects alone.

#include <cctype>
#include <fstream>

#include "catch.h"
#include "engine/checker.h"
#include "engine/fault_kernels.cuh"
#include "engine/support.h"
#include "engine/symbols.h"
#include "engine/test_kernels.cuh"

using namespace bamtrain;
using namespace bamtrain::engine;

namespace {

enum class Seen {
  always,          // by the engine, with its line
  by_instruction,  // by the processor: the line comes from the instruction's address
  after_launch,    // without the checker only after the launch, without a line
  checked          // by the checker
};

struct Planted {
  const char* name;
  void (*kernel)(uint32_t*);
  FaultKind kind;
  Seen seen;
};

#define BAMTRAIN_PLANTED(name, kind, seen) \
  { #name, fault_kernels::name, FaultKind::kind, Seen::seen }

const std::vector<Planted> kPlanted = {
    BAMTRAIN_PLANTED(barrier_in_a_branch, divergent_barrier, always),
    BAMTRAIN_PLANTED(two_barriers, divergent_barrier, always),
    BAMTRAIN_PLANTED(barrier_against_shuffle, divergent_barrier, always),
    BAMTRAIN_PLANTED(shuffle_in_a_branch, divergent_collective, always),
    BAMTRAIN_PLANTED(masks_that_overlap, divergent_collective, always),
    BAMTRAIN_PLANTED(caller_outside_mask, divergent_collective, always),
    BAMTRAIN_PLANTED(source_outside_mask, shuffle_source, always),
    BAMTRAIN_PLANTED(address_of_global, misuse, always),
    BAMTRAIN_PLANTED(exhausted_shared, misuse, always),
    BAMTRAIN_PLANTED(copy_without_wait, unfinished_copy, always),
    BAMTRAIN_PLANTED(ldmatrix_past_the_end, shared_bounds, always),
    BAMTRAIN_PLANTED(ldmatrix_misaligned, misaligned, always),
    BAMTRAIN_PLANTED(copy_misaligned, misaligned, always),
    BAMTRAIN_PLANTED(far_past_the_end, global_bounds, by_instruction),
    BAMTRAIN_PLANTED(just_before_the_start, global_bounds, after_launch),
    BAMTRAIN_PLANTED(shared_past_the_end, shared_bounds, after_launch),
    BAMTRAIN_PLANTED(no_barrier, race, checked),
    BAMTRAIN_PLANTED(no_barrier_before_overwriting, race, checked),
    BAMTRAIN_PLANTED(two_writers, race, checked),
    BAMTRAIN_PLANTED(no_sync_in_the_warp, race, checked),
    BAMTRAIN_PLANTED(sync_of_the_wrong_half, race, checked),
    BAMTRAIN_PLANTED(race_in_global_memory, race, checked),
    BAMTRAIN_PLANTED(ldmatrix_before_barrier, race, checked),
    BAMTRAIN_PLANTED(never_written, uninitialised, checked),
    BAMTRAIN_PLANTED(written_by_an_earlier_block, uninitialised, checked),
    BAMTRAIN_PLANTED(read_before_wait, pending_copy, checked),
    BAMTRAIN_PLANTED(wait_for_too_few, pending_copy, checked),
    BAMTRAIN_PLANTED(copy_over_what_is_read, race, checked),
    BAMTRAIN_PLANTED(no_barrier_after_wait, race, checked),
    BAMTRAIN_PLANTED(one_past_the_end, global_bounds, checked),
    BAMTRAIN_PLANTED(one_before_the_start, global_bounds, checked),
    BAMTRAIN_PLANTED(copy_past_the_end, global_bounds, checked),
    BAMTRAIN_PLANTED(one_past_shared, shared_bounds, checked),
    BAMTRAIN_PLANTED(between_two_arrays, shared_bounds, checked),
    BAMTRAIN_PLANTED(word_misaligned, misaligned, checked),
    BAMTRAIN_PLANTED(vector_misaligned, undefined_behaviour, checked),
    BAMTRAIN_PLANTED(two_blocks_write, block_race, checked),
    BAMTRAIN_PLANTED(one_block_reads, block_race, checked),
    BAMTRAIN_PLANTED(memory_of_the_host, foreign_memory, checked),
    BAMTRAIN_PLANTED(shift_too_far, undefined_behaviour, checked),
    BAMTRAIN_PLANTED(register_array_overrun, undefined_behaviour, checked),
};

/// "/fault_kernels.cuh:n", where n is the line of `kernel` that ends in FAULT.
std::string faulty_line(const std::string& kernel) {
  std::ifstream in(source_folder() / "tests/engine/fault_kernels.cuh");
  int number = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    ++number;
    inside |=
        line.find("BAMTRAIN_KERNEL") == 0 && line.find(" " + kernel + "(") != std::string::npos;
    if (inside && line.find("// FAULT") != std::string::npos) {
      return "/fault_kernels.cuh:" + std::to_string(number);
    }
  }
  return "no such kernel: " + kernel;
}

bool names_line(const std::string& text, const std::string& line) {
  for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) {
    const size_t after = at + line.size();
    if (after == text.size() || std::isdigit(static_cast<unsigned char>(text[after])) == 0) {
      return true;
    }
  }
  return false;
}

/// Launches two blocks of 64 threads with 1,024 bytes of shared memory and a buffer of 128 words.
void launch_planted(void (*kernel)(uint32_t*)) {
  GlobalArray<uint32_t> x(std::vector<uint32_t>(128, 3));
  const auto status = device::launch(kernel, {2, 1, 1}, {64, 1, 1}, 1024, nullptr, x.data());
  REQUIRE(status.ok());
}

}  // namespace

TEST_CASE("every planted fault is reported with its kind and its line in every order") {
  const bool lines = can_find_source_lines();
  if (!lines) std::printf("skipped: source lines, for want of debug information or addr2line\n");
  for (const Planted& planted : kPlanted) {
    if (planted.seen == Seen::checked && !checker::enabled) continue;
    INFO(planted.name);
    int schedule = 0;
    for (const Options& o : schedules()) {
      const ScopedOptions with(o);
      INFO("schedule " << schedule++);
      try {
        launch_planted(planted.kernel);
        FAIL_CHECK("not reported");
      } catch (const Fault& fault) {
        INFO(fault.what());
        CHECK(name_of(fault.kind()) == std::string(name_of(planted.kind)));
        CHECK((planted.seen == Seen::after_launch ||
               fault.where().find(" in block (") != std::string::npos));
        const bool has_line = planted.seen == Seen::always ||
                              (lines && (planted.seen != Seen::after_launch || checker::enabled));
        // A report of two accesses or two barriers names both; which one comes first depends on the
        // order.
        if (has_line) CHECK(names_line(fault.what(), faulty_line(planted.name)));
      }
      if (schedule > 2 && checker::enabled) break;  // the checker is slow to find lines
    }
  }
}

TEST_CASE("after a fault the engine runs the next kernel") {
  CHECK_THROWS_AS(launch_planted(fault_kernels::barrier_in_a_branch), Fault);
  const GlobalArray<float> x(std::vector<float>(100, 0.5f));
  GlobalArray<float> sum(1);
  REQUIRE(device::launch(test_kernels::block_sum, {}, {64, 1, 1}, 0, nullptr, x.data(), sum.data(),
                         100, 100)
              .ok());
  CHECK(sum[0] == 50.0f);
}

TEST_CASE("a report says what the other threads do") {
  try {
    launch_planted(fault_kernels::barrier_in_a_branch);
    FAIL("not reported");
  } catch (const Fault& fault) {
    const std::string what = fault.what();
    INFO(what);
    CHECK(what.find("expected every thread of the block at this barrier") != std::string::npos);
    CHECK(what.find("warp 0, lanes 0xffffffff: wait in barrier at") != std::string::npos);
    CHECK(what.find("warp 1, lanes 0x1: returned") != std::string::npos);
  }
}

TEST_CASE("what a device would refuse is the launch's status") {
  uint32_t* none = nullptr;
  const auto launched = [&](device::Dim3 grid, device::Dim3 block, size_t shared_bytes) {
    return device::launch(fault_kernels::barrier_in_a_branch, grid, block, shared_bytes, nullptr,
                          none)
        .ok();
  };
  CHECK_FALSE(launched({}, {2048, 1, 1}, 0));
  CHECK_FALSE(launched({}, {0, 1, 1}, 0));
  CHECK_FALSE(launched({0, 1, 1}, {32, 1, 1}, 0));
  CHECK_FALSE(launched({1, 65536, 1}, {32, 1, 1}, 0));
  CHECK_FALSE(launched({}, {32, 1, 1}, 228 * 1024));
}
