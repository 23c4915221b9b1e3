#include "core/group_reduction.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/checked.h"
#include "core/error.h"

namespace bamtrain {
namespace {

// Messages begin at multiples of this many elements, which suits vector instructions.
constexpr int64_t kPieceAlignment = 64;
// Elements of a message that is received in place: MPI counts bytes in an int.
constexpr int64_t kLongestInPlace = int64_t{1} << 27;
// More than 1 + log2 of any number of groups.
constexpr int kDeepestTree = 64;

int64_t aligned_down(int64_t n) { return n / kPieceAlignment * kPieceAlignment; }
int64_t aligned_up(int64_t n) { return ceil_div(n, kPieceAlignment) * kPieceAlignment; }

/// The p-th piece of r; empty past its end.
FlatRange piece_of(FlatRange r, int64_t p, int64_t piece) {
  const int64_t begin = std::min(r.end, r.begin + p * piece);
  return {begin, std::min(r.end, begin + piece)};
}

// Several ranges are cut as one would be, of range(i) for each i < n, which are put next to each
// other at multiples of kPieceAlignment. So a short one takes no message's time.

template <class Range>
int64_t pieces_of_all(size_t n, const Range& range, int64_t piece) {
  int64_t size = 0;
  for (size_t i = 0; i < n; ++i) size += aligned_up(range(i).size());
  return ceil_div(size, piece);
}

/// f(r, at) for what the p-th piece has of each range: its elements r, from element `at` of the
/// piece on.
template <class Range, class F>
void for_each_in_piece(size_t n, const Range& range, int64_t p, int64_t piece, const F& f) {
  int64_t at = -p * piece;
  for (size_t i = 0; i < n; ++i) {
    const FlatRange r = range(i);
    const int64_t from = std::max<int64_t>(0, -at), to = std::min(r.size(), piece - at);
    if (from < to) f(FlatRange{r.begin + from, r.begin + to}, at + from);
    at += aligned_up(r.size());
  }
}

/// Messages in place of the tensor with the most elements.
int64_t longest_pieces(std::span<const Tensor> tensors) {
  int64_t longest = 0;
  for (const Tensor& t : tensors) longest = std::max(longest, t.size());
  return ceil_div(longest, kLongestInPlace);
}

/// `pieces` batches of messages: the next ones travel while one is processed. start(slot, p) starts
/// the p-th, finished(slot, p) follows its arrival.
template <class Start, class Finished>
void in_pieces(PeerLink& link, int64_t pieces, const Start& start, const Finished& finished) {
  const auto slot = [](int64_t p) { return static_cast<int>(p % PeerLink::kSlots); };
  int64_t started = 0;
  for (int64_t done = 0; done < pieces; ++done) {
    for (; started < std::min(pieces, done + PeerLink::kSlots); ++started) {
      start(slot(started), started);
    }
    link.finish(slot(done));
    finished(slot(done), done);
  }
}

}  // namespace

GroupReduction::GroupReduction(int rank, int processes, int64_t groups, int64_t alignment)
    : rank_(rank), processes_(processes), groups_(groups), alignment_(alignment) {
  require(rank >= 0 && rank < processes && processes <= groups, "a group for each process");
  require(alignment > 0 && alignment % kPieceAlignment == 0, "ranges that messages divide");
  GroupStack all(groups);
  int64_t fewest = groups;
  for (int r = 0; r < processes; ++r) {
    const GroupRange range = groups_of(r, processes, groups);
    GroupStack own(groups);
    for (int64_t l = range.begin; l < range.end; ++l) own.push({l, l + 1});
    first_.push_back(all_sums());
    for (const GroupRange& sum : own.sums()) additions_.push_back(all.push(sum));
    fewest = std::min(fewest, own.size());
  }
  first_.push_back(all_sums());
  most_received_ = all_sums() - fewest;
  // Halving adds neighbours at distance 1, then 2, 4: the tree does so too if, after the sums of
  // 2^k processes, k additions follow.
  halves_ = std::has_single_bit(static_cast<unsigned>(processes)) && all_sums() == processes;
  for (int r = 0; halves_ && r < processes; ++r) {
    halves_ = additions_[static_cast<size_t>(r)] == std::countr_one(static_cast<unsigned>(r));
  }
  batch_.reserve(static_cast<size_t>(all_sums() + processes * own_sums()));
}

double GroupReduction::total(std::span<double> sums) const {
  require(std::ssize(sums) == all_sums(), "a number for each sum");
  size_t n = 0;
  for (size_t k = 0; k < sums.size(); ++k) {
    sums[n++] = sums[k];
    for (int i = 0; i < additions_[k]; ++i, --n) sums[n - 2] += sums[n - 1];
  }
  return sums[0];
}

FlatRange GroupReduction::half_of(int rank, int level, int64_t n, int64_t per) const {
  FlatRange blocks{0, ceil_div(n, alignment_ / per)};
  for (int l = 0; l < level; ++l) {
    const int64_t middle = blocks.begin + blocks.size() / 2;
    (((rank >> l) & 1) != 0 ? blocks.begin : blocks.end) = middle;
  }
  return blocks;
}

FlatRange GroupReduction::blocks_of(int rank, int64_t n, int64_t per) const {
  if (halves_) return half_of(rank, levels(), n, per);
  const int64_t blocks = ceil_div(n, alignment_ / per);
  return {blocks * rank / processes_, blocks * (rank + 1) / processes_};
}

FlatRange GroupReduction::part_of(FlatRange blocks, int64_t n, int64_t per) const {
  const int64_t of_block = alignment_ / per;
  return {std::min(n, blocks.begin * of_block), std::min(n, blocks.end * of_block)};
}

void GroupReduction::run(PeerLink& link, std::span<const Tensor> sums, const Tensor& messages) {
  const FlatRange all = {0, sums[0].size()};
  reduce(link, {&all, 1}, sums, messages);
  gather(link, sums.first(1));
}

void GroupReduction::reduce(PeerLink& link, std::span<const FlatRange> ranges,
                            std::span<const Tensor> sums, const Tensor& messages) {
  require(std::ssize(sums) == own_sums(), "the sums of the process's groups");
  require(processes_ == 1 || messages.dtype == sums[0].dtype, "messages of the data's type");
  if (processes_ == 1) return;
  if (halves_) return reduce_by_halves(link, ranges, sums[0], messages);
  reduce_directly(link, ranges, sums, messages);
}

void GroupReduction::gather(PeerLink& link, std::span<const Tensor> tensors, int64_t per) {
  require(per == 1 || per == alignment_, "tensors of elements or of blocks");
  if (processes_ == 1) return;
  if (halves_) return gather_by_halves(link, tensors, per);
  gather_directly(link, tensors, per);
}

// At distance 1, 2, 4, a pair of ranks splits the range that both have summed over the same ranks
// so far. Each receives and adds the other's half. So every element is added once per tree node, by
// the rank that ends up with it (a + b == b + a: which of the two adds does not matter).
void GroupReduction::reduce_by_halves(PeerLink& link, std::span<const FlatRange> ranges,
                                      const Tensor& data, const Tensor& messages) {
  const int64_t piece = aligned_down(messages.size() / PeerLink::kSlots);
  require(piece > 0, "room for messages");
  const size_t n = ranges.size();
  for (int level = 0; level < levels(); ++level) {
    const int peer = rank_ ^ (1 << level);
    const auto half = [&](int rank, size_t i) {
      const int64_t size = ranges[i].size();
      return part_of(half_of(rank, level + 1, size, 1), size, 1).shifted(ranges[i].begin);
    };
    const auto sent = [&](size_t i) { return half(peer, i); };
    const auto kept = [&](size_t i) { return half(rank_, i); };
    const auto received = [&](int slot, int64_t at, FlatRange r) {
      return messages.slice(0, slot * piece + at, r.size());
    };
    in_pieces(
        link, std::max(pieces_of_all(n, sent, piece), pieces_of_all(n, kept, piece)),
        [&](int slot, int64_t p) {
          batch_.clear();
          for_each_in_piece(n, kept, p, piece, [&](FlatRange r, int64_t at) {
            batch_.push_back({peer, {}, received(slot, at, r)});
          });
          for_each_in_piece(n, sent, p, piece, [&](FlatRange r, int64_t) {
            batch_.push_back({peer, r.of(data), {}});
          });
          link.start(slot, batch_);
        },
        [&](int slot, int64_t p) {
          for_each_in_piece(n, kept, p, piece, [&](FlatRange r, int64_t at) {
            link.add(r.of(data), received(slot, at, r));
          });
        });
  }
}

// Recursive doubling: the same pairs in reverse order.
void GroupReduction::gather_by_halves(PeerLink& link, std::span<const Tensor> tensors,
                                      int64_t per) {
  for (int level = levels() - 1; level >= 0; --level) {
    const int peer = rank_ ^ (1 << level);
    const auto part = [&](const Tensor& t, int rank, int64_t p) {
      const FlatRange half = part_of(half_of(rank, level + 1, t.size(), per), t.size(), per);
      return piece_of(half, p, kLongestInPlace).of(t);
    };
    in_pieces(
        link, longest_pieces(tensors),
        [&](int slot, int64_t p) {
          batch_.clear();
          for (const Tensor& t : tensors)
            batch_.push_back({peer, part(t, rank_, p), part(t, peer, p)});
          link.start(slot, batch_);
        },
        [](int, int64_t) {});
  }
}

void GroupReduction::reduce_directly(PeerLink& link, std::span<const FlatRange> ranges,
                                     std::span<const Tensor> sums, const Tensor& messages) {
  const int64_t piece = aligned_down(messages.size() / PeerLink::kSlots / most_received_);
  require(piece > 0, "room for messages");
  const size_t n = ranges.size();
  const auto part = [&](int rank) {
    return [&ranges, this, rank](size_t i) {
      return range_of(rank, ranges[i].size()).shifted(ranges[i].begin);
    };
  };
  /// Where the k-th sum of another process is received.
  const auto received = [&](int slot, int rank, int64_t k, int64_t at, FlatRange r) {
    const int64_t number = first_[static_cast<size_t>(rank)] + k;
    const int64_t foreign = rank < rank_ ? number : number - own_sums();
    return messages.slice(0, (slot * most_received_ + foreign) * piece + at, r.size());
  };
  int64_t pieces = 0;
  for (int r = 0; r < processes_; ++r) pieces = std::max(pieces, pieces_of_all(n, part(r), piece));
  in_pieces(
      link, pieces,
      [&](int slot, int64_t p) {
        batch_.clear();
        for (int r = 0; r < processes_; ++r) {
          if (r == rank_) continue;
          for (int64_t k = 0; k < sums_of(r); ++k) {
            for_each_in_piece(n, part(rank_), p, piece, [&](FlatRange in, int64_t at) {
              batch_.push_back({r, {}, received(slot, r, k, at, in)});
            });
          }
          for (const Tensor& sum : sums) {
            for_each_in_piece(n, part(r), p, piece, [&](FlatRange out, int64_t) {
              batch_.push_back({r, out.of(sum), {}});
            });
          }
        }
        link.start(slot, batch_);
      },
      [&](int slot, int64_t p) {
        for_each_in_piece(n, part(rank_), p, piece, [&](FlatRange in, int64_t at) {
          const Tensor result = in.of(sums[0]);
          std::array<Tensor, kDeepestTree> stack;
          size_t depth = 0, number = 0;
          for (int r = 0; r < processes_; ++r) {
            for (int64_t k = 0; k < sums_of(r); ++k, ++number) {
              stack.at(depth++) =
                  r == rank_ ? in.of(sums[static_cast<size_t>(k)]) : received(slot, r, k, at, in);
              for (int a = 0; a < additions_[number]; ++a, --depth) {
                Tensor &x = stack[depth - 2], &y = stack[depth - 1];
                if (y.data == result.data) std::swap(x, y);  // a + b == b + a
                link.add(x, y);
              }
            }
          }
        });
      });
}

void GroupReduction::gather_directly(PeerLink& link, std::span<const Tensor> tensors, int64_t per) {
  const auto part = [&](const Tensor& t, int rank, int64_t p) {
    const FlatRange range = part_of(blocks_of(rank, t.size(), per), t.size(), per);
    return piece_of(range, p, kLongestInPlace).of(t);
  };
  in_pieces(
      link, longest_pieces(tensors),
      [&](int slot, int64_t p) {
        batch_.clear();
        for (int r = 0; r < processes_; ++r) {
          if (r == rank_) continue;
          for (const Tensor& t : tensors) batch_.push_back({r, part(t, rank_, p), part(t, r, p)});
        }
        link.start(slot, batch_);
      },
      [](int, int64_t) {});
}

std::vector<int> GroupReduction::partners() const {
  std::vector<int> partners;
  for (int r = 0; r < processes_; ++r) {
    const bool exchanges =
        halves_ ? std::has_single_bit(static_cast<unsigned>(r ^ rank_)) : r != rank_;
    if (exchanges) partners.push_back(r);
  }
  return partners;
}

int64_t GroupReduction::elements_reduced(int rank, int64_t n) const {
  return sums_of(rank) * (n - range_of(rank, n).size());
}

int64_t GroupReduction::elements_gathered(int rank, int64_t n) const {
  if (!halves_) return range_of(rank, n).size() * (processes_ - 1);
  int64_t sent = 0;
  for (int level = levels(); level > 0; --level) {
    sent += part_of(half_of(rank, level, n, 1), n, 1).size();
  }
  return sent;
}

}  // namespace bamtrain
