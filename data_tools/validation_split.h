#pragma once
// Which documents are for validation: a draw that depends on a document's number alone.

#include <cstdint>
#include <span>
#include <vector>

#include "data_tools/shard_set_writer.h"

namespace bamtrain {

/// How much is for validation; both 0: nothing.
struct ValidationShare {
  int64_t documents = 0;  // exactly so many, or
  double fraction = 0;    // each document with this probability, in (0, 1)
};

/// The n-th document (from 0, left-out ones not counted) draws the fixed random number
/// draw(n) = Rng(0, "bamdata.validation").bits(n). For validation are those whose number is in the
/// lowest `fraction` of the range, or the `documents` lowest numbers. So the choice is spread
/// evenly over the text, is the same in every run, and a document added at the end changes at most
/// one other's place.
class ValidationSplit {
 public:
  /// REQUIRES: not both; `train` and `val` outlive this; `val` is null exactly where the share is
  /// 0.
  ValidationSplit(ValidationShare share, ShardSetWriter* train, ShardSetWriter* val);

  static uint64_t draw(int64_t index);

  /// The next document. With a number of documents, so many are held in memory until finish(), and
  /// one that gives up its place to a later one joins the training set at that moment.
  void add(std::span<const int32_t> document);

  /// Writes the held documents, in order. Error (data) where a set is left without a document.
  void finish();

  int64_t documents() const { return next_; }

 private:
  struct Held {
    uint64_t draw = 0;
    int64_t index = 0;
    std::vector<int32_t> tokens;
  };
  static bool lower(const Held& a, const Held& b);

  ValidationShare share_;
  ShardSetWriter* train_;
  ShardSetWriter* val_;
  int64_t next_ = 0;
  std::vector<Held> held_;  // a heap: the highest draw in front
};

}  // namespace bamtrain
