// The messages of a reduction, rank by rank, over a link that only writes them down.

#include "core/group_reduction.h"

#include <algorithm>
#include <map>
#include <vector>

#include "catch.h"

namespace bamtrain {
namespace {

/// What one rank sends to and receives from each other, in order, in elements.
struct Traffic {
  std::map<int, std::vector<int64_t>> sent, received;
  int64_t all_sent = 0, batches = 0;
};

class RecordingLink final : public PeerLink {
 public:
  explicit RecordingLink(Traffic& traffic) : traffic_(traffic) {}
  void start(int slot, std::span<const PeerMessage> messages) override {
    REQUIRE_FALSE(started_[slot]);
    started_[slot] = true;
    ++traffic_.batches;
    for (const auto& [peer, out, in] : messages) {
      if (out.size() > 0) traffic_.sent[peer].push_back(out.size());
      if (in.size() > 0) traffic_.received[peer].push_back(in.size());
      traffic_.all_sent += out.size();
    }
  }
  void finish(int slot) override {
    REQUIRE(started_[slot]);
    started_[slot] = false;
  }
  void add(const Tensor& into, const Tensor& from) override {
    REQUIRE(into.size() == from.size());
    REQUIRE(into.data != from.data);
  }
  void join() override {}
  void mark(int) override {}
  void join(int) override {}
  void all_reduce(const Tensor&) override { FAIL("the library's sum"); }

 private:
  Traffic& traffic_;
  bool started_[kSlots] = {};
};

/// Of the reduction of `ranges` of n elements, or of all of them and their return.
std::vector<Traffic> traffic_of(int processes, int64_t groups, int64_t n, int64_t piece,
                                std::span<const FlatRange> ranges = {}) {
  std::vector<Traffic> of_ranks(static_cast<size_t>(processes));
  for (int rank = 0; rank < processes; ++rank) {
    GroupReduction reduction(rank, processes, groups);
    std::vector<float> elements(static_cast<size_t>(n * reduction.own_sums()));
    std::vector<float> room(static_cast<size_t>(PeerLink::kSlots * piece * reduction.all_sums()));
    std::vector<Tensor> sums;
    for (int64_t k = 0; k < reduction.own_sums(); ++k) {
      sums.emplace_back(elements.data() + k * n, Dtype::f32, std::initializer_list<int64_t>{n});
    }
    RecordingLink link(of_ranks[static_cast<size_t>(rank)]);
    const Tensor messages(room.data(), Dtype::f32, {std::ssize(room)});
    ranges.empty() ? reduction.run(link, sums, messages)
                   : reduction.reduce(link, ranges, sums, messages);
  }
  return of_ranks;
}

void check_that_messages_match(const std::vector<Traffic>& all) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    for (const auto& [peer, sizes] : all[rank].sent) {
      REQUIRE(sizes == all[static_cast<size_t>(peer)].received.at(static_cast<int>(rank)));
    }
    for (const auto& [peer, sizes] : all[rank].received) {
      REQUIRE(sizes == all[static_cast<size_t>(peer)].sent.at(static_cast<int>(rank)));
    }
  }
}

TEST_CASE("every message that a process sends is one that its peer receives") {
  for (int processes = 1; processes <= 13; ++processes) {
    for (const int64_t groups : {processes, processes + 1, 2 * processes, 24, 31}) {
      if (groups < processes) continue;
      for (const int64_t n : {0, 1, 1000, 5000}) {
        INFO(processes << " processes, " << groups << " groups, " << n << " elements");
        const std::vector<Traffic> all = traffic_of(processes, groups, n, 64);
        for (int rank = 0; rank < processes; ++rank) {
          const auto r = static_cast<size_t>(rank);
          const std::vector<int> partners = GroupReduction(rank, processes, groups).partners();
          for (const auto& [peer, sizes] : all[r].sent) {
            REQUIRE(std::find(partners.begin(), partners.end(), peer) != partners.end());
          }
        }
        check_that_messages_match(all);
      }
    }
  }
}

TEST_CASE("short ranges travel with others") {
  // Of a pair each sends half of 4096 + 64 + 128 + 1984 elements, in three times 1088.
  const std::vector<FlatRange> ranges = {{0, 4096}, {4096, 4160}, {5000, 5128}, {6016, 8000}};
  for (const Traffic& of_rank : traffic_of(2, 2, 8000, 1088 / 2, ranges))
    CHECK(of_rank.batches == 3);
  for (const auto& [processes, groups] :
       std::vector<std::pair<int, int64_t>>{{2, 2}, {3, 3}, {3, 8}, {4, 4}, {5, 24}, {8, 8}}) {
    INFO(processes << " processes, " << groups << " groups");
    const std::vector<Traffic> all = traffic_of(processes, groups, 8000, 192, ranges);
    check_that_messages_match(all);
    for (int rank = 0; rank < processes; ++rank) {
      const GroupReduction reduction(rank, processes, groups);
      int64_t elements = 0;
      for (const FlatRange& range : ranges)
        elements += reduction.elements_reduced(rank, range.size());
      CHECK(all[static_cast<size_t>(rank)].all_sent == elements);
    }
  }
}

TEST_CASE("a process sends as many elements as is said of it") {
  constexpr int64_t n = 64 * 24 * 5;  // whole ranges of all processes
  for (const auto& [processes, groups] :
       std::vector<std::pair<int, int64_t>>{{2, 8}, {8, 8}, {3, 8}, {6, 24}, {5, 8}, {5, 24}}) {
    const std::vector<Traffic> all = traffic_of(processes, groups, n, 512);
    for (int rank = 0; rank < processes; ++rank) {
      INFO("rank " << rank << " of " << processes << ", " << groups << " groups");
      CHECK(all[static_cast<size_t>(rank)].all_sent ==
            GroupReduction(rank, processes, groups).elements_reduced(rank, n) +
                GroupReduction(rank, processes, groups).elements_gathered(rank, n));
    }
  }
}

/// So a second tree between nodes would gain nothing.
TEST_CASE(
    "of two nodes of eight neighbours a process sends an eighth of the elements to the other") {
  constexpr int64_t n = 64 * 16 * 3;
  const std::vector<Traffic> all = traffic_of(16, 16, n, 1024);
  for (int rank = 0; rank < 16; ++rank) {
    std::map<int, int64_t> by_distance;
    for (const auto& [peer, sizes] : all[static_cast<size_t>(rank)].sent) {
      for (const int64_t size : sizes) by_distance[rank ^ peer] += size;
    }
    CHECK(by_distance == std::map<int, int64_t>{{1, n}, {2, n / 2}, {4, n / 4}, {8, n / 8}});
  }
}

}  // namespace
}  // namespace bamtrain
