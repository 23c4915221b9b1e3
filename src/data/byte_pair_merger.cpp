#include "data/byte_pair_merger.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <string>

#include "core/error.h"

namespace bamtrain {
namespace {

constexpr size_t kFew = 48;  // bytes; up to here, rescanning all pairs is cheaper than a queue
constexpr int32_t kNone = INT32_MAX;

uint64_t pair_of(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} + 1) << 32 | (static_cast<uint32_t>(right) + 1);
}

}  // namespace

BytePairMerger::BytePairMerger(const BytePairDefinition& definition)
    : whole_first_(definition.whole_first) {
  byte_ids_.fill(-1);
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const BytePairDefinition::Token& t = definition.tokens[id];
    if (t.kind != TokenKind::normal || t.added) continue;
    if (t.bytes.size() == 1) {
      byte_ids_[static_cast<unsigned char>(t.bytes[0])] = static_cast<int32_t>(id);
    }
    if (whole_first_) whole_.emplace(t.bytes, static_cast<int32_t>(id));
  }
  require(std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end(),
          "a token for each byte");
  const size_t places = std::bit_ceil(std::max<size_t>(2 * definition.merges.size(), 16));
  rules_.resize(places);
  shift_ = 64 - std::countr_zero(places);
  for (const BytePairDefinition::Merge& m : definition.merges) {
    const uint64_t pair = pair_of(m.left, m.right);
    size_t at = (pair * 0x9E3779B97F4A7C15u) >> shift_;
    while (rules_[at].pair != 0 && rules_[at].pair != pair) at = (at + 1) & (places - 1);
    if (rules_[at].pair == 0 || m.rank < rules_[at].rank) rules_[at] = {pair, m.rank, m.result};
  }
}

const BytePairMerger::Rule* BytePairMerger::rule(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  size_t at = (pair * 0x9E3779B97F4A7C15u) >> shift_;
  while (rules_[at].pair != pair) {
    if (rules_[at].pair == 0) return nullptr;
    at = (at + 1) & (rules_.size() - 1);
  }
  return &rules_[at];
}

void BytePairMerger::merge(std::string_view piece, std::vector<int32_t>* ids) const {
  if (whole_first_) {
    const auto found = whole_.find(piece);
    if (found != whole_.end()) return ids->push_back(found->second);
  }
  if (piece.size() <= kFew) {
    merge_few(piece, ids);
  } else {
    merge_many(piece, ids);
  }
}

void BytePairMerger::merge_few(std::string_view piece, std::vector<int32_t>* ids) const {
  std::array<int32_t, kFew> symbols, ranks, results;  // rank and result: of a symbol and the next
  size_t n = piece.size();
  const auto look = [&](size_t i) {
    const Rule* const r = i + 1 < n ? rule(symbols[i], symbols[i + 1]) : nullptr;
    ranks[i] = r ? r->rank : kNone;
    results[i] = r ? r->result : 0;
  };
  for (size_t i = 0; i < n; ++i) symbols[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  for (size_t i = 0; i < n; ++i) look(i);
  while (n > 1) {
    const auto best = static_cast<size_t>(
        std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(n)) -
        ranks.begin());
    if (ranks[best] == kNone) break;
    symbols[best] = results[best];
    --n;
    for (size_t i = best + 1; i < n; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
      results[i] = results[i + 1];
    }
    look(best);
    if (best > 0) look(best - 1);
  }
  ids->insert(ids->end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(n));
}

void BytePairMerger::merge_many(std::string_view piece, std::vector<int32_t>* ids) const {
  constexpr size_t kEnd = SIZE_MAX;
  struct Symbol {
    int32_t id;
    size_t before, after;  // its neighbours
  };
  struct Candidate {
    int32_t rank, left, right, result;
    size_t at;
    // std::priority_queue pops the largest first.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::vector<Symbol> symbols(piece.size());
  std::priority_queue<Candidate> queue;
  const auto offer = [&](size_t at) {
    if (at == kEnd || symbols[at].after == kEnd) return;
    const int32_t left = symbols[at].id, right = symbols[symbols[at].after].id;
    if (const Rule* const r = rule(left, right)) queue.push({r->rank, left, right, r->result, at});
  };
  for (size_t i = 0; i < piece.size(); ++i) {
    symbols[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], i == 0 ? kEnd : i - 1,
                  i + 1 == piece.size() ? kEnd : i + 1};
  }
  for (size_t i = 0; i < piece.size(); ++i) offer(i);
  while (!queue.empty()) {
    const Candidate c = queue.top();
    queue.pop();
    Symbol& left = symbols[c.at];
    // Either symbol may have been merged since; the id of a removed symbol is -1.
    if (left.id != c.left || left.after == kEnd || symbols[left.after].id != c.right) continue;
    Symbol& right = symbols[left.after];
    left.id = c.result;
    right.id = -1;
    left.after = right.after;
    if (left.after != kEnd) symbols[left.after].before = c.at;
    offer(c.at);
    offer(left.before);
  }
  for (size_t i = 0; i != kEnd; i = symbols[i].after) ids->push_back(symbols[i].id);
}

}  // namespace bamtrain
