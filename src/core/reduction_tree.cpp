#include "core/reduction_tree.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/checked.h"
#include "core/error.h"

namespace bamtrain {
namespace {

// Ranges and messages begin at multiples of this many elements, which suits vector instructions.
constexpr int64_t kBufferAlignment = 64;

/// A range of elements of `data`.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class Reduction {
 public:
  Reduction(PeerLink& link, const Tensor& data, const Tensor& messages)
      : link_(link),
        data_(data),
        messages_(messages),
        piece_(messages.size() / PeerLink::kSlots / kBufferAlignment * kBufferAlignment) {
    require(data.dtype == messages.dtype && piece_ > 0, "room for messages of the data's type");
  }

  /// Sends `give` to `peer` and adds what it receives to `keep`.
  void exchange_and_add(Range give, Range keep, int peer) {
    in_pieces(
        give, keep, peer, [&](int slot, Range) { return slot_memory(slot); },
        [&](int slot, const Tensor& to) {
          link_.add(to, slot_memory(slot).slice(0, 0, to.size()));
        });
  }

  /// Sends `give` to `peer` and replaces `take` by what it receives.
  void exchange(Range give, Range take, int peer) {
    in_pieces(
        give, take, peer, [&](int, Range part) { return of(part); }, [](int, const Tensor&) {});
  }

 private:
  /// Transfers the next message while the current one is processed.
  template <class Memory, class Received>
  void in_pieces(Range give, Range take, int peer, Memory&& memory, Received&& received) {
    const int64_t pieces = ceil_div(std::max(give.size(), take.size()), piece_);
    const auto start = [&](int64_t p) {
      const int slot = static_cast<int>(p % PeerLink::kSlots);
      const Range in = piece_of(take, p);
      link_.start(slot, peer, of(piece_of(give, p)), memory(slot, in).slice(0, 0, in.size()));
    };
    if (pieces > 0) start(0);
    for (int64_t p = 0; p < pieces; ++p) {
      if (p + 1 < pieces) start(p + 1);
      const int slot = static_cast<int>(p % PeerLink::kSlots);
      link_.finish(slot);
      if (const Range in = piece_of(take, p); in.size() > 0) received(slot, of(in));
    }
  }

  Range piece_of(Range r, int64_t p) const {
    const int64_t begin = std::min(r.end, r.begin + p * piece_);
    return {begin, std::min(r.end, begin + piece_)};
  }
  Tensor of(Range r) const { return data_.slice(0, r.begin, r.size()); }
  Tensor slot_memory(int slot) const { return messages_.slice(0, slot * piece_, piece_); }

  PeerLink& link_;
  Tensor data_, messages_;
  int64_t piece_;
};

}  // namespace

// Recursive halving: at distance 1, 2, 4, a pair of ranks splits the range that both have summed
// over the same ranks so far. Each receives and adds the other's half. So every element is added
// once per tree node, by the rank that ends up with it (a + b == b + a: which of the two adds does
// not matter). The way back, recursive doubling, only copies.
void tree_all_reduce(PeerLink& link, int rank, int size, const Tensor& data,
                     const Tensor& messages) {
  const auto processes = static_cast<unsigned>(size);
  require(std::has_single_bit(processes), "a number of processes that is a power of two");
  Reduction reduction(link, data, messages);
  const int levels = std::countr_zero(processes);
  std::array<Range, 32> mine, theirs;
  Range range{0, data.size()};
  for (int level = 0; level < levels; ++level) {
    const int64_t middle = range.begin + range.size() / 2 / kBufferAlignment * kBufferAlignment;
    const Range lower{range.begin, middle}, upper{middle, range.end};
    const bool take_upper = ((rank >> level) & 1) != 0;
    mine[level] = take_upper ? upper : lower;
    theirs[level] = take_upper ? lower : upper;
    reduction.exchange_and_add(theirs[level], mine[level], rank ^ (1 << level));
    range = mine[level];
  }
  for (int level = levels - 1; level >= 0; --level) {
    reduction.exchange(mine[level], theirs[level], rank ^ (1 << level));
  }
}

}  // namespace bamtrain
