#pragma once
// An input of the task max_retrieval: a number and a class in one id. The task writes it, and the
// max_retrieval model reads it.

#include <cstdint>

namespace bamtrain {

/// The id 2^24 c + n encodes class c and the number n / 2^24 in [0, 1), which is exact in fp32. An
/// item's number is its priority; a query has a class that no item has.
struct RetrievalInput {
  static constexpr int kBits = 24;
  static constexpr int64_t kNumbers = int64_t{1} << kBits;
  static constexpr int32_t kClasses = 10;  // of items
  static constexpr int32_t kQuery = kClasses;
  static constexpr int64_t kInputs = (kClasses + 1) * kNumbers;  // the number of ids

  int32_t of_class = 0;
  int32_t number = 0;  // n

  static constexpr RetrievalInput of(int32_t id) {
    return {id >> kBits, static_cast<int32_t>(id & (kNumbers - 1))};
  }
  constexpr int32_t id() const { return of_class << kBits | number; }
  constexpr double value() const { return static_cast<double>(number) / kNumbers; }
};

}  // namespace bamtrain
