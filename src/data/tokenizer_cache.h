#pragma once
// Caches the ids of short stretches of text.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace bamtrain {

/// A direct-mapped table of fixed size for one tokenizer, shared by any number of threads. A later
/// stretch evicts an earlier one. Threads never wait: a slot that is being written counts as a
/// miss.
class TokenizerCache {
 public:
  /// `slots`, a power of two, of 64 bytes each.
  explicit TokenizerCache(size_t slots = size_t{1} << 17);
  ~TokenizerCache();
  TokenizerCache(const TokenizerCache&) = delete;
  TokenizerCache& operator=(const TokenizerCache&) = delete;

  /// Whether `text` is short enough to be cached.
  static bool keeps(std::string_view text) { return text.size() <= kTextBytes; }

  class Place;
  /// The place for the ids of `text`. REQUIRES: keeps(text).
  Place place_of(std::string_view text);

 private:
  static constexpr size_t kTextBytes = 23;
  using Key = std::array<uint64_t, 3>;  // the text, padded with zeros, its length in the last byte
  static_assert(sizeof(Key) == kTextBytes + 1);
  class Slot;

  size_t size_;
  std::unique_ptr<Slot[]> slots_;
};

class TokenizerCache::Place {
 public:
  /// Appends the ids; returns false if they are not cached.
  bool read(std::vector<int32_t>* ids) const;
  /// Stores the ids, unless there are too many.
  void write(std::span<const int32_t> ids);

 private:
  friend class TokenizerCache;
  Place(Slot* slot, const Key& key) : slot_(slot), key_(key) {}

  Slot* slot_;
  Key key_;
};

}  // namespace bamtrain
