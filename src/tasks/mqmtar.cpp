// Multi-query multi-token associative recall.

#include "core/permutation.h"
#include "tasks/continued.h"
#include "tasks/list.h"

namespace bamtrain {

namespace {

constexpr int32_t kMqmtarVocab = 259;  // as published; ids up to 258 are used
constexpr int32_t kSpace = 0, kPair = 1, kQuery = 2, kFirst = 3, kAlphabet = 256;
constexpr int64_t kQueries = 4;    // as published, and the maximum
constexpr int64_t kUnit = 6;       // key key 1 value value 0
constexpr int64_t kPool = 10'000;  // keys, and values, per set

/// Number of pairs in a source of L tokens, floor(0.8 L / 6).
constexpr int64_t pairs_of(int64_t length) { return 8 * length / (10 * kUnit); }

using Word = std::pair<int32_t, int32_t>;

/// Distinct pairs of tokens, specific to the set.
class Pool {
 public:
  Pool(const Rng& shared, uint64_t which)
      : order_(int64_t{kAlphabet} * kAlphabet, shared.bits(which), 0) {}
  Word operator[](int64_t i) const {
    const auto word = static_cast<int32_t>(order_(i));
    return {kFirst + word / kAlphabet, kFirst + word % kAlphabet};
  }

 private:
  Permutation order_;
};

void append(Symbols* ids, const Word& word) {
  ids->push_back(word.first);
  ids->push_back(word.second);
}

/// Number of spaces before the unit in a slot of `tokens`. The slot's extra spaces are a uniform
/// choice among the places, tokens - 1 before the unit and tokens - 3 after it.
int64_t spaces_before(int64_t tokens, Draws* draws) {
  const int64_t before = tokens - 1, places = before + tokens - 3;
  int64_t spaces = 0;
  for (const int64_t place : draws->choose(tokens - kUnit, places)) spaces += place < before;
  return spaces;
}

void draw(const TaskContext& source, int64_t length, Draws* draws, Example* out) {
  const int64_t pairs = pairs_of(length), slot = length / pairs;
  const Pool keys(source.shared, 0), values(source.shared, 1);
  const std::vector<int64_t> key = draws->choose(pairs, kPool), value = draws->choose(pairs, kPool);
  Symbols src, trg;
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t before = spaces_before(slot, draws);
    src.insert(src.end(), static_cast<size_t>(before), kSpace);
    append(&src, keys[key[static_cast<size_t>(i)]]);
    src.push_back(kPair);
    append(&src, values[value[static_cast<size_t>(i)]]);
    src.insert(src.end(), static_cast<size_t>(slot - before - kUnit + 1), kSpace);
  }
  const auto queries = static_cast<int64_t>(source.options.number("queries"));
  for (int64_t query = 0; query < queries; ++query) {
    const auto i = static_cast<size_t>(draws->below(pairs));
    src.push_back(kQuery);
    append(&src, keys[key[i]]);
    trg.push_back(kQuery);
    append(&trg, values[value[i]]);
  }
  write_continued<kMqmtarVocab>(src, Separator::sep, trg, out);
}

}  // namespace

TaskInfo mqmtar_task() {
  TaskInfo t = task_of_ids<kMqmtarVocab>();
  t.name = "mqmtar";
  t.end = DataIds<kMqmtarVocab>::eos;
  t.description = "keys of two tokens and their values among spaces, then the values of some keys";
  t.options = {{"queries", "number of queried keys", double{kQueries}, {}, 1, kQueries, true}};
  t.least_length = 8;                      // for one pair
  t.most_length = kPool * 10 * kUnit / 8;  // for as many pairs as keys
  t.most_inputs = [](int64_t length) { return length + 2 + 2 * kQueries * 3; };
  t.draw = draw;
  return t;
}

}  // namespace bamtrain
