// Warp collectives, and arithmetic with dedicated hardware instructions. Lane layouts are as in
// device.cuh (PTX ISA, "Warp-level matrix instructions").

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "engine/checker.h"
#include "engine/state.h"

namespace bamtrain::engine {

namespace {

const Thread& thread_of_lane(uint32_t lane) { return machine.threads[self().warp * kLanes + lane]; }

struct ShuffleOperand {
  uint64_t value, result;
  int source;
  Place at;
};

void execute_shuffle(void* const* operands, uint32_t mask, const void*) {
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    auto& own = *static_cast<ShuffleOperand*>(operands[l]);
    if ((mask >> own.source & 1) == 0) {
      fail(FaultKind::shuffle_source, thread_of_lane(l), own.at,
           "a source lane in the mask " + hex(mask), "lane " + std::to_string(own.source));
    }
    own.result = static_cast<const ShuffleOperand*>(operands[own.source])->value;
  }
}

struct BallotOperand {
  bool predicate;
  uint32_t result;
};

void execute_ballot(void* const* operands, uint32_t mask, const void*) {
  uint32_t votes = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    votes |= static_cast<uint32_t>(static_cast<BallotOperand*>(operands[l])->predicate) << l;
  }
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) != 0) static_cast<BallotOperand*>(operands[l])->result = votes;
  }
}

void execute_sync(void* const*, uint32_t mask, const void*) {
  checker::at_sync_warp(self().warp, mask);
}

struct LdmatrixOperand {
  uint32_t* r;
  uint32_t row;
  uint32_t matrices;
  bool transposed;
  Place at;
};

void execute_ldmatrix(void* const* operands, uint32_t, const void* called_from) {
  const auto operand = [&](uint32_t lane) -> LdmatrixOperand& {
    return *static_cast<LdmatrixOperand*>(operands[lane]);
  };
  ++counters().ldmatrix;
  const bool transposed = operand(0).transposed;
  for (uint32_t m = 0; m < operand(0).matrices; ++m) {
    uint16_t element[8][8];
    uint32_t rows_in_bank_group[8] = {};  // 16 bytes each
    for (uint32_t r = 0; r < 8; ++r) {
      const uint32_t lane = m * 8 + r;
      const Thread& thread = thread_of_lane(lane);
      const LdmatrixOperand& own = operand(lane);
      const char* row = shared_bytes(own.row, 16, thread, own.at, "ldmatrix");
      checker::access_if_enabled(thread, row, 16, false, called_from);
      std::memcpy(element[r], row, 16);
      if (rows_in_bank_group[own.row / 16 % 8]++ > 0) ++counters().ldmatrix_conflicts;
    }
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t g = l / 4, t = l % 4;
      const uint32_t low = transposed ? element[2 * t][g] : element[g][2 * t];
      const uint32_t high = transposed ? element[2 * t + 1][g] : element[g][2 * t + 1];
      operand(l).r[m] = low | high << 16;
    }
  }
}

struct MmaOperand {
  float* d;
  const uint32_t* a;
  uint32_t b[2];
};

// Products of bf16 are exact in fp32. They are added in fp32, by ascending k. The hardware's order
// and intermediate rounding are unspecified and differ between architectures.
void execute_mma(void* const* operands, uint32_t, const void*) {
  ++counters().mma;
  float a[16][16], b[16][8];
  alignas(32) float d[16][8];
  const auto put = [](uint32_t pair, float& low, float& high) {
    low = float_of(pair << 16);
    high = float_of(pair & 0xFFFF0000u);
  };
  for (uint32_t l = 0; l < kLanes; ++l) {
    const auto& own = *static_cast<const MmaOperand*>(operands[l]);
    const uint32_t g = l / 4, t = l % 4;
    for (uint32_t i = 0; i < 4; ++i) {
      float* to = &a[g + 8 * (i % 2)][2 * t + 8 * (i / 2)];
      put(own.a[i], to[0], to[1]);
      d[g + 8 * (i / 2)][2 * t + i % 2] = own.d[i];
    }
    for (uint32_t i = 0; i < 2; ++i) put(own.b[i], b[2 * t + 8 * i][g], b[2 * t + 8 * i + 1][g]);
  }
  for (uint32_t m = 0; m < 16; ++m) {
    for (uint32_t k = 0; k < 16; ++k) {
      for (uint32_t n = 0; n < 8; ++n) d[m][n] += a[m][k] * b[k][n];
    }
  }
  for (uint32_t l = 0; l < kLanes; ++l) {
    auto& own = *static_cast<MmaOperand*>(operands[l]);
    for (uint32_t i = 0; i < 4; ++i) own.d[i] = d[l / 4 + 8 * (i / 2)][2 * (l % 4) + i % 2];
  }
}

float flushed(float x) { return std::abs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }

uint32_t rounded_to_bf16(float x) {
  const uint32_t bits = bits_of(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

}  // namespace

void sync_warp(uint32_t mask, Place at) {
  const EngineScope inside;
  collective(execute_sync, nullptr, mask, "sync_warp", at, nullptr);
}

uint64_t shuffle_bits(Shuffle kind, uint32_t mask, uint64_t value, int operand, Place at) {
  const EngineScope inside;
  if (operand < 0 || operand >= static_cast<int>(kLanes)) {
    fail(FaultKind::shuffle_source, self(), at, "a lane, a lane mask or a distance in [0, 32)",
         std::to_string(operand));
  }
  const int own = static_cast<int>(self().lane);
  int source = operand;
  if (kind == Shuffle::exclusive_or) source = own ^ operand;
  if (kind == Shuffle::up) source = own < operand ? own : own - operand;
  if (kind == Shuffle::down)
    source = own + operand >= static_cast<int>(kLanes) ? own : own + operand;
  ShuffleOperand exchanged = {value, 0, source, at};
  collective(execute_shuffle, &exchanged, mask, "shuffle", at, nullptr);
  return exchanged.result;
}

uint32_t ballot(uint32_t mask, bool predicate, Place at) {
  const EngineScope inside;
  BallotOperand operand = {predicate, 0};
  collective(execute_ballot, &operand, mask, "ballot", at, nullptr);
  return operand.result;
}

void ldmatrix(uint32_t* r, int matrices, bool transposed, uint32_t row, Place at) {
  const void* called_from = __builtin_return_address(0);
  const EngineScope inside;
  LdmatrixOperand operand = {r, row, static_cast<uint32_t>(matrices), transposed, at};
  collective(execute_ldmatrix, &operand, 0xFFFFFFFFu, "ldmatrix", at, called_from);
}

void mma_m16n8k16(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Place at) {
  const EngineScope inside;
  MmaOperand operand = {d, a, {b0, b1}};
  collective(execute_mma, &operand, 0xFFFFFFFFu, "mma", at, nullptr);
}

float exp2_approx(float x) { return flushed(std::exp2(flushed(x))); }
float log2_approx(float x) { return std::log2(flushed(x)); }

uint32_t pack_bf16(float low, float high) {
  return rounded_to_bf16(low) | rounded_to_bf16(high) << 16;
}

}  // namespace bamtrain::engine
