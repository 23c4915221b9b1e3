#include "core/group_tree.h"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "core/group_reduction.h"
#include "core/rng.h"

namespace bamtrain {
namespace {

/// Numbers of very different magnitudes, so that the order of additions affects the last bits.
template <class T>
T number_of(int64_t group, uint64_t i) {
  const uint64_t bits = Rng(1, "group " + std::to_string(group)).bits(i);
  return std::ldexp(static_cast<T>(static_cast<int64_t>(bits << 5)), -static_cast<int>(bits >> 59));
}

/// The tree by its definition, level by level: neighbours are added, an odd last one passes up.
template <class T>
T reference(int64_t groups, uint64_t i) {
  std::vector<T> level;
  for (int64_t l = 0; l < groups; ++l) level.push_back(number_of<T>(l, i));
  while (level.size() > 1) {
    std::vector<T> next;
    for (size_t n = 0; n + 1 < level.size(); n += 2) next.push_back(level[n] + level[n + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  return level[0];
}

float sequential(int64_t groups, uint64_t i) {
  float sum = number_of<float>(0, i);
  for (int64_t group = 1; group < groups; ++group) sum += number_of<float>(group, i);
  return sum;
}

/// The sums that are left of groups [begin, end), each in a buffer.
template <class T>
std::vector<T> sums_of(GroupStack& stack, GroupRange groups, uint64_t i) {
  std::vector<T> buffers;
  for (int64_t group = groups.begin; group < groups.end; ++group) {
    buffers.resize(static_cast<size_t>(stack.size()));
    buffers.push_back(number_of<T>(group, i));
    for (int n = stack.push({group, group + 1}); n > 0; --n) {
      buffers[buffers.size() - 2] += buffers.back();
      buffers.pop_back();
    }
  }
  return buffers;
}

TEST_CASE("a stack of buffers adds any number of groups in the tree") {
  for (const int64_t groups : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 24, 31, 33}) {
    INFO(groups << " groups");
    int64_t different = 0;
    for (uint64_t i = 0; i < 257; ++i) {
      GroupStack stack(groups);
      const std::vector<float> sum = sums_of<float>(stack, {0, groups}, i);
      REQUIRE(sum.size() == 1);
      REQUIRE(sum[0] == reference<float>(groups, i));
      different += sum[0] != sequential(groups, i);
    }
    // Up to three groups have one order. With more, the numbers above must distinguish orders.
    CHECK((different > 0) == (groups > 3));
  }
}

TEST_CASE("a stack has a buffer for each level of the tree at most, and one more") {
  for (int64_t groups = 1; groups <= 300; ++groups) {
    GroupStack stack(groups);
    for (int64_t group = 0; group < groups; ++group) stack.push({group, group + 1});
    CHECK(stack.most() <= 1 + static_cast<int64_t>(std::log2(groups)));
    REQUIRE(stack.sums().size() == 1);
    CHECK(stack.sums()[0].end == groups);
  }
  CHECK_THROWS_AS(GroupStack(0), Error);
}

TEST_CASE("groups are dealt out in contiguous ranges, the longer ones first") {
  const auto sizes = [](int processes, int64_t groups) {
    std::vector<int64_t> sizes;
    int64_t end = 0;
    for (int rank = 0; rank < processes; ++rank) {
      const GroupRange range = groups_of(rank, processes, groups);
      CHECK(range.begin == end);
      end = range.end;
      sizes.push_back(range.size());
    }
    CHECK(end == groups);
    return sizes;
  };
  CHECK(sizes(6, 24) == std::vector<int64_t>{4, 4, 4, 4, 4, 4});
  CHECK(sizes(5, 8) == std::vector<int64_t>{2, 2, 2, 1, 1});
  CHECK(sizes(3, 8) == std::vector<int64_t>{3, 3, 2});
  CHECK(sizes(1, 7) == std::vector<int64_t>{7});
}

TEST_CASE("processes add by halves where their sums make a binary tree, else directly") {
  const auto halves = [](int processes, int64_t groups) {
    return GroupReduction(0, processes, groups).halves();
  };
  for (const int processes : {2, 4, 8}) CHECK(halves(processes, 8));
  CHECK(halves(2, 3));         // 0 + 1, and 2
  CHECK_FALSE(halves(4, 5));   // group 4 comes last
  CHECK_FALSE(halves(8, 24));  // three each
  CHECK_FALSE(halves(3, 8));
  CHECK_FALSE(halves(6, 24));
  CHECK_THROWS_AS(GroupReduction(0, 3, 2), Error);
  CHECK_THROWS_AS(GroupReduction(2, 2, 2), Error);
}

TEST_CASE("a process has a sum for each of the largest nodes within its groups") {
  const auto own_sums = [](int processes, int64_t groups) {
    std::vector<int64_t> sums;
    for (int rank = 0; rank < processes; ++rank) {
      const GroupReduction r(rank, processes, groups);
      sums.push_back(r.own_sums());
      CHECK(r.first_sum() + r.own_sums() <= r.all_sums());
    }
    return sums;
  };
  CHECK(own_sums(4, 8) == std::vector<int64_t>{1, 1, 1, 1});
  CHECK(own_sums(6, 24) == std::vector<int64_t>{1, 1, 1, 1, 1, 1});
  CHECK(own_sums(3, 8) == std::vector<int64_t>{2, 2, 1});         // 01 2, 3 45, 67
  CHECK(own_sums(5, 8) == std::vector<int64_t>{1, 1, 1, 1, 1});   // 01, 23, 45, 6, 7
  CHECK(own_sums(5, 24) == std::vector<int64_t>{2, 3, 3, 2, 1});  // 5 5 5 5 4
}

TEST_CASE("numbers of all sums are added in the tree, whoever has them") {
  for (const int64_t groups : {7, 8, 24}) {
    for (int processes = 1; processes <= groups; ++processes) {
      std::vector<double> sums;
      for (int rank = 0; rank < processes; ++rank) {
        GroupStack stack(groups);
        for (const double x : sums_of<double>(stack, groups_of(rank, processes, groups), 5)) {
          sums.push_back(x);
        }
      }
      const GroupReduction reduction(0, processes, groups);
      REQUIRE(std::ssize(sums) == reduction.all_sums());
      CHECK(reduction.total(sums) == reference<double>(groups, 5));
    }
  }
}

TEST_CASE("a direct reduction sends each sum once and the result to every peer") {
  constexpr int64_t n = 24 * 64;
  CHECK(GroupReduction(0, 4, 8).elements_reduced(0, n) == n * 3 / 4);
  CHECK(GroupReduction(0, 4, 8).elements_gathered(0, n) == n * 3 / 4);
  CHECK(GroupReduction(0, 3, 8).elements_reduced(0, n) == 2 * n * 2 / 3);
  CHECK(GroupReduction(2, 3, 8).elements_reduced(2, n) == n * 2 / 3);
  CHECK(GroupReduction(2, 3, 8).elements_gathered(2, n) == n / 3 * 2);
}

}  // namespace
}  // namespace bamtrain
