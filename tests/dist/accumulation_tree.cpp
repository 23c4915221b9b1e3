#include "core/accumulation_tree.h"

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

/// Numbers of very different magnitudes, so that the order of additions affects the last bits.
float element(int64_t group, int64_t i) {
  const uint64_t bits = Rng(1, "lane " + std::to_string(group)).bits(static_cast<uint64_t>(i));
  return std::ldexp(static_cast<float>(static_cast<int32_t>(bits)), -static_cast<int>(bits >> 59));
}

std::vector<float> group_gradient(int64_t group) {
  std::vector<float> g(kElements);
  for (int64_t i = 0; i < kElements; ++i) g[static_cast<size_t>(i)] = element(group, i);
  return g;
}

/// The tree by its definition, top down: the sum of a block is the sum of its two halves.
float reference(int64_t first, int64_t count, int64_t i) {
  if (count == 1) return element(first, i);
  return reference(first, count / 2, i) + reference(first + count / 2, count / 2, i);
}

float sequential(int64_t groups, int64_t i) {
  float sum = element(0, i);
  for (int64_t group = 1; group < groups; ++group) sum += element(group, i);
  return sum;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST_CASE("lane buffers joined after every lane hold the tree sum to the bit") {
  for (int64_t groups : {1, 2, 4, 8, 16}) {
    INFO("lanes " << groups);
    const AccumulationTree tree(groups);
    std::vector<std::vector<float>> buffers(static_cast<size_t>(tree.buffers()));
    for (int64_t group = 0; group < groups; ++group) {
      buffers.at(static_cast<size_t>(tree.buffer_for(group))) = group_gradient(group);
      for (const auto& [into, from] : tree.joins_after(group)) {
        std::vector<float>& a = buffers.at(static_cast<size_t>(into));
        const std::vector<float>& b = buffers.at(static_cast<size_t>(from));
        for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      }
    }
    int64_t different_from_sequential = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      const float sum = buffers[0][static_cast<size_t>(i)];
      REQUIRE(same_bits(sum, reference(0, groups, i)));
      if (!same_bits(sum, sequential(groups, i))) ++different_from_sequential;
    }
    // Two groups have only one order. With more, the numbers above must distinguish orders.
    CHECK((different_from_sequential > 0) == (groups > 2));
  }
}

TEST_CASE("lane sums take 1 + log2 of the lanes in buffers and use each of them") {
  int expected = 1;
  for (int64_t groups = 1; groups <= 1024; groups *= 2, ++expected) {
    const AccumulationTree tree(groups);
    CHECK(tree.buffers() == expected);
    int highest = 0;
    for (int64_t group = 0; group < groups; ++group) {
      highest = std::max(highest, tree.buffer_for(group));
    }
    CHECK(highest == expected - 1);
  }
}

TEST_CASE("a lane never overwrites a buffer whose sum is still needed") {
  const int64_t groups = 64;
  const AccumulationTree tree(groups);
  // How many groups each buffer holds; 0 if its content may be overwritten.
  std::vector<int64_t> held(static_cast<size_t>(tree.buffers()), 0);
  for (int64_t group = 0; group < groups; ++group) {
    int64_t& newest = held.at(static_cast<size_t>(tree.buffer_for(group)));
    REQUIRE(newest == 0);
    newest = 1;
    for (const auto& [into, from] : tree.joins_after(group)) {
      int64_t& a = held.at(static_cast<size_t>(into));
      int64_t& b = held.at(static_cast<size_t>(from));
      REQUIRE(a == b);  // equal blocks join: neighbours first, then distance 2, 4
      a += b;
      b = 0;
    }
  }
  CHECK(held[0] == groups);
}

TEST_CASE("lanes that no binary tree fits are refused") {
  CHECK_THROWS_AS(AccumulationTree(0), Error);
  CHECK_THROWS_AS(AccumulationTree(-4), Error);
  CHECK_THROWS_AS(AccumulationTree(6), Error);
  CHECK_THROWS_AS(AccumulationTree(4).buffer_for(4), Error);
  CHECK_THROWS_AS(AccumulationTree(4).joins_after(-1), Error);
}

}  // namespace
}  // namespace bamtrain
