#include "core/lane_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "core/rng.h"

namespace bamtrain {
namespace {

constexpr int64_t kElements = 257;

/// Numbers of very different magnitudes, so that the order of additions shows in the last bits.
float element(int64_t lane, int64_t i) {
  const uint64_t bits = Rng(1, "lane " + std::to_string(lane)).bits(static_cast<uint64_t>(i));
  return std::ldexp(static_cast<float>(static_cast<int32_t>(bits)), -static_cast<int>(bits >> 59));
}

std::vector<float> lane_gradient(int64_t lane) {
  std::vector<float> g(kElements);
  for (int64_t i = 0; i < kElements; ++i) g[static_cast<size_t>(i)] = element(lane, i);
  return g;
}

/// The tree as it is defined, from the top: the sum of a block is that of its two halves.
float reference(int64_t first, int64_t count, int64_t i) {
  if (count == 1) return element(first, i);
  return reference(first, count / 2, i) + reference(first + count / 2, count / 2, i);
}

float sequential(int64_t lanes, int64_t i) {
  float sum = element(0, i);
  for (int64_t lane = 1; lane < lanes; ++lane) sum += element(lane, i);
  return sum;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST_CASE("lane buffers joined after every lane hold the tree sum to the bit") {
  for (int64_t lanes : {1, 2, 4, 8, 16}) {
    INFO("lanes " << lanes);
    const LaneTree tree(lanes);
    std::vector<std::vector<float>> buffers(static_cast<size_t>(tree.buffers()));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      buffers.at(static_cast<size_t>(tree.buffer_for(lane))) = lane_gradient(lane);
      for (const auto& [into, from] : tree.joins_after(lane)) {
        std::vector<float>& a = buffers.at(static_cast<size_t>(into));
        const std::vector<float>& b = buffers.at(static_cast<size_t>(from));
        for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      }
    }
    int64_t different_from_sequential = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      const float sum = buffers[0][static_cast<size_t>(i)];
      REQUIRE(same_bits(sum, reference(0, lanes, i)));
      if (!same_bits(sum, sequential(lanes, i))) ++different_from_sequential;
    }
    // Two lanes leave no choice of order; with more, the numbers above must tell orders apart.
    CHECK((different_from_sequential > 0) == (lanes > 2));
  }
}

TEST_CASE("lane sums take 1 + log2 of the lanes in buffers and use each of them") {
  int expected = 1;
  for (int64_t lanes = 1; lanes <= 1024; lanes *= 2, ++expected) {
    const LaneTree tree(lanes);
    CHECK(tree.buffers() == expected);
    int highest = 0;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      highest = std::max(highest, tree.buffer_for(lane));
    }
    CHECK(highest == expected - 1);
  }
}

TEST_CASE("a lane never overwrites a buffer whose sum is still needed") {
  const int64_t lanes = 64;
  const LaneTree tree(lanes);
  // How many lanes each buffer holds, 0 where its content may be overwritten.
  std::vector<int64_t> held(static_cast<size_t>(tree.buffers()), 0);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    int64_t& newest = held.at(static_cast<size_t>(tree.buffer_for(lane)));
    REQUIRE(newest == 0);
    newest = 1;
    for (const auto& [into, from] : tree.joins_after(lane)) {
      int64_t& a = held.at(static_cast<size_t>(into));
      int64_t& b = held.at(static_cast<size_t>(from));
      REQUIRE(a == b);  // equal blocks join: neighbours first, then distance 2, 4
      a += b;
      b = 0;
    }
  }
  CHECK(held[0] == lanes);
}

TEST_CASE("lanes that no binary tree fits are refused") {
  CHECK_THROWS_AS(LaneTree(0), Error);
  CHECK_THROWS_AS(LaneTree(-4), Error);
  CHECK_THROWS_AS(LaneTree(6), Error);
  CHECK_THROWS_AS(LaneTree(4).buffer_for(4), Error);
  CHECK_THROWS_AS(LaneTree(4).joins_after(-1), Error);
}

}  // namespace
}  // namespace bamtrain
