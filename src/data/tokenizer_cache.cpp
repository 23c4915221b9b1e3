#include "data/tokenizer_cache.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "core/error.h"

namespace bamtrain {

/// One cache line, a seqlock (Boehm 2012): the first word is written before and after the others.
/// It holds a version, a bit for "being written", the number of ids and the first id. Then come the
/// other ids and the key: the stretch, padded with zeros, with its length in the last byte.
class alignas(64) TokenizerCache::Slot {
 public:
  static constexpr size_t kIds = 9;

  /// Appends the ids of `key`; returns false if the slot holds another key, or is being written.
  bool read(const Key& key, std::vector<int32_t>* ids) const {
    const uint64_t first = words_[0].load(std::memory_order_acquire);
    if ((first & kBusy) != 0) return false;
    for (size_t k = 0; k < key.size(); ++k) {
      if (words_[kKey + k].load(std::memory_order_relaxed) != key[k]) return false;
    }
    std::array<uint64_t, kKey> found = {first};
    for (size_t w = 1; w < kKey; ++w) found[w] = words_[w].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (words_[0].load(std::memory_order_relaxed) != first) return false;
    const size_t count = first & kCount;
    for (size_t i = 0; i < count; ++i) {
      // Two ids per word; the first id is in the upper half of the first word.
      const size_t half = i + 1;
      ids->push_back(static_cast<int32_t>(found[half / 2] >> (half % 2 * 32)));
    }
    return true;
  }

  void write(const Key& key, std::span<const int32_t> ids) {
    const size_t count = ids.size();
    uint64_t first = words_[0].load(std::memory_order_relaxed);
    if ((first & kBusy) != 0 ||
        !words_[0].compare_exchange_strong(first, first | kBusy, std::memory_order_relaxed)) {
      return;
    }
    std::atomic_thread_fence(std::memory_order_release);
    std::array<uint64_t, kKey> now = {};
    for (size_t i = 0; i < count; ++i) {
      const size_t half = i + 1;
      now[half / 2] |= uint64_t{static_cast<uint32_t>(ids[i])} << (half % 2 * 32);
    }
    for (size_t w = 1; w < kKey; ++w) words_[w].store(now[w], std::memory_order_relaxed);
    for (size_t k = 0; k < key.size(); ++k) {
      words_[kKey + k].store(key[k], std::memory_order_relaxed);
    }
    const uint64_t version = (first + kVersion) & kVersions;
    words_[0].store(now[0] | version | count, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kCount = 15, kBusy = 16, kVersion = 32;
  static constexpr uint64_t kVersions = 0xFFFFFFE0u;
  static constexpr size_t kKey = 5;  // words before the key

  std::array<std::atomic<uint64_t>, 8> words_ = {};
};

TokenizerCache::TokenizerCache(size_t slots) : size_(slots), slots_(new Slot[slots]) {
  static_assert(sizeof(Slot) == 64);
  require(std::has_single_bit(slots), "a number of slots that is a power of two");
}
TokenizerCache::~TokenizerCache() = default;

TokenizerCache::Place TokenizerCache::place_of(std::string_view text) {
  char bytes[kTextBytes + 1] = {};
  std::memcpy(bytes, text.data(), text.size());
  bytes[kTextBytes] = static_cast<char>(text.size());
  Key key;
  std::memcpy(key.data(), bytes, sizeof key);
  uint64_t h = (key[0] ^ 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  h = (h ^ h >> 32 ^ key[1]) * 0x94D049BB133111EBu;
  h = (h ^ h >> 29 ^ key[2]) * 0xD6E8FEB86659FD93u;
  return {&slots_[(h >> 32) & (size_ - 1)], key};
}

bool TokenizerCache::Place::read(std::vector<int32_t>* ids) const { return slot_->read(key_, ids); }

void TokenizerCache::Place::write(std::span<const int32_t> ids) {
  if (ids.size() <= Slot::kIds) slot_->write(key_, ids);
}

}  // namespace bamtrain
